//! A control plane that the relay follows: what it has is released, and it is asked for everything else as clients want it.

use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use xds_relay::admin::Readiness;
use xds_relay::api::{ExplainQuery, OriginState};
use xds_relay::config::Rollout;
use xds_relay::releases::{Act, By, Order, Progress, Release, Stage, Stages, Transition, Who};
use xds_relay::state::Memory;
use xds_transport::Frame;
use xds_transport::wire::{Any, Node};

use crate::support::replicas::Replicas;
use crate::support::*;

const BOTH: [Protocol; 2] = [DELTA, SOTW];
const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const EXTENSIONS: &str = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
const MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
/// After which a delta origin that says nothing has said all.
const SILENCE: Duration = Duration::from_secs(16);
/// After which what is new is taken.
const TAKEN: Duration = Duration::from_secs(5);
const HOLD: Duration = Duration::from_secs(1200);

fn text(protocol: Protocol) -> String {
    let protocol = if protocol == DELTA { "delta" } else { "sotw" };
    format!(
        "origins: [{{ name: cp, server: '127.0.0.1:1', protocol: {protocol}, follow: {{}} }}]\nstate: {{ path: . }}\n\
         rollout: [{{ scope: old-style }}]\n"
    )
}

/// Canaries first, and then all.
fn rollout() -> Rollout {
    let canaries = Who::Match([("cluster".parse().unwrap(), "canary".to_owned())].into());
    let all = Who::Percent("100%".parse().unwrap());
    Rollout::new(None, Stages::new([canaries, all].map(|who| Stage { who, hold: HOLD })))
}

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    for mut of in [u64::from(number << 3 | 2), content.len() as u64] {
        while of >= 128 {
            field.push(of as u8 | 128);
            of >>= 7;
        }
        field.push(of as u8);
    }
    field.extend(content);
    field
}

/// `ConfigSource { ads: {} }`
fn ads() -> Vec<u8> {
    field(3, b"")
}

/// A Cluster whose endpoints come from the same server.
fn eds_cluster(name: &str, body: &str) -> Frame {
    let fields = [field(1, name.as_bytes()), field(3, &field(1, &ads())), field(1000, body.as_bytes())];
    Frame::of_message(&CLUSTERS.into(), &fields.concat())
}

/// A Listener whose routes come from the same server.
fn listener(name: &str, routes: &str, body: &str) -> Frame {
    listener_by(&ads(), name, routes, body)
}

/// The same, by another source.
fn listener_by(source: &[u8], name: &str, routes: &str, body: &str) -> Frame {
    let manager = field(3, &[field(1, source), field(2, routes.as_bytes())].concat());
    let manager = Any { type_url: MANAGER.to_owned(), value: manager.into() }.encode_to_vec();
    let fields = [field(1, name.as_bytes()), field(19, &field(1, &manager)), field(1000, body.as_bytes())];
    Frame::of_message(&LISTENERS.into(), &fields.concat())
}

/// One relay that follows one control plane, and releases what that has.
struct Mesh {
    world: World,
    protocol: Protocol,
    store: Arc<Memory>,
}

impl Mesh {
    fn new(protocol: Protocol) -> Self {
        Self::of(protocol, &text(protocol), 1)
    }

    fn of(protocol: Protocol, text: &str, servers: usize) -> Self {
        let mut world = World::empty();
        world.origins.extend((0..servers).map(|_| Origin::new()));
        world.add_relay(text, (0..servers).map(Feeder::Origin).collect());
        let mesh = Self { world, protocol, store: Arc::default() };
        mesh.roll_out();
        mesh
    }

    fn roll_out(&self) {
        self.world.relays[0].core.roll_out(rollout(), self.store.clone(), self.world.now).unwrap();
    }

    /// The relay is killed, and starts with what it kept of releases.
    fn restart(&mut self) {
        self.world.restart(0, &text(self.protocol), Memory::default());
        self.roll_out();
    }

    /// All control planes have it.
    fn put(&mut self, of: &str, name: &str, frame: Frame) {
        let now = self.world.now;
        let version = format!("v{}", body_of(frame.any()));
        for origin in &mut self.world.origins {
            origin.put_frame(now, "", of, name, &version, frame.clone());
        }
    }

    /// They have it no more.
    fn drop(&mut self, of: &str, name: &str) {
        let now = self.world.now;
        self.world.origins.iter_mut().for_each(|origin| origin.remove(now, of, name));
    }

    /// Clusters with endpoints, and a listener with a route, each of one body.
    fn fill(&mut self) {
        for name in ["a", "b"] {
            self.put(CLUSTERS, name, eds_cluster(name, "1"));
            self.put(ENDPOINTS, name, frame(ENDPOINTS, name, "1"));
        }
        self.put(LISTENERS, "l", listener("l", "r", "1"));
        self.put(ROUTES, "r", frame(ROUTES, "r", "1"));
    }

    /// One whose control plane has that, and whose first release is stable.
    fn filled(protocol: Protocol) -> Self {
        let mut mesh = Self::new(protocol);
        mesh.fill();
        mesh.world.advance(2 * SILENCE);
        mesh
    }

    /// As an Envoy asks, that knows these names.
    fn client(&mut self, cluster: &str) -> usize {
        let client = self.early(cluster);
        self.world.subscribe(client, ROUTES, &["r2"]);
        self.world.settle();
        client
    }

    /// The same of one that knows only what there is before the first release.
    fn early(&mut self, cluster: &str) -> usize {
        let node = Node { id: "n".into(), cluster: cluster.into(), ..Node::default() };
        let client = self.world.client_with(0, DELTA, &node);
        for of in [LISTENERS, CLUSTERS] {
            self.world.subscribe(client, of, &["*"]);
        }
        self.world.subscribe(client, ROUTES, &["r"]);
        self.world.subscribe(client, ENDPOINTS, &["a", "b", "a2"]);
        self.world.settle();
        client
    }

    fn held(&self, client: usize) -> String {
        let of = |of| self.world.clients[client].held(of).join(" ");
        [LISTENERS, ROUTES, CLUSTERS, ENDPOINTS].map(of).join(" | ")
    }

    fn taken(&mut self) {
        self.world.settle();
        self.world.advance(TAKEN);
    }

    fn order(&mut self, act: Act) -> Transition {
        let order = Order::new(act, By::Person("ann".into()), "a test", self.world.wall());
        let applied = self.world.relays[0].core.order_release(None, &order, self.world.now).unwrap();
        self.world.advance(SECOND);
        applied.transition
    }

    fn releases(&self) -> (Option<Release>, Option<Release>) {
        let control = self.world.relays[0].core.release_control(None).unwrap();
        (control.stable(), control.candidate().map(|of| of.release))
    }

    /// How the origin is, as who looks at the pages sees it.
    fn trouble(&self) -> String {
        let status = self.world.relays[0].core.status(self.world.now).origins.remove(0);
        let is_down = status.state == OriginState::Down;
        if is_down { status.last_error.or(status.hint).unwrap() } else { status.hint.unwrap_or_default() }
    }
}

const STABLE: &str = "l@1 | r@1 | a@1 b@1 | a@1 b@1";

