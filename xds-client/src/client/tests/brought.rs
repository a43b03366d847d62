//! Origins that a program brings itself, beside its servers.

use std::sync::{Arc, Mutex};

use xds_transport::TypeRules;
use xds_transport::wire::client_status::ClientResourceStatus as Is;
use xdstp_cache::Variant;

use super::lists::{collection, elsewhere};
use super::*;
use crate::federation::{ByNode, Origin, Scope, SnapshotOrigin, Speaker};

const LISTS: &str = "type.googleapis.com/envoy.config.cluster.v3.ClusterCollection";

/// A client that has names of `here` from one origin, and old-style ones from another.
struct Brought {
    world: World,
    here: Arc<SnapshotOrigin>,
    top: Arc<SnapshotOrigin>,
}

impl Brought {
    /// Of a client that has old-style names from its server.
    fn here_only() -> Self {
        Self::with(false)
    }

    fn with(default: bool) -> Self {
        let [here, top] = ["here", "top"].map(|kind| Arc::new(SnapshotOrigin::new(kind, TypeRules::envoy().into())));
        let network = Network::new(now());
        let server = |uri| Server::new(uri, ChannelCreds::Insecure);
        let bootstrap = Bootstrap::new(server(TOP))
            .with_authority("a", Authority::default())
            .with_authority("other", Authority::default().with_server(server(OTHER)));
        let builder = Client::builder(bootstrap).transport(network.clone()).origin("here", here.clone());
        let builder = if default { builder.default_origin(top.clone()) } else { builder };
        Self { world: World { client: builder.build().unwrap(), network }, here, top }
    }

    /// What is told of `here`, if it has clusters at these versions.
    fn set(&self, resources: &[(&str, &str)]) {
        set(&self.here, resources);
    }
}

/// Has an origin have clusters at versions, and nothing else.
fn set(origin: &SnapshotOrigin, resources: &[(&str, &str)]) {
    origin.set(resources.iter().map(|(name, version)| held(CDS, name, version)).collect(), now());
}

fn held(type_url: &str, name: &str, version: &str) -> crate::federation::Held {
    of_message(type_url, name, version, &message(name, version))
}

fn of_message(type_url: &str, name: &str, version: &str, message: &[u8]) -> crate::federation::Held {
    let frame = xds_transport::Frame::of_message(&type_url.into(), message);
    (type_url.into(), name.parse().unwrap(), frame.into_resource(Some(version.into())))
}

fn here(id: &str) -> String {
    xdstp("here", CDS, id)
}

#[test]
fn what_an_own_origin_has_is_read_once_it_is_there_and_follows_it() {
    let brought = Brought::here_only();
    let (x, y) = (here("x"), here("y"));
    let mut watches = [brought.world.watch(&x), brought.world.watch(&y)];
    assert_eq!(watches.each_mut().map(heard), [[""; 0]; 2], "nobody said what there is");
    assert_eq!(watches[0].status(), Some(crate::ResourceStatus::Requested));
    brought.set(&[(&x, "1")]);
    let event = watches[0].try_next();
    assert!(matches!(event, Some(Event::Put { ref resource, .. }) if **resource == Cluster("1".into())), "{event:?}");
    assert_eq!(heard(&mut watches[1]), [format!("failed {y}: absent")]);
    assert_eq!(heard(&mut brought.world.watch(&here("z"))), [format!("failed {}: absent", here("z"))], "at once");

    brought.set(&[(&x, "1"), (&y, "2")]);
    assert_eq!(watches.each_mut().map(heard), [vec![], vec![format!("put {y} 2")]]);
    brought.set(&[(&y, "3")]);
    let said = [vec![format!("failed {x}: absent")], vec![format!("put {y} 3")]];
    assert_eq!(watches.each_mut().map(heard), said);
    assert_eq!(heard(&mut brought.world.watch(&y)), [format!("put {y} 3")]);
    assert_eq!(watches.each_ref().map(|watch| watch.server().unwrap().to_string()), ["here", "here"]);
    assert_eq!(brought.world.network.dialed(), 0, "no server is asked");
}

#[test]
fn a_collection_of_an_own_origin_is_answered_at_once_and_loses_what_goes() {
    let brought = Brought::here_only();
    let (x, y) = (here("x"), here("y"));
    brought.set(&[(&x, "1"), (&y, "1")]);
    let mut watch = brought.world.watch(&here("*"));
    assert_eq!(heard(&mut watch), [format!("put {x} 1"), format!("put {y} 1"), "answered".into()]);
    brought.set(&[(&y, "2")]);
    assert_eq!(heard(&mut watch), [format!("put {y} 2"), format!("removed {x}")]);
}

