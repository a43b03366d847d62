//! The newest state of all that is watched, and who has not seen it yet.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, watch};
use xds_transport::Frame;
use xds_transport::client::{Command, Update, Verdict};
use xdstp_cache::{Interest, Resource, TypeUrl};
use xdstp_uri::ResourceName;

use crate::upstream::{Connection, Consumer};
use crate::watch::Event;

#[derive(Debug)]
pub(crate) struct Store {
    /// Held for one short call, and never while somebody is woken.
    state: Mutex<State>,
    wake: Arc<Notify>,
    connection: watch::Sender<Option<Connection>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WatcherId(u64);

#[derive(Debug, Default)]
struct State {
    types: HashMap<TypeUrl, Watched>,
    /// What the driver must look at: watched for the first time, or no longer.
    pending: BTreeSet<(TypeUrl, Interest)>,
    watchers: u64,
}

/// One type.
#[derive(Debug, Default)]
struct Watched {
    /// `None` for a name that does not exist.
    resources: BTreeMap<ResourceName, Option<Resource<Frame>>>,
    interests: HashMap<Interest, Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    subscribed: bool,
    answered: bool,
    watchers: HashMap<WatcherId, Watcher>,
}

#[derive(Debug)]
struct Watcher {
    /// Names that changed since the watcher saw them.
    unseen: BTreeSet<ResourceName>,
    answered: bool,
    news: Arc<Notify>,
}

impl Default for Store {
    fn default() -> Self {
        Self { state: Mutex::default(), wake: Arc::default(), connection: watch::Sender::new(None) }
    }
}

impl Store {
    pub(crate) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    pub(crate) fn connection(&self) -> watch::Receiver<Option<Connection>> {
        self.connection.subscribe()
    }

    /// A new watcher, which starts with all that is known.
    pub(crate) fn watch(&self, type_url: &TypeUrl, interest: &Interest, news: Arc<Notify>) -> WatcherId {
        let mut state = self.lock();
        state.watchers += 1;
        let id = WatcherId(state.watchers);
        state.pending.insert((type_url.clone(), interest.clone()));
        let watched = state.types.entry(type_url.clone()).or_default();
        let asked = watched.interests.entry(interest.clone()).or_default();
        let known = watched.resources.iter().filter(|(name, resource)| match interest {
            Interest::Name(wanted) if !wanted.is_glob() => {
                *name == wanted || aliases(resource.as_ref()).any(|alias| alias == *wanted)
            }
            collection => resource.is_some() && covers(collection, name),
        });
        let unseen = known.map(|(name, _)| name.clone()).collect();
        asked.watchers.insert(id, Watcher { unseen, answered: asked.answered, news });
        drop(state);
        self.wake.notify_one();
        id
    }

    pub(crate) fn unwatch(&self, type_url: &TypeUrl, interest: &Interest, id: WatcherId) {
        let mut state = self.lock();
        if let Some(asked) = state.types.get_mut(type_url).and_then(|watched| watched.interests.get_mut(interest)) {
            asked.watchers.remove(&id);
        }
        state.pending.insert((type_url.clone(), interest.clone()));
        drop(state);
        self.wake.notify_one();
    }

    /// What the watcher has not seen, as it is now.
    pub(crate) fn next(&self, type_url: &TypeUrl, interest: &Interest, id: WatcherId) -> Option<Event> {
        let mut state = self.lock();
        let watched = state.types.get_mut(type_url)?;
        let watcher = watched.interests.get_mut(interest)?.watchers.get_mut(&id)?;
        if let Some(name) = watcher.unseen.pop_first() {
            return Some(match watched.resources.get(&name).and_then(Option::as_ref) {
                Some(Resource { version, value, .. }) => {
                    Event::Put { name, version: version.clone(), body: value.any().clone() }
                }
                None => Event::Removed { name },
            });
        }
        std::mem::take(&mut watcher.answered).then_some(Event::Answered)
    }

    /// A panic elsewhere leaves whole values behind: each call changes them in one go.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The store as the driver's consumer.
#[derive(Debug)]
pub(crate) struct Feed(Arc<Store>);

impl Feed {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self(store)
    }
}

impl Consumer for Feed {
    fn commands(&mut self, _: Instant, apply: &mut dyn FnMut(Command)) {
        let mut state = self.0.lock();
        for (type_url, interest) in std::mem::take(&mut state.pending) {
            if let Some(watched) = state.types.get_mut(&type_url) {
                watched.settle(&type_url, interest, apply);
                if watched.interests.is_empty() {
                    state.types.remove(&type_url);
                }
            }
        }
    }

    fn update(&mut self, _: Instant, update: Update) -> Verdict {
        let mut woken = Vec::new();
        if let Some(watched) = self.0.lock().types.get_mut(&update.type_url) {
            for changed in update.changed.into_iter().filter(|changed| !changed.touched) {
                watched.put(changed.name, Some(changed.resource), &mut woken);
            }
            for name in update.removed.into_iter().chain(update.missing) {
                watched.put(name, None, &mut woken);
            }
            for interest in &update.answered {
                watched.answered(interest, &mut woken);
            }
        }
        for news in woken {
            news.notify_one();
        }
        Verdict::Accept
    }