#[test]
fn the_first_release_is_all_that_there_is_and_what_is_in_none_is_asked_for_as_clients_want_it() {
    for protocol in BOTH {
        let mut mesh = Mesh::new(protocol);
        assert!(matches!(mesh.world.relays[0].core.readiness(), Readiness::NotReady(_)));
        mesh.fill();
        mesh.put(EXTENSIONS, "filter", frame(EXTENSIONS, "filter", "1"));
        let client = mesh.early("web");
        mesh.world.advance(2 * SILENCE);
        assert_eq!(mesh.held(client), STABLE);
        assert_eq!((mesh.trouble(), mesh.world.relays[0].core.readiness()), (String::new(), Readiness::Ready));
        // Nothing refers to these that the relay could see.
        mesh.world.told(client);
        mesh.world.subscribe(client, EXTENSIONS, &["filter"]);
        mesh.put(ENDPOINTS, "other", frame(ENDPOINTS, "other", "1"));
        mesh.world.subscribe(client, ENDPOINTS, &["a", "b", "other"]);
        mesh.world.settle();
        assert_eq!(mesh.world.told(client), ["TypedExtensionConfig filter@1", "ClusterLoadAssignment other@1"]);
        let before = mesh.releases();
        mesh.put(ENDPOINTS, "a", frame(ENDPOINTS, "a", "2"));
        mesh.world.settle();
        assert_eq!(mesh.world.told(client), ["ClusterLoadAssignment a@2"]);
        mesh.taken();
        assert_eq!(mesh.releases(), before);
        let asked = mesh.world.asked(0);
        assert!(asked.iter().all(|line| !line.contains("NACK")), "{asked:?}");
    }
}

#[test]
fn who_is_served_what_is_stable_keeps_the_routes_and_endpoints_of_it_while_others_have_what_is_named_otherwise() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        let [canary, other] = ["canary", "other"].map(|cluster| mesh.client(cluster));
        mesh.put(CLUSTERS, "a2", eds_cluster("a2", "1"));
        mesh.put(ENDPOINTS, "a2", frame(ENDPOINTS, "a2", "1"));
        mesh.put(ROUTES, "r2", frame(ROUTES, "r2", "1"));
        mesh.put(LISTENERS, "l", listener("l", "r2", "2"));
        mesh.drop(CLUSTERS, "a");
        mesh.drop(ROUTES, "r");
        mesh.taken();
        let (stable, candidate) = ("l@1 | r@1 | a@1 b@1", "l@2 | r2@1 | a2@1 b@1");
        let endpoints = |of: &str, body: u8| format!("{of} | a@{body} a2@1 b@1");
        let late = mesh.client("other");
        assert_eq!(mesh.held(canary), endpoints(candidate, 1), "{protocol:?}");
        for client in [other, late] {
            assert_eq!(mesh.held(client), endpoints(stable, 1), "{protocol:?}");
        }
        mesh.put(ENDPOINTS, "a", frame(ENDPOINTS, "a", "2"));
        mesh.taken();
        assert_eq!(
            [canary, other, late].map(|client| mesh.held(client)),
            [endpoints(candidate, 2), endpoints(stable, 2), endpoints(stable, 2)]
        );
        assert_eq!(mesh.order(Act::Rollback { to: None }), Transition::RolledBack);
        let late = mesh.client("canary");
        mesh.world.advance(60 * SECOND);
        for client in [canary, other, late] {
            assert_eq!(mesh.held(client), endpoints(stable, 2), "{protocol:?}");
        }
    }
}

/// Listeners, of which one and one that is new refer to a name that the control plane says nothing of, or not whether there is one.
fn name_without_an_answer(protocol: Protocol) -> Mesh {
    let mut mesh = Mesh::filled(protocol);
    if protocol == DELTA {
        mesh.world.fail(0, ROUTES, "nowhere", 14, "later");
    }
    mesh.put(LISTENERS, "l", listener("l", "nowhere", "2"));
    mesh.put(LISTENERS, "new", listener("new", "nowhere", "1"));
    // Over SotW what is said of others lacks it.
    mesh.put(LISTENERS, "k", listener("k", "r2", "1"));
    mesh.put(ROUTES, "r2", frame(ROUTES, "r2", "1"));
    mesh
}

#[test]
fn a_name_without_an_answer_holds_up_what_refers_to_it_and_nothing_else_also_over_a_restart() {
    for protocol in BOTH {
        let mut mesh = name_without_an_answer(protocol);
        let canary = mesh.client("canary");
        mesh.put(CLUSTERS, "a", eds_cluster("a", "2"));
        mesh.taken();
        assert_eq!(mesh.held(canary), "k@1 l@1 | r@1 r2@1 | a@2 b@1 | a@1 b@1", "{protocol:?}");
        let words = "it waits for what the control plane says nothing of: envoy.config.route.v3.RouteConfiguration `nowhere`, \
                     which envoy.config.listener.v3.Listener `l` refers to";
        assert!(mesh.trouble().contains(words), "{}", mesh.trouble());
        assert_eq!(mesh.world.counted(0, "followed_origin_waiting_names{origin=\"cp\"}"), 1);
        let before = mesh.releases();
        mesh.world.advance(600 * SECOND);
        assert_eq!(mesh.releases(), before);

        mesh.restart();
        let canary = mesh.client("canary");
        mesh.world.advance(3 * SILENCE);
        assert_eq!((mesh.releases(), mesh.held(canary)), (before, "k@1 l@1 | r@1 r2@1 | a@2 b@1 | a@1 b@1".to_owned()));
        assert!(mesh.trouble().contains(words), "{}", mesh.trouble());
        mesh.put(CLUSTERS, "b", eds_cluster("b", "2"));
        mesh.taken();
        assert_eq!(mesh.held(canary), "k@1 l@1 | r@1 r2@1 | a@2 b@2 | a@1 b@1", "{protocol:?}");

        mesh.put(ROUTES, "nowhere", frame(ROUTES, "nowhere", "1"));
        mesh.taken();
        assert_eq!(mesh.held(canary), "k@1 l@2 new@1 | r2@1 | a@2 b@2 | a@1 b@1", "{protocol:?}");
        assert_eq!(mesh.trouble(), "");
    }
}

/// What is lacking before the first release: routes of a Listener, routes that may come from elsewhere, or a Cluster that is refused.
fn lacking(protocol: Protocol, what: &str) -> Mesh {
    let mut mesh = Mesh::new(protocol);
    mesh.fill();
    if protocol == DELTA && what != "r" {
        mesh.world.fail(0, ROUTES, what, 14, "later");
    }
    match what {
        "r" => mesh.put(CLUSTERS, "b", Frame::of_message(&CLUSTERS.into(), &[0x12, 0x70])),
        "wished" => mesh.put(LISTENERS, "k", listener_by(&field(2, b""), "k", what, "1")),
        _ => mesh.put(LISTENERS, "k", listener("k", what, "1")),
    }
    mesh
}