#[test]
fn what_is_refused_of_an_own_origin_is_its_watchs_error_and_what_was_before_stays() {
    let brought = Brought::here_only();
    let (x, y, bad) = (here("x"), here("y"), "invalid at \"bad\" (bad is bad)");
    brought.set(&[(&x, "1"), (&y, "bad")]);
    let mut watches = [brought.world.watch(&x), brought.world.watch(&y)];
    let said = [vec![format!("put {x} 1")], vec![format!("failed {y}: {bad}")]];
    assert_eq!(watches.each_mut().map(heard), said);
    for _ in 0..2 {
        brought.set(&[(&x, "bad"), (&y, "bad")]);
    }
    assert_eq!(watches.each_mut().map(heard), [vec![format!("ambient {x}: {bad}")], vec![]], "once");
    assert_eq!(watches.each_ref().map(Watch::status), [Some(crate::ResourceStatus::Nacked); 2]);
    assert_eq!(heard(&mut brought.world.watch(&x)), [format!("put {x} 1"), format!("ambient {x}: {bad}")]);

    brought.set(&[(&x, "1"), (&y, "2")]);
    assert_eq!(watches.each_mut().map(heard), [vec![format!("put {x} 1")], vec![format!("put {y} 2")]], "it is good");
    brought.set(&[(&x, "bad")]);
    assert_eq!(
        watches.each_mut().map(heard),
        [vec![format!("ambient {x}: {bad}")], vec![format!("failed {y}: absent")]]
    );
    brought.set(&[]);
    assert_eq!(
        watches.each_mut().map(heard),
        [vec![format!("failed {x}: absent")], vec![]],
        "what was refused goes, too"
    );
}

#[test]
fn what_came_before_anybody_read_it_is_read_when_somebody_does() {
    let brought = Brought::here_only();
    let (x, y) = (here("x"), here("y"));
    brought.set(&[(&x, "1"), (&y, "bad")]);
    let mut raw = brought.world.watch_raw(CDS, &here("*"));
    assert_eq!(heard(&mut raw), [format!("put {x} 1"), format!("put {y} bad"), "answered".into()]);
    let mut watches = [brought.world.watch(&x), brought.world.watch(&y)];
    let refused = format!("failed {y}: invalid at \"bad\" (bad is bad)");
    assert_eq!(watches.each_mut().map(heard), [vec![format!("put {x} 1")], vec![refused]]);
    brought.set(&[(&x, "1"), (&y, "bad too")]);
    let refused = format!("failed {y}: invalid at \"bad too\" (bad too is bad)");
    assert_eq!(watches.each_mut().map(heard), [vec![], vec![refused]], "it has none to go on with");
}

#[test]
fn the_servers_of_other_names_are_asked_as_without_it() {
    let brought = Brought::here_only();
    let (elsewhere, unknown) = (xdstp("other", CDS, "x"), xdstp("who", CDS, "x"));
    brought.set(&[]);
    brought.world.put_other(CDS, &elsewhere, "1");
    brought.world.put(CDS, "x", "2");
    for (name, server) in [("x", TOP), (&elsewhere, OTHER)] {
        let mut watch = brought.world.watch(name);
        assert_eq!(heard(&mut watch).len(), 1, "{name}");
        assert_eq!(&*watch.server().unwrap(), server);
    }
    let said = heard(&mut brought.world.watch(&unknown));
    assert!(matches!(&said[..], [said] if said.contains("authority \"who\" is not in the bootstrap")), "{said:?}");
}

#[test]
fn an_own_origin_in_place_of_the_first_servers_has_old_style_names_and_authorities_without_servers() {
    let brought = Brought::with(true);
    let of_a = xdstp("a", CDS, "x");
    set(&brought.top, &[("x", "1"), (&of_a, "2")]);
    for (name, version) in [("x", "1"), (&of_a, "2")] {
        let mut watch = brought.world.watch(name);
        assert_eq!(heard(&mut watch), [format!("put {name} {version}")]);
        assert_eq!(&*watch.server().unwrap(), "top");
    }
    let mut all = brought.world.watch("*");
    assert_eq!(heard(&mut all), ["put x 1", "answered"]);
    let elsewhere = xdstp("other", CDS, "x");
    brought.world.put_other(CDS, &elsewhere, "3");
    assert_eq!(heard(&mut brought.world.watch(&elsewhere)), [format!("put {elsewhere} 3")]);
    assert_eq!(brought.world.network.dialed(), 1);
}

#[test]
fn a_server_says_nothing_of_names_that_an_own_origin_has() {
    let brought = Brought::here_only();
    let x = here("x");
    brought.set(&[(&x, "1")]);
    let _watch = brought.world.watch("*");
    brought.world.put(CDS, "y", "1");
    brought.world.top().take_refused();
    let mut watch = brought.world.watch(&x);
    assert_eq!(heard(&mut watch), [format!("put {x} 1")]);
    brought.world.put_other(CDS, &x, "2");
    brought.world.put(CDS, &x, "2");
    assert_eq!(heard(&mut watch), [""; 0]);
}

