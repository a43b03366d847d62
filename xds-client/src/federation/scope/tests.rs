use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::task::Wake;

use bytes::Bytes;
use prost::Message as _;
use xds_transport::client::{Command, Event, Stream};
use xds_transport::wire::{Any, DeltaDiscoveryResponse, Resource as WireResource};
use xds_transport::{Protocol, TypeRules};
use xdstp_cache::{Interest, Pull, Removals, ResourceError};
use xdstp_uri::ResourceName;

use super::asking::OPENING;
use super::*;
use crate::federation::changes::Changes;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// What a stream makes of a response with these names.
fn came(now: Instant, names: &[&str]) -> Changes {
    let resource = |name: &&str| WireResource {
        name: (*name).into(),
        resource: Some(Any { type_url: CDS.into(), ..Default::default() }),
        ..Default::default()
    };
    let resources = names.iter().map(resource).collect();
    let response = DeltaDiscoveryResponse { type_url: CDS.into(), resources, ..Default::default() };
    let mut stream = Stream::new(Protocol::Delta, Bytes::new(), Arc::new(TypeRules::envoy()));
    stream.apply(Command::Subscribe(CDS.into(), Interest::Wildcard));
    stream.connected(now);
    while stream.poll_transmit(now).is_some() {}
    stream.handle_message(now, response.encode_to_vec().into()).unwrap();
    let Some(Event::Update(update)) = stream.poll_event() else { panic!("no update") };
    Changes { changed: update.changed, ..Changes::default() }
}

/// Another thread gives up names for want of room; the stream tells the origin a moment later.
#[test]
fn what_comes_as_it_is_given_up_is_not_kept() {
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    let now = Instant::now();
    let scope = Scope::streamed(ScopeKey::EveryNode, 0, Duration::from_secs(3600), None, 1);
    let type_url = CDS.into();
    let id = scope.open(&type_url, Waker::noop().clone());
    let interests = ["a", "b", "c"].map(|name| Interest::Name(name.parse().unwrap()));
    for interest in &interests {
        scope.subscribe(&type_url, id, interest);
    }
    while scope.take_asks(now, (0, 0), true, &mut |_| ()) {}
    for left in &interests[..2] {
        scope.unsubscribe(&type_url, id, left);
    }
    scope.store(&type_url, came(now, &["a"]), now);
    assert!(scope.forgo(&type_url, now) > 0);
    scope.store(&type_url, came(now, &["b", "c"]), now);
    let mut held = Vec::new();
    scope.visit_stored(|stored| stored.name.to_string(), |name| held.push(name));
    assert_eq!(held, ["c"]);
}

/// Long first requests, one after the other, would keep the origin from being asked for anything else.
#[test]
fn what_others_want_waits_for_a_first_request_only_for_a_while() {
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    let now = Instant::now();
    let scope = Scope::streamed(ScopeKey::EveryNode, 0, Duration::ZERO, None, 1);
    let type_url = CDS.into();
    let asked = |now| {
        let mut asked = 0;
        while scope.take_asks(now, (0, 0), true, &mut |_| asked += 1) {}
        asked
    };
    scope.begin_opening();
    let id = scope.open(&type_url, Waker::noop().clone());
    for name in ["a", "b"] {
        scope.subscribe(&type_url, id, &Interest::Name(name.parse().unwrap()));
    }
    assert_eq!((asked(now), scope.poll_timeout()), (0, Some(now + OPENING)));
    assert_eq!((asked(now + OPENING), scope.poll_timeout()), (2, None));
    // Another begins before that one has ended.
    scope.begin_opening();
    scope.end_opening();
    scope.subscribe(&type_url, id, &Interest::Name("c".parse().unwrap()));
    assert_eq!((asked(now + OPENING), scope.poll_timeout()), (0, Some(now + 2 * OPENING)));
    scope.end_opening();
    assert_eq!((asked(now + OPENING), scope.poll_timeout()), (1, None));
}

/// What one server says crosses what another does, on threads of their own.
#[test]
fn client_rule_069_what_a_server_says_that_does_not_count_is_dropped() {
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    let now = Instant::now();
    let scope = Scope::streamed(ScopeKey::EveryNode, 0, Duration::from_secs(3600), None, 1);
    let type_url = CDS.into();
    scope.choose_among(&["first".into(), "second".into()].into());
    let id = scope.open(&type_url, Waker::noop().clone());
    for name in ["a", "b"] {
        scope.subscribe(&type_url, id, &Interest::Name(name.parse().unwrap()));
    }
    let comes = |server, name| {
        scope.store(&type_url, Changes { server, ..came(now, &[name]) }, now);
        let mut held = Vec::new();
        scope.visit_stored(|stored| stored.name.to_string(), |name| held.push(name));
        held.join(" ")
    };
    assert_eq!((scope.asks(), comes(1, "a")), (1, String::new()), "nobody asked the second");
    scope.failed(0, "refused", true);
    assert_eq!(scope.asks(), 2);
    assert!(!scope.answered(1), "none counted before");
    assert_eq!(comes(0, "a"), "");
    assert_eq!(comes(1, "a"), "a");
    assert!(scope.answered(0));
    assert_eq!((scope.asks(), comes(1, "b")), (1, "a".to_owned()), "it was left");
    assert_eq!(comes(0, "b"), "a b");
}