#[test]
fn before_the_first_release_what_is_lacking_is_waited_for_and_then_somebody_says_whether_it_is_left_out() {
    for (protocol, what) in
        BOTH.into_iter().flat_map(|protocol| ["nowhere", "wished", "r"].map(|what| (protocol, what)))
    {
        let mut mesh = lacking(protocol, what);
        let client = mesh.early("web");
        mesh.world.advance(50 * SECOND);
        let core = mesh.world.relays[0].core.clone();
        let is_held = |mesh: &Mesh, context: &str| {
            let held = mesh.held(client);
            assert!(held.starts_with(" |  |  | "), "{protocol:?} {what} {context}: {held}");
            assert!(matches!(core.readiness(), Readiness::NotReady(_)), "{protocol:?} {what} {context}");
        };
        is_held(&mesh, "within a minute");
        assert_eq!(mesh.releases(), (None, None), "{protocol:?} {what}");
        assert!(mesh.trouble().contains(if what == "r" { "`b`" } else { what }), "{}", mesh.trouble());
        mesh.world.advance(600 * SECOND);
        is_held(&mesh, "later");
        let candidate = core.release_control(None).unwrap().candidate().cloned().unwrap();
        let Progress::Halted(said) = &candidate.progress else { panic!("{candidate:?}") };
        assert_eq!(said.why, "it is the first, and may lack what clients hold");
        mesh.restart();
        let client = mesh.early("web");
        mesh.world.advance(200 * SECOND);
        assert_eq!(mesh.releases(), (None, Some(candidate.release)), "{protocol:?} {what}");
        assert_eq!(mesh.order(Act::Stage { at: 0 }), Transition::Promoted);
        let held = if what == "r" {
            "l@1 | r@1 | a@1 | "
        } else if what == "wished" {
            "k@1 l@1 | r@1 | a@1 b@1 | "
        } else {
            "l@1 | r@1 | a@1 b@1 | "
        };
        assert!(mesh.held(client).starts_with(held), "{protocol:?} {what}: {}", mesh.held(client));
    }
}

#[test]
fn a_first_release_that_waited_for_what_was_lacking_is_stable_as_soon_as_nothing_is() {
    for (protocol, what, late) in BOTH
        .into_iter()
        .flat_map(|protocol| ["nowhere", "wished", "r"].map(|what| (protocol, what)))
        .flat_map(|(protocol, what)| [10, 300].map(|late| (protocol, what, late)))
    {
        let mut mesh = lacking(protocol, what);
        let client = mesh.early("web");
        mesh.world.advance(30 * SECOND + late * SECOND);
        assert_eq!(mesh.releases().0, None);
        match what {
            "r" => mesh.put(CLUSTERS, "b", eds_cluster("b", "1")),
            _ => mesh.put(ROUTES, what, frame(ROUTES, what, "1")),
        }
        mesh.world.subscribe(client, ROUTES, &["r", what]);
        mesh.world.advance(2 * TAKEN);
        let released = mesh.held(client).rsplit_once(" | ").unwrap().0.to_owned();
        let (listeners, routes) =
            if what == "r" { ("l@1", "r@1".to_owned()) } else { ("k@1 l@1", format!("r@1 {what}@1")) };
        let routes = if what == "nowhere" { "nowhere@1 r@1".to_owned() } else { routes };
        assert_eq!(released, format!("{listeners} | {routes} | a@1 b@1"), "{protocol:?} {what} {late}");
        assert_eq!((mesh.trouble(), mesh.releases().1), (String::new(), None));
    }
}

#[test]
fn before_the_first_release_what_clients_ask_for_and_nothing_brings_is_waited_for() {
    for (protocol, late) in BOTH.into_iter().flat_map(|protocol| [20, 300].map(|late| (protocol, late))) {
        let mut mesh = Mesh::new(protocol);
        mesh.fill();
        // As for an Envoy whose bootstrap has a Listener, or for gRPC.
        let client = mesh.early("web");
        mesh.world.subscribe(client, ROUTES, &["of-bootstrap"]);
        mesh.world.subscribe(client, CLUSTERS, &["by-name"]);
        mesh.world.advance(30 * SECOND + late * SECOND);
        assert!(mesh.held(client).starts_with(" |  |  | "), "{protocol:?} {}", mesh.held(client));
        assert!(mesh.trouble().contains("`by-name`, which clients ask for"), "{}", mesh.trouble());
        assert!(mesh.releases().0.is_none() && mesh.releases().1.is_some() == (late > 60), "{protocol:?} {late}");
        mesh.put(CLUSTERS, "by-name", frame(CLUSTERS, "by-name", "1"));
        mesh.world.unsubscribe(client, ROUTES, &["of-bootstrap"]);
        mesh.world.advance(2 * SILENCE);
        assert!(
            mesh.held(client).starts_with("l@1 | r@1 | a@1 b@1 by-name@1 | "),
            "{protocol:?} {}",
            mesh.held(client)
        );
        assert_eq!((mesh.trouble(), mesh.releases().1), (String::new(), None));
    }
}

#[test]
fn a_control_plane_that_has_nothing_at_all_gives_no_first_release() {
    for protocol in BOTH {
        let mut mesh = Mesh::new(protocol);
        let client = mesh.early("web");
        mesh.world.advance(200 * SECOND);
        assert_eq!(mesh.releases().0, None);
        assert!(mesh.trouble().contains("any resource at all"), "{}", mesh.trouble());
        mesh.fill();
        mesh.world.advance(2 * SILENCE);
        assert_eq!((mesh.held(client).as_str(), mesh.trouble().as_str()), (STABLE, ""), "{protocol:?}");
    }
}

#[test]
fn that_there_is_none_of_what_was_lacking_has_the_first_release_go_on_as_it_is() {
    let mut mesh = lacking(DELTA, "wished");
    mesh.world.advance(300 * SECOND);
    let first = mesh.releases();
    assert_eq!(first.0, None);
    mesh.world.fail(0, ROUTES, "wished", 5, "no such routes");
    mesh.world.advance(2 * TAKEN);
    assert_eq!((mesh.releases(), mesh.trouble()), ((first.1, None), String::new()));
}

#[test]
fn what_was_rolled_back_does_not_stand_in_for_what_waits() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        let canary = mesh.client("canary");
        mesh.put(LISTENERS, "l", listener("l", "r", "2"));
        mesh.put(LISTENERS, "m", listener("m", "r", "1"));
        mesh.taken();
        assert!(mesh.held(canary).starts_with("l@2 m@1 | r@1 | "));
        assert_eq!(mesh.order(Act::Rollback { to: None }), Transition::RolledBack);
        if protocol == DELTA {
            mesh.world.fail(0, ROUTES, "r3", 14, "later");
        }
        mesh.put(LISTENERS, "l", listener("l", "r3", "3"));
        mesh.put(LISTENERS, "m", listener("m", "r3", "3"));
        mesh.put(CLUSTERS, "b", eds_cluster("b", "2"));
        mesh.taken();
        mesh.world.advance(30 * SECOND);
        assert_eq!(mesh.held(canary), "l@1 | r@1 | a@1 b@2 | a@1 b@1", "{protocol:?}");
        mesh.put(ROUTES, "r3", frame(ROUTES, "r3", "1"));
        mesh.taken();
        assert!(mesh.held(canary).starts_with("l@3 m@3 | "), "{protocol:?} {}", mesh.held(canary));
    }
}

#[test]
fn that_a_name_is_gone_only_the_control_plane_says() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        let canary = mesh.client("canary");
        mesh.drop(ROUTES, "r");
        mesh.put(CLUSTERS, "a", eds_cluster("a", "2"));
        mesh.taken();
        mesh.world.advance(60 * SECOND);
        // Over SotW it says nothing of it.
        let routes = if protocol == DELTA { "" } else { "r@1" };
        assert_eq!(mesh.held(canary), format!("l@1 | {routes} | a@2 b@1 | a@1 b@1"));
        // Nor does an error that is none of that.
        mesh.put(ROUTES, "r", frame(ROUTES, "r", "2"));
        mesh.taken();
        mesh.world.fail(0, ROUTES, "r", 7, "not yours");
        mesh.taken();
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.held(canary), "l@1 | r@2 | a@2 b@1 | a@1 b@1", "{protocol:?}");
    }
}