#[test]
fn r081_the_members_of_a_list_are_had_from_an_own_origin_and_from_servers() {
    let brought = Brought::here_only();
    let (mine, theirs, missing) = (here("x"), xdstp("other", CDS, "y"), here("z"));
    let list = xdstp("here", LISTS, "all");
    brought.world.put_other(CDS, &theirs, "6");
    let with = |entries: &[_]| of_message(LISTS, &list, "1", &collection(entries));
    let all = with(&[elsewhere(&mine), elsewhere(&theirs), elsewhere(&missing)]);
    brought.here.set(vec![all, held(CDS, &mine, "5")], now());
    let mut watch = brought.world.watch(&list);
    let mut said = heard(&mut watch);
    brought.world.network.settle();
    said.extend(heard(&mut watch));
    said.sort();
    let mut expected = [
        "answered".to_owned(),
        format!("failed {missing}: absent"),
        format!("put {mine} 5"),
        format!("put {theirs} 6"),
    ];
    expected.sort();
    assert_eq!(said, expected);
    brought.here.set(vec![with(&[elsewhere(&theirs)]), held(CDS, &mine, "5")], now());
    let said = heard(&mut watch);
    assert!(said.contains(&format!("removed {mine}")), "{said:?}");
}

#[test]
fn what_a_client_tells_of_itself_has_what_an_own_origin_has() {
    let brought = Brought::here_only();
    let (x, y, z) = (here("x"), here("y"), here("z"));
    let _watches = [&x, &y, &z].map(|name| brought.world.watch(name));
    brought.set(&[(&x, "1"), (&y, "bad")]);
    let mut shown: Vec<_> = brought.world.client.status(true).generic_xds_configs;
    shown.sort_by(|one, other| one.name.cmp(&other.name));
    let of = |at: usize| (shown[at].name.as_str(), shown[at].client_status(), shown[at].version_info.as_str());
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert_eq!([of(0), of(1), of(2)], [(&*x, Is::Acked, "1"), (&*y, Is::Nacked, ""), (&*z, Is::DoesNotExist, "")]);
    assert!(!shown[0].xds_config.is_empty());
    let counts = brought.world.client.resource_counts();
    let counts: Vec<_> = counts.iter().map(|count| (&*count.authority, count.state, count.count)).collect();
    assert_eq!(counts, [("here", "acked", 1), ("here", "does_not_exist", 1), ("here", "nacked", 1)]);
}

#[test]
fn who_selects_is_given_the_variant_of_an_own_origin_that_is_for_it() {
    let brought = Brought::here_only();
    let x = here("x");
    let variant = |value: &str, version: &str| {
        let variant = Variant::Constraints(format!("env={value}").parse().unwrap());
        let (type_url, name, resource) = held(CDS, &x, version);
        (type_url, name, resource.value.of_variant(Some(variant)).into_resource(Some(version.into())))
    };
    brought.here.set(vec![variant("prod", "1"), variant("canary", "2")], now());
    for (value, said) in [("prod", format!("put {x} 1")), ("canary", format!("put {x} 2")), ("test", absent(&x))] {
        let mut watch = brought.world.client.selecting([("env", value)]).watch(CDS, &x);
        assert_eq!(heard(&mut watch), [said]);
    }
}

fn absent(name: &str) -> String {
    format!("failed {name}: absent")
}

/// Watches, as it is told of a scope, another name of that, and one of another authority.
struct Watches(Arc<Mutex<Option<Client>>>, Arc<Mutex<Vec<Watch>>>);

impl Origin for Watches {
    fn kind(&self) -> &'static str {
        "watches"
    }

    fn by_node(&self) -> ByNode {
        ByNode::Nothing
    }

    fn is_authoritative(&self) -> bool {
        true
    }

    fn feed(&self, scope: &Arc<Scope>, _: &dyn Fn() -> Speaker) {
        let client = self.0.lock().unwrap().clone().unwrap();
        let watches = [here("y"), xdstp("other", CDS, "x")].map(|name| client.watch(CDS, &name));
        self.1.lock().unwrap().extend(watches);
        scope.replace(&[held(CDS, &here("x"), "1"), held(CDS, &here("y"), "2")], now());
    }
}

#[test]
fn an_own_origin_may_watch_what_it_is_asked_for_and_anything_else() {
    own_code::unblocked(|| {
        let network = Network::new(now());
        let (own, kept) = (Arc::<Mutex<_>>::default(), Arc::<Mutex<Vec<Watch>>>::default());
        let server = |uri| Server::new(uri, ChannelCreds::Insecure);
        let bootstrap =
            Bootstrap::new(server(TOP)).with_authority("other", Authority::default().with_server(server(OTHER)));
        let builder = Client::builder(bootstrap).transport(network.clone());
        let client = builder.origin("here", Watches(own.clone(), kept.clone())).build().unwrap();
        *own.lock().unwrap() = Some(client.clone());
        let elsewhere = xdstp("other", CDS, "x");
        network.server(OTHER).put(CDS, &elsewhere, "3", &message(&elsewhere, "3"));
        let mut watch = client.watch(CDS, &here("x"));
        network.settle();
        assert_eq!(heard(&mut watch), [format!("put {} 1", here("x"))]);
        let mut kept = std::mem::take(&mut *kept.lock().unwrap());
        let said: Vec<_> = kept.iter_mut().flat_map(heard).collect();
        assert_eq!(said, [format!("put {} 2", here("y")), format!("put {elsewhere} 3")]);
        own.lock().unwrap().take();
    });
}
