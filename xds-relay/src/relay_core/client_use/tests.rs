mod parts;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use xds_transport::server::{Source as _, Stream, Tally};
use xds_transport::{Frame, Protocol};
use xdstp_cache::{Interest, Stored, SubscriberId, TypeUrl, Version};
use xdstp_client::federation::{NodeGroup, Routes};
use xdstp_uri::{CanonicalText, ResourceName};

use super::*;
use crate::config::Config;
use crate::metrics::{Gauges, Metrics};
use crate::relay_core::{RelayCore, ServedStream, ShareBy};

#[path = "../../../tests/support/unreached.rs"]
mod unreached;

use self::unreached::Unreached;

const SECOND: Duration = Duration::from_secs(1);

struct World {
    core: Arc<RelayCore>,
    now: Instant,
}

/// A stream of a client, which asks for endpoints.
struct Served {
    routes: Routes,
    id: SubscriberId,
    outside: Arc<Unreached>,
}

impl World {
    /// In which clients have what their rules say, and no part of what all have.
    fn new() -> Self {
        Self::with("one_client: 100%")
    }

    fn with(limits: &str) -> Self {
        let origin = "{ name: up, server: '127.0.0.1:1', authorities: [x, y, z] }";
        let text = format!("{{ origins: [{origin}], linger: 5s, share_by: [id], limits: {{ {limits} }} }}");
        Self::of(&Config::parse("relay.yaml", &text).unwrap())
    }

    fn of(config: &Config) -> Self {
        let dial = Box::new(crate::origins::Connections::new(config).unwrap());
        let grouping = Box::new(ShareBy::new(config.share_by.clone().unwrap()));
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let now = Instant::now();
        Self { core: RelayCore::new(config, grouping, dial, Arc::new(Metrics::new([]))), now }
    }

    fn admit(&self, client: u8, limits: ClientLimits) -> Result<ClientUse, String> {
        self.admit_as(Identity::Token([client; 32]), Some((3, limits)))
    }

    fn admit_as(&self, client: Identity, under: Option<(usize, ClientLimits)>) -> Result<ClientUse, String> {
        let admitted = self.core.admit_client((client, false), under, self.now);
        admitted.map_err(|error| error.to_string())
    }

    fn open(&self, client: u8, node: &str, limits: ClientLimits) -> Served {
        self.served(self.admit(client, limits).unwrap(), node)
    }

    /// A stream of a client where there are no rules.
    fn open_without(&self, client: Identity, node: &str) -> Served {
        self.served(self.admit_as(client, None).unwrap(), node)
    }

    fn served(&self, client: ClientUse, node: &str) -> Served {
        let outside = Arc::new(Unreached(client));
        let mut routes = self.core.open_stream(Protocol::Delta, Waker::noop().clone(), Some(outside.clone()));
        routes.identify(&Bytes::from([&[10, node.len() as u8], node.as_bytes()].concat())).unwrap();
        let id = routes.open(&"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment".into());
        Served { routes, id, outside }
    }

    fn advance(&mut self, time: Duration) {
        self.now += time;
        self.core.sweep(self.now);
    }

    fn refused(&self, limit: &str) -> Option<String> {
        let line = format!("xds_relay_client_refused_total{{limit=\"{limit}\",rule=\"3\"}} ");
        let text = self.core.metrics().render(&Gauges::default());
        text.lines().find_map(|text| text.strip_prefix(&line).map(str::to_owned))
    }
}

impl Served {
    /// Why its stream ends, if it does.
    fn ask(&mut self, name: &str) -> Option<String> {
        self.routes.subscribe(self.id, &interest(name));
        self.routes.refused().map(|refused| refused.to_string())
    }

    /// Of what it holds, it brings these names along.
    fn bring(&mut self, names: &[&str]) -> Option<String> {
        let held = names.iter().map(|name| (name.parse().unwrap(), Version::from("1"))).collect();
        self.routes.resume(self.id, held);
        self.routes.refused().map(|refused| refused.to_string())
    }

    fn leave(&mut self, name: &str) {
        self.routes.unsubscribe(self.id, &interest(name));
    }