#[test]
fn routes_that_may_come_from_elsewhere_are_released_if_they_come_from_here_and_hold_up_nothing() {
    for protocol in BOTH {
        let mut mesh = Mesh::new(protocol);
        mesh.fill();
        // `ConfigSource { api_config_source: {} }`
        mesh.put(LISTENERS, "l", listener_by(&field(2, b""), "l", "r", "1"));
        mesh.put(LISTENERS, "m", listener_by(&field(2, b""), "m", "elsewhere", "1"));
        mesh.world.advance(2 * SILENCE);
        // Over SotW it does not say that it has none: before anything is served somebody does.
        if protocol == SOTW {
            mesh.world.advance(60 * SECOND);
            assert_eq!(mesh.order(Act::Stage { at: 0 }), Transition::Promoted);
            mesh.world.advance(10 * SECOND);
        }
        let client = mesh.client("web");
        assert_eq!(mesh.held(client), "l@1 m@1 | r@1 | a@1 b@1 | a@1 b@1", "{protocol:?}");
        assert_eq!(mesh.trouble(), "");
    }
}

#[test]
fn silence_of_routes_that_may_come_from_elsewhere_takes_none_away_over_a_restart_either() {
    for protocol in BOTH {
        let mut mesh = Mesh::new(protocol);
        mesh.fill();
        mesh.put(LISTENERS, "l", listener_by(&field(2, b""), "l", "r", "1"));
        mesh.world.advance(2 * SILENCE);
        let before = mesh.releases();
        mesh.world.set_up(0, false);
        mesh.drop(ROUTES, "r");
        if protocol == DELTA {
            mesh.world.fail(0, ROUTES, "r", 14, "later");
        }
        mesh.restart();
        mesh.world.set_up(0, true);
        let canary = mesh.client("canary");
        mesh.world.advance(5 * SILENCE);
        assert_eq!((mesh.releases(), mesh.trouble().as_str()), (before, ""), "{protocol:?}");
        mesh.put(CLUSTERS, "a", eds_cluster("a", "2"));
        mesh.put(LISTENERS, "l", listener_by(&field(2, b""), "l", "r", "2"));
        mesh.taken();
        assert_eq!(mesh.held(canary), "l@2 | r@1 | a@2 b@1 | a@1 b@1", "{protocol:?}");
        mesh.put(ROUTES, "r", frame(ROUTES, "r", "2"));
        mesh.taken();
        assert_eq!(mesh.held(canary), "l@2 | r@2 | a@2 b@1 | a@1 b@1", "{protocol:?}");
        if protocol == DELTA {
            mesh.drop(ROUTES, "r");
            mesh.taken();
            assert_eq!(mesh.held(canary), "l@2 |  | a@2 b@1 | a@1 b@1");
        }
    }
}

#[test]
fn people_who_look_at_resources_see_what_is_in_releases_and_what_clients_asked_for_beside() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        mesh.client("web");
        let all = mesh.world.relays[0].core.resources(&Default::default(), mesh.world.now).resources;
        for (of, name) in [(LISTENERS, "l"), (ROUTES, "r"), (CLUSTERS, "a"), (ENDPOINTS, "a"), (ENDPOINTS, "b")] {
            let is_it = |row: &&xds_relay::api::ResourceRow| row.type_url == of && row.name == name;
            assert_eq!(all.iter().filter(is_it).count(), 1, "{protocol:?} {of} {name}: {all:?}");
        }
    }
}

#[test]
fn while_something_of_the_candidate_stands_in_for_what_the_control_plane_no_longer_says_nobody_more_gets_it() {
    let cases = [("l", "nowhere"), ("a", "nowhere"), ("l", "refused")];
    for (protocol, (changed, why)) in BOTH.into_iter().flat_map(|protocol| cases.map(|case| (protocol, case))) {
        let mut mesh = Mesh::filled(protocol);
        let other = mesh.client("other");
        if protocol == DELTA {
            mesh.world.fail(0, ROUTES, "nowhere", 14, "later");
        }
        match changed {
            "l" => mesh.put(LISTENERS, "l", listener("l", "r", "2")),
            _ => mesh.put(CLUSTERS, "a", eds_cluster("a", "2")),
        }
        mesh.taken();
        let candidate = mesh.releases().1;
        match why {
            "refused" => mesh.put(LISTENERS, "l", Frame::of_message(&LISTENERS.into(), &[0x12, 0x70])),
            _ => mesh.put(LISTENERS, "l", listener("l", "nowhere", "3")),
        }
        mesh.taken();
        assert_eq!(mesh.releases().1, candidate);
        mesh.world.advance(HOLD + 60 * SECOND);
        let (taken_back, goes_on) = ("l@1 | r@1 | a@1 b@1 | a@1 b@1", "l@1 | r@1 | a@2 b@1 | a@1 b@1");
        // What waits is as everybody has it, or as the candidate has it alone.
        let held = if changed == "l" { taken_back } else { goes_on };
        assert_eq!((mesh.held(other).as_str(), mesh.releases().1), (held, candidate), "{protocol:?} {changed} {why}");
        if changed == "a" {
            continue;
        }
        // Whoever knows better says so.
        assert_eq!(mesh.order(Act::Stage { at: 1 }), Transition::InStage(1));
        assert_eq!(mesh.held(other), "l@2 | r@1 | a@1 b@1 | a@1 b@1", "{protocol:?} {why}");
        mesh.put(LISTENERS, "l", listener("l", "r", "4"));
        mesh.taken();
        mesh.world.advance(HOLD + 60 * SECOND);
        assert_eq!(mesh.held(other), "l@4 | r@1 | a@1 b@1 | a@1 b@1", "{protocol:?} {why}");
    }
}

#[test]
fn with_the_control_plane_dead_what_is_stable_is_served_and_orders_are_done() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        let [canary, other] = ["canary", "other"].map(|cluster| mesh.client(cluster));
        mesh.put(CLUSTERS, "a", eds_cluster("a", "2"));
        mesh.taken();
        mesh.world.set_up(0, false);
        mesh.world.advance(600 * SECOND);
        assert!(
            mesh.trouble().contains("the control plane is away, and what was released is served"),
            "{}",
            mesh.trouble()
        );
        assert_eq!(mesh.world.relays[0].core.readiness(), Readiness::Ready);
        let held = [canary, other].map(|client| mesh.held(client));
        assert_eq!(held, ["l@1 | r@1 | a@2 b@1 | a@1 b@1", STABLE]);
        assert_eq!(mesh.order(Act::Freeze), Transition::Frozen);
        assert_eq!(mesh.held(canary), STABLE);
        assert_eq!(mesh.order(Act::Unfreeze), Transition::Unfrozen);
        assert_eq!(mesh.order(Act::Rollback { to: None }), Transition::RolledBack);
        mesh.restart();
        let late = mesh.client("canary");
        mesh.world.advance(60 * SECOND);
        // Endpoints are the control plane's to say.
        assert_eq!(mesh.held(late), "l@1 | r@1 | a@1 b@1 | ");
        assert_eq!(mesh.world.relays[0].core.readiness(), Readiness::Ready);
        mesh.world.set_up(0, true);
        mesh.world.advance(120 * SECOND);
        assert_eq!((mesh.held(late), mesh.trouble()), (STABLE.to_owned(), String::new()), "it is not taken again");
    }
}

