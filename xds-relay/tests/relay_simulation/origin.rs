//! What the origins hold, and the replicas that serve it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xds_transport::Frame;
use xds_transport::wire::Node;
use xdstp_cache::{Cache, Options, Resource};
use xdstp_uri::ResourceName;

use crate::world::{Body, ORIGINS, Of, Place, REFERRED, World, place_of_referred};

type Key = (Place, Of, ResourceName);

pub(crate) struct Origins {
    content: BTreeMap<Key, (Body, Resource<Frame>)>,
    /// The serial of the last change.
    serial: u64,
    /// When a name was removed last, by serial.
    removed: BTreeMap<Key, u64>,
    replicas: [[Replica; 2]; ORIGINS],
}

/// Caches by node group; `xdstp:` names are the same for everybody.
#[derive(Default)]
struct Replica(BTreeMap<Option<usize>, Cache<Frame>>);

impl Replica {
    fn cache(&mut self, group: Option<usize>) -> &mut Cache<Frame> {
        self.0.entry(group).or_insert_with(|| {
            let mut options = Options::default();
            // It is what there is for the nodes of a group.
            options.wildcard_covers_xdstp = group.is_some();
            Cache::new(options)
        })
    }
}

impl Origins {
    pub(crate) fn new() -> Self {
        let replicas = std::array::from_fn(|_| Default::default());
        Self { content: BTreeMap::new(), serial: 0, removed: BTreeMap::new(), replicas }
    }

    /// What serves a node group, or the relay itself.
    pub(crate) fn cache(&mut self, origin: usize, replica: usize, group: Option<usize>) -> &mut Cache<Frame> {
        self.replicas[origin][replica].cache(group)
    }

    pub(crate) fn put(&mut self, world: &World, of: Of, name: &ResourceName, place: Place, body: Body, now: Instant) {
        let aliases = body.aliases;
        // No two resources have an alias at a time.
        let others = self.content.iter().filter(|((at, type_of, other), (body, _))| {
            (*at, *type_of) == (place, of) && other != name && body.aliases & aliases != 0
        });
        let others: Vec<_> = others.map(|((_, _, other), (body, _))| (other.clone(), body.clone())).collect();
        for (other, body) in others {
            self.store(world, of, &other, place, Body { aliases: body.aliases & !aliases, ..body }, now);
        }
        let group = place.group.map_or(0, |group| group as u64 + 1);
        let body = Body { group, ..body };
        self.store(world, of, name, place, body, now);
    }

    fn store(&mut self, world: &World, of: Of, name: &ResourceName, place: Place, body: Body, now: Instant) {
        self.serial += 1;
        let body = Body { serial: self.serial, ..body };
        let resource = world.resource(of, name, &body);
        let key = (place, of, name.clone());
        let lost = self.content.get(&key).is_some_and(|(before, _)| before.aliases & !body.aliases != 0);
        if lost {
            // Who has it by that alias alone has it no more.
            self.removed.insert(key.clone(), self.serial);
        }
        self.content.insert(key, (body.clone(), resource.clone()));
        for (at, replica) in self.replicas[place.origin].iter_mut().enumerate() {
            let resource = world.replicated(place.origin, at, &resource, &body);
            upsert(replica.cache(place.group), world, of, name, &resource, now);
        }
    }

    pub(crate) fn remove(&mut self, world: &World, of: Of, name: &ResourceName, place: Place, now: Instant) {
        self.serial += 1;
        let key = (place, of, name.clone());
        self.content.remove(&key);
        self.removed.insert(key, self.serial);
        for replica in &mut self.replicas[place.origin] {
            let mut edit = replica.cache(place.group).edit(now);
            edit.remove(&world.kinds[of].url, name);
            let _ = edit.finish();
        }
    }

    /// A replica that starts anew knows what there is, and not what there was.
    pub(crate) fn restart(&mut self, world: &World, origin: usize, replica: usize, now: Instant) {
        let mut anew = Replica::default();
        for ((place, of, name), (body, resource)) in &self.content {
            if place.origin == origin {
                let resource = world.replicated(origin, replica, resource, body);
                upsert(anew.cache(place.group), world, *of, name, &resource, now);
            }
        }
        self.replicas[origin][replica] = anew;
    }

    pub(crate) fn resource(&self, place: Place, of: Of, name: &ResourceName) -> Option<&(Body, Resource<Frame>)> {
        self.content.get(&(place, of, name.clone()))
    }

    /// What could be referred to and is not, if something is as it is to be: refers to other names.
    pub(crate) fn unused(
        &self,
        world: &World,
        but: Option<(Place, Of, &ResourceName, u64)>,
    ) -> Vec<(Place, Of, ResourceName)> {
        let is = |(place, of, name): &Key| but.filter(|(at, one, but, _)| (place, of, name) == (at, one, *but));
        let mut used = BTreeSet::new();
        for (key, (body, _)) in &self.content {
            let body = Body { uses: is(key).map_or(body.uses, |(.., uses)| uses), ..body.clone() };
            let (place, _, referrer) = key;
            for of in REFERRED {
                let names = body.references(world, of);
                used.extend(names.map(|name| (place_of_referred(name, *place, referrer), of, name.clone())));
            }
        }
        let referred = self.content.keys().filter(|(_, of, _)| REFERRED.contains(of));
        referred.filter(|key| !used.contains(*key)).cloned().collect()
    }

    /// What a name is another name of.
    pub(crate) fn called(&self, world: &World, place: Place, of: Of, alias: &ResourceName) -> Option<&ResourceName> {
        let of_place = self.content.iter().filter(|((at, type_of, _), _)| (*at, *type_of) == (place, of));
        let mut called = of_place.filter(|((.., name), (body, _))| world.stands_for(of, alias, name, body));
        called.next().map(|((.., name), _)| name)
    }

    /// Whether a name was there no more at some time after what was put as `serial`.
    pub(crate) fn removed_since(&self, place: Place, of: Of, name: &ResourceName, serial: u64) -> bool {
        self.removed.get(&(place, of, name.clone())).is_some_and(|removed| *removed > serial)
    }

    /// Whether nobody subscribes any more.
    pub(crate) fn check_left(&self) -> Result<(), String> {
        let caches = self.replicas.iter().flatten().flat_map(|replica| replica.0.values());
        match caches.map(Cache::subscriber_count).sum() {
            0 => Ok(()),
            left => Err(format!("{left} subscribers are left at origins")),
        }
    }
}

fn upsert(
    cache: &mut Cache<Frame>,
    world: &World,
    of: Of,
    name: &ResourceName,
    resource: &Resource<Frame>,
    now: Instant,
) {
    let (aliases, url) = (resource.value.aliases().collect::<Vec<_>>(), &world.kinds[of].url);
    let mut edit = cache.edit(now);
    edit.put_with_aliases(url, name, aliases, resource.clone());
    let _ = edit.finish();
}

/// The node group of an encoded node.
pub(crate) fn group_of(node: &Bytes) -> Option<usize> {
    Node::decode(node.clone()).unwrap().cluster.strip_prefix("group-")?.parse().ok()
}

/// The encoded node of a client.
pub(crate) fn node(client: usize, group: usize, wrapped: bool) -> Bytes {
    let feature = "xds.config.resource-in-sotw".to_owned();
    let client_features = wrapped.then_some(feature).into_iter().collect();
    let (id, cluster) = (format!("client-{client}"), format!("group-{group}"));
    Node { id, cluster, client_features, ..Node::default() }.encode_to_vec().into()
}