    fn connection(&mut self, _: Instant, connection: Connection) {
        self.0.connection.send_replace(Some(connection));
    }
}

impl Watched {
    /// Subscribes for the first watcher, and unsubscribes after the last.
    fn settle(&mut self, type_url: &TypeUrl, interest: Interest, apply: &mut dyn FnMut(Command)) {
        let Some(asked) = self.interests.get_mut(&interest) else { return };
        if !asked.watchers.is_empty() {
            if !std::mem::replace(&mut asked.subscribed, true) {
                apply(Command::Subscribe(type_url.clone(), interest));
            }
            return;
        }
        if asked.subscribed {
            apply(Command::Unsubscribe(type_url.clone(), interest.clone()));
        }
        self.interests.remove(&interest);
        let interests = &self.interests;
        self.resources.retain(|name, resource| {
            covering(name, resource.as_ref()).any(|interest| interests.contains_key(&interest))
        });
    }

    fn put(&mut self, name: ResourceName, resource: Option<Resource<Frame>>, woken: &mut Vec<Arc<Notify>>) {
        let mut named = false;
        let before = self.resources.get(&name).and_then(Option::as_ref);
        let was_there = before.is_some();
        for interest in covering(&name, resource.as_ref().or(before)) {
            let exact = matches!(&interest, Interest::Name(wanted) if *wanted == name);
            let Some(asked) = self.interests.get_mut(&interest) else { continue };
            named |= exact;
            // Whoever watches a collection never saw what was never there.
            if resource.is_some() || was_there || exact {
                for watcher in asked.watchers.values_mut() {
                    watcher.unseen.insert(name.clone());
                    woken.push(Arc::clone(&watcher.news));
                }
            }
        }
        if resource.is_some() || named {
            self.resources.insert(name, resource);
        } else {
            self.resources.remove(&name);
        }
    }