#[test]
fn without_the_control_plane_nobody_more_gets_a_candidate_but_by_an_order() {
    for (protocol, is_ordered) in BOTH.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)]) {
        let mut mesh = Mesh::filled(protocol);
        let other = mesh.client("other");
        mesh.put(CLUSTERS, "a2", eds_cluster("a2", "1"));
        mesh.put(ENDPOINTS, "a2", frame(ENDPOINTS, "a2", "1"));
        mesh.taken();
        mesh.world.set_up(0, false);
        mesh.world.advance(HOLD + 60 * SECOND);
        assert_eq!(mesh.held(other), "l@1 | r@1 | a@1 b@1 | a@1 a2@1 b@1", "{protocol:?}");
        if is_ordered {
            assert_eq!(mesh.order(Act::Stage { at: 1 }), Transition::InStage(1));
            assert!(mesh.held(other).starts_with("l@1 | r@1 | a@1 a2@1 b@1"), "{protocol:?}");
        }
        mesh.world.set_up(0, true);
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.held(other), "l@1 | r@1 | a@1 a2@1 b@1 | a@1 a2@1 b@1", "{protocol:?}");
    }
}

#[test]
fn what_is_followed_in_addition_is_served_as_before_until_a_release_with_it_is_stable() {
    for (protocol, is_away) in BOTH.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)]) {
        let mut mesh = Mesh::of(protocol, &of_listeners(protocol), 1);
        mesh.fill();
        mesh.world.advance(2 * SILENCE);
        assert_eq!(mesh.releases().1, None);
        mesh.restart();
        let [canary, other] = ["canary", "other"].map(|cluster| mesh.early(cluster));
        mesh.world.advance(2 * SILENCE);
        for client in [canary, other] {
            assert_eq!(mesh.held(client), STABLE, "{protocol:?}");
        }
        assert!(mesh.releases().1.is_some());
        mesh.put(CLUSTERS, "a", eds_cluster("a", "2"));
        mesh.taken();
        let both = "l@1 | r@1 | a@2 b@1 | a@1 b@1";
        assert_eq!([canary, other].map(|client| mesh.held(client)), [both, both], "it is in no release yet");
        [canary, other].iter().for_each(|client| _ = mesh.world.told(*client));
        if is_away {
            mesh.world.set_up(0, false);
        }
        assert_eq!(mesh.order(Act::Stage { at: 2 }), Transition::Promoted);
        mesh.world.advance(60 * SECOND);
        mesh.world.set_up(0, true);
        mesh.world.advance(60 * SECOND);
        for client in [canary, other] {
            assert_eq!((mesh.held(client).as_str(), mesh.world.told(client).join(" ").contains('-')), (both, false));
        }
        mesh.put(CLUSTERS, "a", eds_cluster("a", "3"));
        mesh.taken();
        let held = [canary, other].map(|client| mesh.held(client));
        assert_eq!(held, ["l@1 | r@1 | a@3 b@1 | a@1 b@1", both], "{protocol:?}");
    }
}

/// One that is followed for its Listeners alone.
fn of_listeners(protocol: Protocol) -> String {
    text(protocol).replace("{}", "{ collections: [envoy.config.listener.v3.Listener] }")
}

#[test]
fn a_relay_that_starts_again_while_what_is_followed_in_addition_is_in_a_stage_takes_it_from_nobody() {
    for protocol in BOTH {
        let mut mesh = Mesh::of(protocol, &of_listeners(protocol), 1);
        mesh.fill();
        mesh.world.advance(2 * SILENCE);
        mesh.restart();
        let clients = ["canary", "other"].map(|cluster| mesh.early(cluster));
        mesh.world.advance(2 * SILENCE);
        let before = mesh.releases();
        assert!(before.1.is_some());
        clients.iter().for_each(|client| _ = mesh.world.told(*client));
        mesh.restart();
        clients.iter().for_each(|client| mesh.world.connect(*client, 0));
        mesh.world.advance(2 * SILENCE);
        assert_eq!(mesh.releases(), before);
        let late = mesh.early("other");
        assert_eq!(mesh.held(late), STABLE, "{protocol:?}");
        let keep = |mesh: &mut Mesh| {
            for client in clients {
                let told = mesh.world.told(client);
                // Of those endpoints there never were any.
                let is_loss = |line: &&String| line.contains('-') && *line != "ClusterLoadAssignment -a2";
                let lost: Vec<_> = told.iter().filter(is_loss).collect();
                assert_eq!((mesh.held(client).as_str(), lost), (STABLE, vec![]), "{protocol:?}");
            }
        };
        keep(&mut mesh);
        assert_eq!(mesh.order(Act::Rollback { to: None }), Transition::RolledBack);
        mesh.restart();
        clients.iter().for_each(|client| mesh.world.connect(*client, 0));
        mesh.world.advance(2 * SILENCE);
        keep(&mut mesh);
    }
}

#[test]
fn relays_with_the_same_releases_that_start_again_one_after_the_other_to_follow_more_take_nothing_away() {
    for protocol in BOTH {
        let mut relays = Replicas::new(0, |rollout| rollout.stages = self::rollout().stages);
        relays.world.origins.extend([Origin::new(), Origin::new()]);
        (0..2).for_each(|origin| relays.start_on(&of_listeners(protocol), Feeder::Origin(origin)));
        for origin in 0..2 {
            let now = relays.world.now;
            for (of, name) in [(LISTENERS, "l"), (CLUSTERS, "a")] {
                relays.world.origins[origin].put_frame(now, "", of, name, "1", frame(of, name, "1"));
            }
        }
        relays.advance(40);
        let [canaries, others] = ["canary", "web"]
            .map(|cluster| [0, 1].map(|relay| relays.node(relay, &format!("{cluster}{relay}"), cluster)));
        relays.advance(10);
        let all = [canaries, others].concat();
        all.iter().for_each(|client| _ = relays.world.told(*client));
        // By the second round there is a candidate, whoever published before.
        for relay in [0, 1, 0, 1] {
            relays.restart_on(relay, &text(protocol), &[canaries[relay], others[relay]]);
            relays.advance(60);
            for client in &all {
                let lost = relays.world.told(*client).join(" ").contains('-');
                let held = relays.world.clients[*client].held(CLUSTERS).join(" ");
                assert_eq!((held.as_str(), lost), ("a@1", false), "{protocol:?} {relay}");
            }
        }
        assert_eq!(relays.control(0).candidate().map(|of| of.stage), Some(0), "{protocol:?}");
    }
}

#[test]
fn a_control_plane_that_lost_what_it_had_takes_nothing_away() {
    for protocol in BOTH {
        let mut mesh = Mesh::new(protocol);
        let names: Vec<_> = (0..15).map(|number| format!("c{number:02}")).collect();
        names.iter().for_each(|name| mesh.put(CLUSTERS, name, frame(CLUSTERS, name, "1")));
        mesh.world.advance(2 * SILENCE);
        let canary = mesh.client("canary");
        let before = mesh.releases().0;
        mesh.world.set_up(0, false);
        names.iter().for_each(|name| mesh.drop(CLUSTERS, name));
        mesh.world.advance(5 * SECOND);
        mesh.world.set_up(0, true);
        mesh.world.advance(120 * SECOND);
        let control = mesh.world.relays[0].core.release_control(None).unwrap();
        let held = control.candidate().map(|of| of.progress.clone());
        assert!(!matches!(held, None | Some(Progress::Open)), "{protocol:?} {held:?}");
        assert_eq!((mesh.world.clients[canary].held(CLUSTERS).len(), control.stable()), (15, before));
        names.iter().for_each(|name| mesh.put(CLUSTERS, name, frame(CLUSTERS, name, "1")));
        mesh.taken();
        assert_eq!(mesh.releases(), (before, None), "it is as it was");
    }
}