    fn used(&self, limit: ClientLimit) -> usize {
        self.outside.0.uses().find(|(of, ..)| *of == limit).map(|(_, used, _)| used).unwrap()
    }
}

fn interest(name: &str) -> Interest {
    Interest::from(name.parse::<ResourceName>().unwrap())
}

fn of(authority: &str) -> String {
    format!("xdstp://{authority}/envoy.config.endpoint.v3.ClusterLoadAssignment/a")
}

fn limits(set: impl FnOnce(&mut ClientLimits)) -> ClientLimits {
    let mut limits = ClientLimits::default();
    set(&mut limits);
    limits
}

#[test]
fn one_client_has_so_many_streams_and_another_as_many_whatever_that_one_has() {
    let world = World::new();
    let two = limits(|limits| limits.streams = NonZeroUsize::new(2));
    let mut ours = vec![world.open(1, "a", two), world.open(1, "b", two)];
    let words = "more than 2 streams of one client (clients[].limits.streams of the relay)";
    assert_eq!(world.admit(1, two).err().as_deref(), Some(words));
    assert_eq!(world.refused("streams").as_deref(), Some("1"));
    let _theirs = [world.open(2, "a", two), world.open(2, "b", two)];
    ours.pop();
    assert!(world.admit(1, two).is_ok(), "one was given back");
    // Of load reports there are others, and without limits there is none.
    let report = world.core.admit_client((Identity::Token([1; 32]), true), Some((3, two)), world.now);
    assert!(report.is_ok() && world.admit(2, ClientLimits::default()).is_ok());
}

#[test]
fn one_client_opens_so_many_streams_a_second_and_none_counts_that_was_refused_for_another_reason() {
    let mut world = World::new();
    let rate = limits(|limits| limits.new_streams_per_second = NonZeroUsize::new(2));
    world.admit(1, rate).unwrap().undo(world.now);
    assert_eq!(world.core.client_uses.count(), 0, "nothing is left of it");
    let opened: Vec<_> = (0..3).map(|_| world.admit(1, rate).map(drop)).collect();
    let words = "more than 2 new streams of one client a second (clients[].limits.new_streams_per_second of the relay)";
    assert_eq!(opened, [Ok(()), Ok(()), Err(words.to_owned())]);
    assert!(world.admit(2, rate).is_ok());
    assert_eq!(world.core.client_uses.count(), 2, "that they opened some is remembered");
    world.advance(SECOND / 2);
    assert!(world.admit(1, rate).is_ok() && world.admit(1, rate).is_err());
    world.advance(2 * SECOND);
    assert_eq!(world.core.client_uses.count(), 0);
}

#[test]
fn who_has_two_rules_opens_no_more_streams_than_by_one_of_them() {
    let world = World::new();
    let per_second = |most| limits(|limits| limits.new_streams_per_second = NonZeroUsize::new(most));
    let (two, hundred, any) = (per_second(2), per_second(100), ClientLimits::default());
    let opened = (0..20).filter(|_| {
        let opened = world.admit(1, two).is_ok();
        // By a rule that allows more, and by one that does not say.
        assert!(world.admit(1, hundred).is_ok() && world.admit(1, any).is_ok());
        opened
    });
    assert!(opened.count() <= 2);
    let refused = world.admit(1, two).is_err();
    world.admit(1, any).unwrap().undo(world.now);
    assert!(refused && world.admit(1, two).is_err(), "what took nothing gives nothing back");
}

/// Where who opens a stream waits for a scope, this never ends.
#[tokio::test(start_paused = true)]
async fn a_scope_that_is_busy_keeps_nobody_from_opening_a_stream() {
    let world = World::new();
    let one = limits(|limits| limits.groups = NonZeroUsize::new(1));
    assert_eq!(world.open(1, "n", one).ask("a"), None);
    let (uses, federation) = (&world.core.client_uses, &world.core.federation);
    let scope = federation.scopes().pop().unwrap();
    let endpoints: TypeUrl = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment".into();
    let resource = Frame::of_message(&endpoints, b"\x0a\x01a").into_resource(None);
    scope.replace(&[(endpoints, "a".parse().unwrap(), resource)], world.now);
    let opened = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        // The scope is locked while something of it is picked.
        let busy = |_: Stored<'_, Frame>| {
            threads.spawn(|| uses.sweep(federation, world.now));
            for _ in 0..1000 {
                std::thread::yield_now();
                let admitted = [world.admit(1, one).is_ok(), world.admit(2, one).is_ok()];
                opened.fetch_add(admitted.iter().filter(|is| **is).count(), Ordering::Relaxed);
            }
        };
        scope.visit_stored(busy, |()| {});
    });
    assert_eq!(opened.into_inner(), 2000);
}