    fn answered(&mut self, interest: &Interest, woken: &mut Vec<Arc<Notify>>) {
        let Some(asked) = self.interests.get_mut(interest) else { return };
        // After a reconnect it is answered again, which is no news.
        if !std::mem::replace(&mut asked.answered, true) {
            for watcher in asked.watchers.values_mut() {
                watcher.answered = true;
                woken.push(Arc::clone(&watcher.news));
            }
        }
    }
}

/// Every interest that a resource of this name answers.
fn covering(name: &ResourceName, resource: Option<&Resource<Frame>>) -> impl Iterator<Item = Interest> {
    let names = [Some(name.clone()), name.glob_parent()].into_iter().flatten().chain(aliases(resource));
    names.map(Interest::Name).chain([Interest::Wildcard])
}

fn aliases(resource: Option<&Resource<Frame>>) -> impl Iterator<Item = ResourceName> {
    resource.into_iter().flat_map(|resource| resource.value.aliases())
}

fn covers(collection: &Interest, name: &ResourceName) -> bool {
    match collection {
        Interest::Wildcard => true,
        Interest::Name(glob) => name.answers(glob),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use prost::Message;
    use xds_transport::client::{self, Stream};
    use xds_transport::wire::{Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource};
    use xds_transport::{Protocol, TypeRules};

    use super::*;

    const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/dir/*";
    const MEMBER: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/dir/x";

    /// The store, on a machine whose origin is the test.
    struct Harness {
        store: Arc<Store>,
        feed: Feed,
        machine: Stream,
    }

    impl Harness {
        fn new() -> Self {
            let store = Arc::new(Store::default());
            let mut machine = Stream::new(Protocol::Delta, Bytes::new(), Arc::new(TypeRules::envoy()));
            machine.connected(Instant::now());
            Self { feed: Feed::new(Arc::clone(&store)), store, machine }
        }

        fn watch(&self, name: &str) -> WatcherId {
            self.store.watch(&CDS.into(), &interest(name), Arc::default())
        }

        fn unwatch(&self, name: &str, id: WatcherId) {
            self.store.unwatch(&CDS.into(), &interest(name), id);
        }

        fn events(&self, name: &str, id: WatcherId) -> Vec<String> {
            let next = || self.store.next(&CDS.into(), &interest(name), id);
            let text = |event| match event {
                Event::Put { name, version, .. } => format!("{name}@{version}"),
                Event::Removed { name } => format!("-{name}"),
                Event::Answered => "answered".into(),
            };
            std::iter::from_fn(next).map(text).collect()
        }

        /// What the machine asks for, as (subscribe, unsubscribe).
        fn asked(&mut self) -> Vec<(Vec<String>, Vec<String>)> {
            self.feed.commands(Instant::now(), &mut |command| self.machine.apply(command));
            std::iter::from_fn(|| self.machine.poll_transmit(Instant::now()))
                .map(|request| DeltaDiscoveryRequest::decode(request).unwrap())
                .filter(|request| request.response_nonce.is_empty())
                .map(|request| (request.resource_names_subscribe, request.resource_names_unsubscribe))
                .collect()
        }

        fn respond(&mut self, resources: &[(&str, &str)], removed: &[&str]) {
            self.respond_with(resources, removed, &[]);
        }

        fn respond_with(&mut self, resources: &[(&str, &str)], removed: &[&str], aliases: &[&str]) {
            let resource = |(name, version): &(&str, &str)| Resource {
                name: (*name).into(),
                version: (*version).into(),
                aliases: aliases.iter().map(|alias| (*alias).into()).collect(),
                resource: Some(Any { type_url: CDS.into(), value: version.as_bytes().to_vec().into() }),
                ..Resource::default()
            };
            let response = DeltaDiscoveryResponse {
                type_url: CDS.into(),
                nonce: "n".into(),
                resources: resources.iter().map(resource).collect(),
                removed_resources: removed.iter().map(|name| (*name).into()).collect(),
                ..DeltaDiscoveryResponse::default()
            };
            let now = Instant::now();
            self.machine.handle_message(now, response.encode_to_vec().into()).unwrap();
            while let Some(client::Event::Update(update)) = self.machine.poll_event() {
                let id = update.id;
                let verdict = self.feed.update(now, update);
                self.machine.apply(Command::Finish(id, verdict));
            }
        }
    }

    fn interest(name: &str) -> Interest {
        ResourceName::parse(name).unwrap().into()
    }

    #[test]
    fn a_slow_watcher_sees_the_newest_state_of_each_name_once() {
        let mut harness = Harness::new();
        let id = harness.watch("*");
        assert_eq!(harness.asked().len(), 1);
        harness.respond(&[("a", "1"), ("b", "1"), ("c", "1")], &[]);
        harness.respond(&[("a", "2")], &["c"]);
        harness.respond(&[("a", "3")], &[]);
        assert_eq!(harness.events("*", id), ["a@3", "b@1", "-c", "answered"]);
        assert!(harness.events("*", id).is_empty());
    }

    #[test]
    fn watches_of_one_interest_share_a_subscription_and_the_last_one_ends_it() {
        let mut harness = Harness::new();
        let first = harness.watch("a");
        assert_eq!(harness.asked(), [(vec!["a".to_owned()], vec![])]);
        harness.respond(&[("a", "1")], &[]);
        let second = harness.watch("a");
        assert!(harness.asked().is_empty());
        assert_eq!(harness.events("a", second), ["a@1"]);
        harness.unwatch("a", first);
        assert!(harness.asked().is_empty());
        harness.unwatch("a", second);
        assert_eq!(harness.asked(), [(vec![], vec!["a".to_owned()])]);
        assert!(harness.store.lock().types.is_empty());
    }

    #[test]
    fn a_watch_that_replaces_another_at_once_keeps_its_state() {
        let mut harness = Harness::new();
        let first = harness.watch("a");
        harness.asked();
        harness.respond(&[("a", "1")], &[]);
        harness.unwatch("a", first);
        let second = harness.watch("a");
        assert!(harness.asked().is_empty());
        assert_eq!(harness.events("a", second), ["a@1"]);
    }

    #[test]
    fn a_name_that_does_not_exist_is_removed_for_those_who_name_it_only() {
        let mut harness = Harness::new();
        let (named, all) = (harness.watch("a"), harness.watch("*"));
        harness.asked();
        harness.respond(&[], &["a"]);
        assert_eq!(harness.events("a", named), ["-a"]);
        assert_eq!(harness.events("*", all), ["answered"]);
        let late = harness.watch("a");
        assert_eq!(harness.events("a", late), ["-a"]);
    }

    #[test]
    fn rule_105_who_watches_an_alias_sees_the_resource_it_stands_for() {
        let mut harness = Harness::new();
        let id = harness.watch("alias");
        harness.asked();
        harness.respond(&[("a", "1")], &[]);
        assert_eq!(harness.events("alias", id), [""; 0]);
        harness.respond_with(&[("a", "1")], &[], &["alias"]);
        assert_eq!(harness.events("alias", id), ["a@1"]);
        let late = harness.watch("alias");
        assert_eq!(harness.events("alias", late), ["a@1"]);
        harness.respond(&[], &["a"]);
        assert_eq!(harness.events("alias", id), ["-a"]);
    }

    #[test]
    fn a_glob_sees_its_members_and_that_it_is_empty() {
        let mut harness = Harness::new();
        let id = harness.watch(GLOB);
        harness.asked();
        harness.respond(&[], &[GLOB]);
        assert_eq!(harness.events(GLOB, id), ["answered"]);
        harness.respond(&[(MEMBER, "1")], &[]);
        assert_eq!(harness.events(GLOB, id), [format!("{MEMBER}@1")]);
        harness.respond(&[], &[MEMBER]);
        assert_eq!(harness.events(GLOB, id), [format!("-{MEMBER}")]);
    }
}