#[test]
fn what_is_cut_short_is_never_taken_for_all_there_is() {
    for (protocol, is_known) in BOTH.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)]) {
        let mut mesh = if is_known { Mesh::filled(protocol) } else { Mesh::new(protocol) };
        mesh.fill();
        for number in 0..5 {
            mesh.put(CLUSTERS, &format!("x{number}"), frame(CLUSTERS, &format!("x{number}"), "1"));
        }
        if is_known {
            mesh.world.set_up(0, false);
            mesh.restart();
        }
        // A message at a time, and its stream ends after the first of them, again and again.
        mesh.world.origins[0].pace = 3 * SECOND;
        let client = mesh.early("canary");
        let whole = "l@1 | r@1 | a@1 b@1 x0@1 x1@1 x2@1 x3@1 x4@1";
        let stable = "l@1 | r@1 | a@1 b@1";
        let is_good = |mesh: &Mesh| {
            let held = mesh.held(client);
            let released = held.rsplit_once(" | ").unwrap().0;
            let all = [whole, stable, " |  | "];
            assert!(all.contains(&released) && (is_known || released != stable), "{protocol:?} {is_known}: {held}");
            released == whole
        };
        for _ in 0..8 {
            mesh.world.set_up(0, true);
            for _ in 0..4 {
                mesh.world.advance(SECOND);
                assert!(!is_good(&mesh), "{protocol:?} {is_known}");
            }
            mesh.world.set_up(0, false);
            mesh.world.advance(SECOND);
        }
        mesh.world.set_up(0, true);
        for _ in 0..240 {
            mesh.world.advance(SECOND);
            is_good(&mesh);
        }
        assert!(is_good(&mesh), "{protocol:?} {is_known}: {} {}", mesh.held(client), mesh.trouble());
    }
}

#[test]
fn what_nobody_could_use_is_refused_in_words_and_the_last_good_one_stays_also_over_a_restart() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        let canary = mesh.client("canary");
        mesh.world.asked(0);
        // A field that ends before its length.
        let broken = |of: &str, name: &str| {
            Frame::of_message(&of.into(), &[field(1, name.as_bytes()), vec![0x12, 0x70]].concat())
        };
        mesh.put(CLUSTERS, "a", broken(CLUSTERS, "a"));
        mesh.put(CLUSTERS, "never", broken(CLUSTERS, "never"));
        mesh.put(ROUTES, "r", broken(ROUTES, "r"));
        mesh.put(CLUSTERS, "b", eds_cluster("b", "2"));
        mesh.taken();
        let held = "l@1 | r@1 | a@1 b@2 | a@1 b@1";
        assert_eq!(mesh.held(canary), held, "{protocol:?}");
        let asked = mesh.world.asked(0).join("\n");
        assert!(asked.contains("Cluster NACK ") && asked.contains("is no envoy.config.cluster.v3.Cluster"), "{asked}");
        let words = "is refused, and is as it was: envoy.config.cluster.v3.Cluster `a`: ";
        assert!(mesh.trouble().contains(words) && mesh.trouble().contains("and 2 more"), "{}", mesh.trouble());
        let before = mesh.releases();
        mesh.restart();
        let canary = mesh.client("canary");
        mesh.world.advance(3 * SILENCE);
        assert_eq!((mesh.held(canary).as_str(), mesh.releases()), (held, before), "{protocol:?}");
        mesh.put(CLUSTERS, "b", eds_cluster("b", "3"));
        mesh.taken();
        assert_eq!(mesh.held(canary), "l@1 | r@1 | a@1 b@3 | a@1 b@1", "{protocol:?}");
        // What is gone is not refused any more.
        mesh.drop(CLUSTERS, "a");
        mesh.drop(CLUSTERS, "never");
        mesh.put(ROUTES, "r", frame(ROUTES, "r", "2"));
        mesh.taken();
        assert_eq!(
            (mesh.held(canary).as_str(), mesh.trouble().as_str()),
            ("l@1 | r@2 | b@3 | a@1 b@1", ""),
            "{protocol:?}"
        );
    }
}

#[test]
fn what_lives_for_a_time_is_there_until_the_control_plane_says_that_it_is_gone() {
    for (protocol, first) in BOTH.into_iter().flat_map(|protocol| [(protocol, true), (protocol, false)]) {
        let mut mesh = if first { Mesh::new(protocol) } else { Mesh::filled(protocol) };
        mesh.fill();
        let lives = |frame: Frame| frame.with_wrapper(Default::default(), Some(60 * SECOND), false);
        mesh.put(CLUSTERS, "a", lives(eds_cluster("a", "2")));
        mesh.put(LISTENERS, "l", lives(listener("l", "r", "2")));
        mesh.put(ROUTES, "r", lives(frame(ROUTES, "r", "2")));
        let client = mesh.early("canary");
        mesh.world.advance(40 * SECOND);
        let held = "l@2 | r@2 | a@2 b@1 | a@1 b@1";
        assert_eq!(mesh.held(client), held, "{protocol:?} {first}");
        let before = mesh.releases();
        for _ in 0..20 {
            mesh.world.advance(30 * SECOND);
            assert_eq!((mesh.held(client).as_str(), mesh.releases()), (held, before), "{protocol:?} {first}");
        }
        let late = mesh.early("canary");
        mesh.world.advance(90 * SECOND);
        assert_eq!(mesh.held(late), held, "{protocol:?} {first}");
        mesh.drop(CLUSTERS, "a");
        mesh.put(CLUSTERS, "b", eds_cluster("b", "2"));
        mesh.taken();
        assert_eq!(mesh.held(late), "l@2 | r@2 | b@2 | a@1 b@1", "{protocol:?} {first}");
        mesh.put(CLUSTERS, "a", lives(eds_cluster("a", "3")));
        mesh.taken();
        assert_eq!(mesh.held(late), "l@2 | r@2 | a@3 b@2 | a@1 b@1", "{protocol:?} {first}");
        // Nobody lets it live on, and it is gone while nobody hears that.
        mesh.world.advance(90 * SECOND);
        mesh.world.set_up(0, false);
        mesh.drop(CLUSTERS, "a");
        mesh.world.advance(SECOND);
        mesh.world.set_up(0, true);
        mesh.world.advance(90 * SECOND);
        assert_eq!(mesh.held(late), "l@2 | r@2 | b@2 | a@1 b@1", "{protocol:?} {first}");
    }
}

#[test]
fn names_are_waited_for_also_on_a_stream_that_took_the_place_of_another_within_a_second() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        let canary = mesh.client("canary");
        mesh.world.set_up(0, false);
        mesh.put(CLUSTERS, "a", eds_cluster("a", "2"));
        mesh.put(LISTENERS, "new", listener("new", "r2", "1"));
        mesh.world.set_up(0, true);
        mesh.world.advance(4 * SECOND);
        assert_eq!(mesh.held(canary), STABLE, "{protocol:?}");
        mesh.put(ROUTES, "r2", frame(ROUTES, "r2", "1"));
        mesh.world.advance(2 * SILENCE);
        assert_eq!(mesh.held(canary), "l@1 new@1 | r@1 r2@1 | a@2 b@1 | a@1 b@1", "{protocol:?}");
    }
}