#[tokio::test(start_paused = true)]
async fn one_client_has_so_many_names_over_all_of_its_streams() {
    let world = World::new();
    let three = limits(|limits| limits.names = NonZeroUsize::new(3));
    let (mut one, mut other, mut stranger) =
        (world.open(1, "n", three), world.open(1, "m", three), world.open(2, "n", three));
    assert_eq!([one.ask("a"), one.ask("a"), one.ask("b"), other.ask("a")], [const { None }; 4]);
    assert_eq!(other.used(ClientLimit::Names), 3);
    let words = "more than 3 names of one client (clients[].limits.names of the relay)";
    assert_eq!(other.ask("b").as_deref(), Some(words));
    assert_eq!(world.refused("names").as_deref(), Some("1"));
    assert_eq!(["a", "b", "c"].map(|name| stranger.ask(name)), [const { None }; 3], "that costs nobody else");
    drop(other);
    one.leave("b");
    assert_eq!(one.used(ClientLimit::Names), 1, "what was not let in is not given back");
    assert_eq!(["b", "c"].map(|name| one.ask(name)), [None, None]);
    assert!(one.ask("d").is_some());
    drop((one, stranger));
    assert_eq!(world.core.client_uses.count(), 0, "whoever has no stream leaves nothing");
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_with_what_it_holds_has_the_names_that_it_asks_for_and_no_more() {
    let world = World::new();
    let three = limits(|limits| limits.names = NonZeroUsize::new(3));
    let of_all = || world.core.gauges().limits["names"].0;
    // Of everything it was sent more than it may name.
    let mut by_wildcard = world.open(1, "n", three);
    assert_eq!([by_wildcard.ask("*"), by_wildcard.bring(&["a", "b", "c", "d", "e", "f"])], [const { None }; 2]);
    assert_eq!((by_wildcard.used(ClientLimit::Names), of_all()), (1, 7), "it counts among what all have");
    drop(by_wildcard);
    assert_eq!(of_all(), 0);
    let (mut by_name, mut other) = (world.open(1, "n", three), world.open(1, "m", three));
    assert_eq!([by_name.ask("a"), by_name.ask("b"), by_name.bring(&["a", "b"])], [const { None }; 3]);
    assert_eq!((by_name.used(ClientLimit::Names), of_all()), (2, 4));
    let id = by_name.id;
    by_name.routes.close(id, &Tally::default());
    assert_eq!((by_name.used(ClientLimit::Names), of_all()), (0, 0));
    assert_eq!(other.ask("a"), None);
    drop(by_name);
    assert_eq!(other.used(ClientLimit::Names), 1, "nothing is given back twice");
}

#[tokio::test(start_paused = true)]
async fn of_a_request_for_more_than_there_may_be_no_origin_hears_what_is_too_much() {
    let world = World::new();
    let three = limits(|limits| {
        limits.names = NonZeroUsize::new(3);
        limits.authorities = NonZeroUsize::new(1);
    });
    let mut theirs = world.open(2, "n", ClientLimits::default());
    let names: Vec<_> = (0..1000).map(|at| at.to_string()).collect();
    names.iter().skip(500).for_each(|name| assert_eq!(theirs.ask(name), None));
    let asked = || world.core.federation.scopes().iter().map(|scope| scope.subscription_count()).sum::<usize>();
    assert_eq!(asked(), 500);
    let mut ours = world.open(1, "n", three);
    names.iter().for_each(|name| _ = ours.routes.subscribe(ours.id, &interest(name)));
    assert_eq!((asked(), ours.used(ClientLimit::Names)), (503, 3));
    // What others ask for, too, is no way round it.
    let known = names.iter().map(|name| ours.routes.subscribe_known(ours.id, &CanonicalText::new(name)));
    assert_eq!((known.flatten().count(), ours.used(ClientLimit::Names)), (0, 3));
    assert!(ours.routes.refused().is_some());
    assert_eq!([ours.ask("0"), ours.ask("2")], [None, None], "it has these");
    assert!(ours.ask("999").is_some());
    drop(ours);
    let mut ours = world.open(1, "n", three);
    [of("x"), of("y"), of("z"), format!("{}b", of("x"))]
        .iter()
        .for_each(|name| _ = ours.routes.subscribe(ours.id, &interest(name)));
    let of_x = world.core.federation.scope_of(&ScopeKey::Authority("x".to_owned())).unwrap();
    assert_eq!((of_x.subscription_count(), world.core.federation.scopes().len()), (1, 2));
    assert!(ours.routes.refused().is_some());
}

#[tokio::test(start_paused = true)]
async fn one_client_is_in_so_many_groups_and_one_that_it_left_counts_while_it_costs_something() {
    let mut world = World::new();
    let two = limits(|limits| limits.groups = NonZeroUsize::new(2));
    let [mut a, mut b, mut c] = ["a", "b", "c"].map(|node| world.open(1, node, two));
    assert_eq!([a.ask("x"), b.ask("x")], [None, None]);
    let words = "more than 2 node groups of one client (clients[].limits.groups of the relay)";
    assert_eq!(c.ask("x").as_deref(), Some(words));
    assert_eq!(world.core.federation.scopes().len(), 2, "what it may not have costs nobody anything");
    // A second stream in a group is no second group.
    let mut again = world.open(1, "a", two);
    assert_eq!(again.ask("x"), None);
    let mut theirs = world.open(2, "c", two);
    assert_eq!(theirs.ask("x"), None, "another client may");
    drop((again, c, b));
    world.advance(SECOND);
    let mut next = world.open(1, "d", two);
    assert_eq!(next.ask("x").as_deref(), Some(words), "the one that it left stays for the linger time");
    drop(next);
    // Once others are in it, it is theirs.
    let mut with_others = world.open(2, "b", two);
    assert_eq!(with_others.ask("x"), None);
    let mut next = world.open(1, "d", two);
    assert_eq!(next.ask("x"), None);
    assert_eq!(next.used(ClientLimit::Groups), 2);
    drop(a);
}

#[tokio::test(start_paused = true)]
async fn one_client_has_names_of_so_many_authorities() {
    let world = World::new();
    let two = limits(|limits| limits.authorities = NonZeroUsize::new(2));
    let [mut one, mut other] = ["n", "m"].map(|node| world.open(1, node, two));
    assert_eq!([one.ask(&of("x")), other.ask(&of("y")), other.ask(&of("x"))], [const { None }; 3]);
    let words = "more than 2 authorities of one client (clients[].limits.authorities of the relay)";
    assert_eq!(one.ask(&of("z")).as_deref(), Some(words));
    assert_eq!(world.core.federation.scopes().len(), 2);
    assert_eq!((one.used(ClientLimit::Authorities), other.used(ClientLimit::Authorities)), (2, 2));
}

#[test]
fn a_scope_that_is_gone_does_not_count_and_who_left_is_forgotten_with_it() {
    let mut world = World::new();
    let one = limits(|limits| limits.authorities = NonZeroUsize::new(1));
    let (client, federation) = (world.admit(1, one).unwrap(), world.core.federation.clone());
    let key = |authority: &str| ScopeKey::Authority(authority.to_owned());
    // Twice, as two of its streams are served from there.
    assert!(client.enters(&key("x"), &federation).is_ok() && client.enters(&key("x"), &federation).is_ok());
    client.leaves(&key("x"));
    assert!(client.enters(&key("y"), &federation).is_err(), "it is in the other still");
    client.leaves(&key("x"));
    // There is no such scope, so that it costs nothing.
    assert!(client.enters(&key("y"), &federation).is_ok());
    client.leaves(&key("y"));
    drop(client);
    assert_eq!(world.core.client_uses.count(), 1, "it has left something");
    world.advance(SECOND);
    assert_eq!(world.core.client_uses.count(), 0);
}

/// However often it is refused, and whatever it left: each is a scope that others may be busy with.
#[test]
fn for_who_is_refused_few_of_the_scopes_that_it_left_are_looked_at_until_the_next_sweep() {
    const MOST: usize = 3000;
    let mut world = World::new();
    let most = NonZeroUsize::new(MOST);
    let allowed = limits(|limits| (limits.authorities, limits.groups) = (most, most));
    let (client, federation) = (world.admit(1, allowed).unwrap(), world.core.federation.clone());
    let key = |authority: usize| ScopeKey::Authority(authority.to_string());
    let enters = |authority: usize| client.enters(&key(authority), &federation).is_ok();
    let used = |limit| client.uses().find(|(of, ..)| *of == limit).map(|(_, used, _)| used).unwrap();
    // There are no such scopes: whoever looks finds that they cost nothing.
    let group = ScopeKey::Group(0, NodeGroup::new(b"g".to_vec(), "g".to_owned()));
    assert!(client.enters(&group, &federation).is_ok());
    client.leaves(&group);
    assert!((0..MOST).all(enters));
    (0..MOST).for_each(|authority| client.leaves(&key(authority)));
    assert!(enters(MOST));
    assert_eq!(
        (used(ClientLimit::Authorities), used(ClientLimit::Groups)),
        (MOST - 1023, 1),
        "of its kind, and so many"
    );
    let more = (MOST + 1..).take_while(|authority| enters(*authority)).count();
    assert_eq!(more, 1023, "then none are looked at");
    world.advance(SECOND);
    assert_eq!((used(ClientLimit::Authorities), used(ClientLimit::Groups)), (1024, 0));
    assert!(enters(0));
    client.leaves(&key(0));
    assert_eq!((1..).take_while(|authority| enters(*authority)).count(), MOST - 1024, "and now it is");
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_new_holds_for_what_is_there_and_ends_nothing() {
    let world = World::new();
    let mut served = world.open(1, "n", ClientLimits::default());
    assert_eq!(["a", "b", "c"].map(|name| served.ask(name)), [const { None }; 3]);
    served.outside.0.is_under(Some((5, limits(|limits| limits.names = NonZeroUsize::new(2)))));
    assert_eq!(served.routes.refused(), None);
    assert!(served.ask("d").is_some(), "there are three");
    assert_eq!(served.outside.0.rule(), Some(5));
    served.outside.0.is_under(Some((5, limits(|limits| limits.names = NonZeroUsize::new(5)))));
    assert_eq!(served.ask("e"), None);
}

#[tokio::test]
async fn what_is_served_from_a_release_is_of_no_group_and_what_is_beside_it_is_of_one_until_it_is_left() {
    let text = "{ origins: [{ name: up, server: '127.0.0.1:1', follow: {} }], linger: 5s, share_by: [id], state: { path: . }, \
                rollout: [{ scope: old-style }], limits: { one_client: 100% } }";
    let config = Config::parse("relay.yaml", text).unwrap();
    let mut world = World::of(&config);
    world.core.roll_out(config.rollout[0].clone(), Arc::<crate::state::Memory>::default(), world.now).unwrap();
    let mut served = world.open(1, "a", ClientLimits::default());
    let clusters = served.routes.open(&"type.googleapis.com/envoy.config.cluster.v3.Cluster".into());
    for _ in 0..2 {
        served.routes.subscribe(clusters, &interest("c"));
        assert_eq!(served.used(ClientLimit::Groups), 0);
        assert_eq!(served.ask("c"), None);
        assert_eq!(served.used(ClientLimit::Groups), 1);
        served.routes.unsubscribe(clusters, &interest("c"));
        assert_eq!(served.used(ClientLimit::Groups), 1);
        served.leave("c");
        world.advance(60 * SECOND);
        assert_eq!(served.used(ClientLimit::Groups), 0);
    }
}