/// It is looked at in parts, and what was known before a restart is served meanwhile.
#[test]
fn what_is_served_of_others_while_it_is_noted_what_is_held_is_of_others_too() {
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    let now = Instant::now();
    let scope = Scope::streamed(ScopeKey::EveryNode, 0, Duration::from_secs(3600), None, 1);
    let type_url: TypeUrl = CDS.into();
    scope.store(&type_url, came(now, &["a"]), now);
    let turn = scope.lock().of_others.begin();
    scope.lock().of_others.holds(type_url.clone(), "b".parse().unwrap());
    scope.note_held(turn);
    let mut held: Vec<_> = scope.lock().of_others.held[&type_url].iter().map(ToString::to_string).collect();
    held.sort();
    assert_eq!(held, ["a", "b"]);
}

/// A scope of which somebody asks for these, and the first request for that was taken.
fn asking(now: Instant, interests: &[&str]) -> (Arc<Scope>, SubscriberId) {
    let scope = Arc::new(Scope::streamed(ScopeKey::EveryNode, 0, Duration::from_secs(3600), None, 1));
    let id = scope.open(&CDS.into(), Waker::noop().clone());
    for interest in interests {
        scope.subscribe(&CDS.into(), id, &Interest::from(interest.parse::<ResourceName>().unwrap()));
    }
    while scope.take_asks(now, (0, 0), true, &mut |_| ()) {}
    (scope, id)
}

const GLOB: &str = "xdstp://x/envoy.config.cluster.v3.Cluster/d/*";
const MEMBER: &str = "xdstp://x/envoy.config.cluster.v3.Cluster/d/a";

fn refuse(scope: &Scope, now: Instant, collection: &str, code: i32) {
    let errors = vec![(collection.parse().unwrap(), ResourceError::new(code, "no"))];
    let refused = [Interest::from(collection.parse::<ResourceName>().unwrap())].into();
    scope.store(&CDS.into(), Changes { errors, refused, ..Changes::default() }, now);
}

fn is_refused(scope: &Scope, collection: &str) -> bool {
    scope.lock().cache.error(&CDS.into(), &collection.parse().unwrap()).is_some()
}

#[test]
fn rule_118_a_collection_recovers_with_what_nobody_names_and_its_server_does_not_withhold() {
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    let now = Instant::now();
    for (asked, named, member) in [("*", "b", "a"), (GLOB, "xdstp://x/envoy.config.cluster.v3.Cluster/d/b", MEMBER)] {
        let (scope, _) = asking(now, &[asked, named]);
        refuse(&scope, now, asked, 7);
        let withheld = [Interest::from(asked.parse::<ResourceName>().unwrap())].into();
        for (name, refused, stays) in [(named, [].into(), true), (member, withheld, true), (member, [].into(), false)] {
            scope.store(&CDS.into(), Changes { refused, ..came(now, &[name]) }, now);
            assert_eq!(is_refused(&scope, asked), stays, "{asked} {name}");
        }
    }
}

#[test]
fn rule_118_a_wildcard_recovers_with_what_no_other_scope_of_its_stream_asks_for() {
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    let now = Instant::now();
    let (scope, _) = asking(now, &["*"]);
    refuse(&scope, now, "*", 7);
    for (asked_elsewhere, stays) in [(BTreeSet::from([MEMBER.parse().unwrap()]), true), (BTreeSet::new(), false)] {
        scope.store(&CDS.into(), Changes { asked_elsewhere, ..came(now, &[MEMBER]) }, now);
        assert_eq!(is_refused(&scope, "*"), stays);
    }
}

/// A member that is yet to be stored is no reason to say that there is none.
#[test]
fn rule_118_a_glob_recovers_with_the_part_of_an_update_that_has_its_member() {
    struct Told(Mutex<Option<(Arc<Scope>, SubscriberId)>>, Mutex<Vec<String>>);
    impl Wake for Told {
        fn wake(self: Arc<Self>) {
            let Some((scope, id)) = &*self.0.lock().unwrap() else { return };
            scope.pull(*id, Removals::Include, &mut |pull| {
                self.1.lock().unwrap().push(match pull {
                    Pull::Put { name, .. } => name.to_string(),
                    Pull::Removed { name, .. } => format!("-{name}"),
                    _ => String::new(),
                });
                ControlFlow::Continue(())
            });
            scope.pull_errors(*id, Removals::Include, &mut |_| ControlFlow::Continue(()));
        }
    }
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    let now = Instant::now();
    let (scope, _) = asking(now, &[GLOB, "*"]);
    let told = Arc::new(Told(Mutex::default(), Mutex::default()));
    let id = scope.open(&CDS.into(), told.clone().into());
    *told.0.lock().unwrap() = Some((scope.clone(), id));
    for interest in [GLOB, "*"] {
        scope.subscribe(&CDS.into(), id, &Interest::from(interest.parse::<ResourceName>().unwrap()));
    }
    let complete = vec![Interest::from(GLOB.parse::<ResourceName>().unwrap())];
    scope.store(&CDS.into(), Changes { complete, ..Changes::default() }, now);
    refuse(&scope, now, GLOB, 14);
    told.clone().wake();
    told.1.lock().unwrap().clear();
    let names: Vec<_> = (0..2 * BATCH).map(|name| format!("c{name}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).chain([MEMBER]).collect();
    scope.store(&CDS.into(), came(now, &names), now);
    told.clone().wake();
    assert!(!is_refused(&scope, GLOB));
    let mut said = std::mem::take(&mut *told.1.lock().unwrap());
    assert!(said.contains(&MEMBER.to_owned()));
    said.retain(|name| name.starts_with('-'));
    assert_eq!(said, [""; 0]);
}