#[test]
fn what_comes_again_at_another_version_is_no_release() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        let (before, now) = (mesh.releases(), mesh.world.now);
        mesh.world.origins[0].put_frame(now, "", CLUSTERS, "a", "later", eds_cluster("a", "1"));
        mesh.taken();
        mesh.world.set_up(0, false);
        mesh.world.advance(SECOND);
        mesh.world.set_up(0, true);
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.releases(), before, "{protocol:?}");
    }
}

#[test]
fn the_next_server_is_asked_while_the_first_is_away() {
    for protocol in BOTH {
        let text = text(protocol).replace("server: '127.0.0.1:1'", "servers: ['a:1', 'b:1']");
        let mut mesh = Mesh::of(protocol, &text, 2);
        mesh.fill();
        mesh.world.set_up(0, false);
        mesh.world.advance(3 * SILENCE);
        let client = mesh.client("web");
        mesh.world.advance(SILENCE);
        assert_eq!(mesh.held(client), STABLE, "{protocol:?}");
        assert_eq!(mesh.trouble(), "");
        let before = mesh.releases();
        mesh.world.set_up(0, true);
        mesh.world.advance(120 * SECOND);
        assert_eq!(mesh.releases(), before);
        mesh.put(CLUSTERS, "a", eds_cluster("a", "2"));
        mesh.taken();
        assert!(mesh.releases().1.is_some(), "{protocol:?} {}", mesh.trouble());
    }
}

#[test]
fn a_relay_that_is_cut_off_from_the_control_plane_leaves_it_to_another_to_publish_and_publishes_nothing_old() {
    for protocol in BOTH {
        let mut relays = Replicas::new(0, |rollout| rollout.stages = self::rollout().stages);
        relays.world.origins.extend([Origin::new(), Origin::new()]);
        (0..2).for_each(|origin| relays.start_on(&text(protocol), Feeder::Origin(origin)));
        let put = |relays: &mut Replicas, origin: usize, body: &str| {
            let now = relays.world.now;
            relays.world.origins[origin].put_frame(now, "", CLUSTERS, "a", body, frame(CLUSTERS, "a", body));
            relays.world.settle();
        };
        (0..2).for_each(|origin| put(&mut relays, origin, "1"));
        let clients = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
        relays.advance(40);
        assert_eq!(relays.held(clients), ["a@1"; 2], "{protocol:?}");
        let first = relays.publisher();
        let second = 1 - first;
        relays.world.set_up(first, false);
        put(&mut relays, second, "2");
        relays.advance(40);
        assert_eq!(relays.publisher(), second);
        assert_eq!(relays.held(clients), ["a@2"; 2], "{protocol:?}");
        // The other one's control plane is late, and that of who publishes is away by now.
        relays.world.set_up(first, true);
        relays.advance(40);
        relays.world.set_up(second, false);
        relays.advance(40);
        assert_eq!(relays.publisher(), first);
        assert_eq!(relays.held(clients), ["a@2"; 2], "{protocol:?}");
        put(&mut relays, first, "3");
        relays.advance(10);
        assert_eq!(relays.held(clients), ["a@3"; 2], "{protocol:?}");
    }
}

/// Relays that follow one control plane each and have their releases together, with a candidate under way; a canary at each, and one that is none.
fn with_candidate(protocol: Protocol, hold: u32) -> (Replicas, [usize; 2], [usize; 2]) {
    let mut relays = Replicas::new(0, |rollout| {
        rollout.stages =
            Stages::new(self::rollout().stages.iter().map(|stage| Stage { hold: hold * SECOND, ..stage.clone() }));
    });
    relays.world.origins.extend([Origin::new(), Origin::new()]);
    (0..2).for_each(|origin| relays.start_on(&text(protocol), Feeder::Origin(origin)));
    let [canaries, others] =
        ["canary", "web"].map(|cluster| [0, 1].map(|relay| relays.node(relay, &format!("{cluster}{relay}"), cluster)));
    for body in ["1", "2"] {
        for origin in 0..2 {
            let now = relays.world.now;
            relays.world.origins[origin].put_frame(now, "", CLUSTERS, "a", body, frame(CLUSTERS, "a", body));
        }
        relays.world.settle();
        relays.advance(if body == "1" { 40 } else { 10 });
    }
    assert_eq!(
        (relays.held(canaries), relays.held(others)),
        (["a@2"; 2].map(str::to_owned), ["a@1"; 2].map(str::to_owned))
    );
    (relays, canaries, others)
}

#[test]
fn a_stream_that_is_lost_for_a_moment_begins_no_stage_anew() {
    for protocol in BOTH {
        let (mut relays, ..) = with_candidate(protocol, 100);
        let (first, term) = (relays.publisher(), relays.control(0).publisher());
        for _ in 0..3 {
            relays.world.set_up(first, false);
            relays.advance(12);
            relays.world.set_up(first, true);
            relays.advance(18);
        }
        assert_eq!(relays.control(0).publisher(), term, "{protocol:?}");
        relays.advance(20);
        assert_eq!(relays.control(0).candidate().map(|of| of.stage), Some(1), "{protocol:?}");
    }
}

#[test]
fn with_all_control_planes_away_a_candidate_stays_in_its_stage_and_halts_if_it_is_refused_also_if_who_published_is_gone()
 {
    let cases = BOTH.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)]);
    for ((protocol, is_gone), refuses) in cases.flat_map(|case| [(case, false), (case, true)]) {
        let (mut relays, canaries, others) = with_candidate(protocol, 300);
        let first = relays.publisher();
        (0..2).for_each(|origin| relays.world.set_up(origin, false));
        let left = if is_gone { 1 - first } else { first };
        if is_gone {
            relays.advance(20);
            [canaries, others].iter().for_each(|clients| relays.world.disconnect(clients[first]));
            relays.world.stop(first);
            relays.cut_off(first, true);
            relays.expire();
            relays.advance(60);
        }
        let publisher = relays.control(left).publisher();
        assert_eq!(relays.world.relays[left].core.instance(), format!("{:016x}", publisher.unwrap().instance.0));
        // Nobody could have the endpoints of what is new.
        relays.advance(320);
        let candidate = |relays: &Replicas| relays.control(left).candidate().cloned().unwrap();
        let (control, stays) = (relays.control(left), candidate(&relays));
        assert_eq!((control.publisher(), stays.stage, stays.progress), (publisher, 0, Progress::Open), "{protocol:?}");
        if refuses {
            let node = Node { id: "late".into(), cluster: "canary".into(), ..Node::default() };
            let late = relays.world.client_with(left, DELTA, &node);
            relays.world.clients[late].refuses = true;
            relays.world.subscribe(late, CLUSTERS, &["*"]);
            relays.advance(20);
            let halts = candidate(&relays);
            assert!(matches!(halts.progress, Progress::Halted(_)), "{protocol:?} {is_gone}: {halts:?}");
        } else {
            relays.world.set_up(left, true);
            relays.advance(40);
            assert_eq!(candidate(&relays).stage, 1, "{protocol:?} {is_gone}");
        }
    }
}

#[test]
fn what_waits_where_another_relay_published_meanwhile_stays_as_that_did_it() {
    for protocol in BOTH {
        let mut relays = Replicas::new(0, |rollout| rollout.stages = self::rollout().stages);
        relays.world.origins.extend([Origin::new(), Origin::new()]);
        (0..2).for_each(|origin| relays.start_on(&text(protocol), Feeder::Origin(origin)));
        let put = |relays: &mut Replicas, origin: usize, of: &str, name: &str, put: Frame| {
            let (now, version) = (relays.world.now, body_of(put.any()));
            relays.world.origins[origin].put_frame(now, "", of, name, &version, put);
        };
        for origin in 0..2 {
            put(&mut relays, origin, LISTENERS, "l", listener("l", "r", "1"));
            put(&mut relays, origin, CLUSTERS, "a", frame(CLUSTERS, "a", "1"));
            put(&mut relays, origin, ROUTES, "r", frame(ROUTES, "r", "1"));
            relays.world.fail(origin, ROUTES, "nowhere", 14, "later");
        }
        let client = relays.node(0, "c", "canary");
        relays.world.subscribe(client, LISTENERS, &["*"]);
        relays.world.subscribe(client, ROUTES, &["r", "r2"]);
        relays.advance(40);
        let first = relays.publisher();
        let second = 1 - first;
        relays.world.set_up(first, false);
        put(&mut relays, second, LISTENERS, "l", listener("l", "r2", "2"));
        put(&mut relays, second, ROUTES, "r2", frame(ROUTES, "r2", "1"));
        relays.advance(40);
        let held = |relays: &Replicas| {
            [LISTENERS, ROUTES, CLUSTERS].map(|of| relays.world.clients[client].held(of).join(" ")).join(" | ")
        };
        assert_eq!(held(&relays), "l@2 | r2@1 | a@1", "{protocol:?}");
        relays.world.set_up(second, false);
        put(&mut relays, first, LISTENERS, "l", listener("l", "nowhere", "3"));
        put(&mut relays, first, CLUSTERS, "a", frame(CLUSTERS, "a", "2"));
        relays.world.set_up(first, true);
        relays.advance(90);
        assert_eq!((relays.publisher(), held(&relays).as_str()), (first, "l@2 | r2@1 | a@2"), "{protocol:?}");
    }
}

#[test]
fn a_glob_of_names_of_an_authority_is_released_and_what_is_of_another_origin_is_refused() {
    const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
    let member = |name: &str| GLOB.replace('*', name);
    let mut world = World::empty();
    world.origins.extend([Origin::new(), Origin::new()]);
    let text = format!(
        "origins: [{{ name: other, server: '127.0.0.1:1', authorities: [b] }}, {{ name: cp, server: '127.0.0.1:1', authorities: [a], \
         follow: {{ collections: ['{GLOB}', envoy.config.cluster.v3.Cluster] }} }}]\ndefault_origin: cp\n\
         state: {{ path: . }}\nrollout: [{{ scope: 'xdstp://a' }}, {{ scope: old-style }}]\n"
    );
    world.add_relay(&text, vec![Feeder::Origin(0), Feeder::Origin(1)]);
    for scope in [Some("a"), None] {
        let rollout = Rollout::new(scope, rollout().stages);
        world.relays[0].core.roll_out(rollout, Arc::<Memory>::default(), world.now).unwrap();
    }
    world.origins[1].wildcard_sends_xdstp();
    let now = world.now;
    for name in [member("x"), member("y"), "old".to_owned(), member("z").replace("//a/", "//b/")] {
        world.origins[1].put_frame(now, "", CLUSTERS, &name, "v1", frame(CLUSTERS, &name, "1"));
    }
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &[GLOB, "*"]);
    world.advance(2 * SILENCE);
    assert_eq!(world.clients[client].held(CLUSTERS), ["old@1".to_owned(), member("x") + "@1", member("y") + "@1"]);
    assert!(world.asked(1).join("\n").contains("NACK "), "names of that authority are another origin's");
}

#[test]
fn what_was_too_much_once_and_is_wanted_no_more_does_not_stand_in_the_way() {
    for protocol in BOTH {
        let mut mesh = Mesh::of(protocol, &(text(protocol) + "limits: { names: 3 }\n"), 1);
        mesh.put(CLUSTERS, "a", frame(CLUSTERS, "a", "1"));
        mesh.put(LISTENERS, "l", listener("l", "r", "1"));
        mesh.put(LISTENERS, "m", listener("m", "too-much", "1"));
        mesh.world.advance(60 * SECOND);
        assert!(mesh.trouble().contains("more than 3 names (limits.names of the relay)"), "{}", mesh.trouble());
        mesh.put(ROUTES, "r", frame(ROUTES, "r", "1"));
        mesh.drop(LISTENERS, "m");
        mesh.world.advance(60 * SECOND);
        assert_eq!((mesh.trouble(), mesh.releases().0.is_some()), (String::new(), true), "{protocol:?}");
    }
}

#[test]
fn one_that_is_to_be_asked_for_more_than_may_be_is_said_to_be_and_nothing_of_it_is_released() {
    for protocol in BOTH {
        let limited = text(protocol) + "limits: { names: 2 }\n";
        let mut mesh = Mesh::of(protocol, &limited, 1);
        mesh.fill();
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.releases().0, None);
        assert!(mesh.trouble().contains("more than 2 names (limits.names of the relay)"), "{}", mesh.trouble());
        let config = xds_relay::Config::parse("relay.yaml", &text(protocol)).unwrap();
        mesh.world.relays[0].core.set_what_is_read_at_use(&config);
        mesh.world.advance(60 * SECOND);
        assert!(mesh.releases().0.is_some(), "{protocol:?}");
        assert_eq!(mesh.trouble(), "", "{protocol:?}");
    }
}

#[test]
fn names_that_clients_ask_for_and_that_are_in_no_release_are_counted_and_said_to_be_in_none() {
    let mut mesh = Mesh::filled(DELTA);
    let denied = |mesh: &Mesh| mesh.world.counted(0, "release_denied_names{scope=\"old-style\"}");
    let client = mesh.client("web");
    mesh.world.unsubscribe(client, ROUTES, &["r2"]);
    mesh.world.settle();
    assert_eq!(denied(&mesh), 0);
    // That there is no such Cluster the control plane did not say.
    mesh.world.subscribe(client, CLUSTERS, &["by-name"]);
    mesh.world.subscribe(client, ROUTES, &["elsewhere"]);
    mesh.world.subscribe(client, ENDPOINTS, &["none"]);
    mesh.world.settle();
    assert_eq!(denied(&mesh), 2);
    let core = mesh.world.relays[0].core.clone();
    let id = core.clients(&Default::default(), mesh.world.now).clients[0].id;
    let query = ExplainQuery { type_url: Some(CLUSTERS.into()), name: Some("by-name".into()) };
    let why = core.client(id, &query, mesh.world.now).unwrap().explained.unwrap().reasons.join(" ");
    assert!(why.contains("It is in no release that the client is served"), "{why}");
    mesh.put(CLUSTERS, "by-name", frame(CLUSTERS, "by-name", "1"));
    mesh.taken();
    assert_eq!(mesh.order(Act::Stage { at: 2 }), Transition::Promoted);
    assert_eq!(denied(&mesh), 1);
}
