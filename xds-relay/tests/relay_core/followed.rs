//! A control plane that the relay follows: it holds all that there is, and so it has releases.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use xds_relay::api::OriginState;
use xds_relay::config::Rollout;
use xds_relay::releases::{Act, By, Order, Stage, Stages, Transition, Who};
use xds_relay::state::Memory;
use xds_transport::Frame;
use xds_transport::wire::{Any, DeltaDiscoveryResponse, DiscoveryResponse, Node};

use crate::support::*;

const BOTH: [Protocol; 2] = [DELTA, SOTW];
const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
/// After which a delta origin that says nothing has said all.
const SILENCE: Duration = Duration::from_secs(16);

fn text(protocol: Protocol) -> String {
    let protocol = if protocol == DELTA { "delta" } else { "sotw" };
    format!(
        "origins: [{{ name: cp, server: '127.0.0.1:1', protocol: {protocol}, follow: {{}} }}]\nstate: {{ path: . }}\n"
    )
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
    let manager = field(3, &[field(1, &ads()), field(2, routes.as_bytes())].concat());
    let manager = Any { type_url: MANAGER.to_owned(), value: manager.into() }.encode_to_vec();
    let fields = [field(1, name.as_bytes()), field(19, &field(1, &manager)), field(1000, body.as_bytes())];
    Frame::of_message(&LISTENERS.into(), &fields.concat())
}

/// One relay that follows one control plane.
struct Mesh {
    world: World,
}

impl Mesh {
    fn new(protocol: Protocol) -> Self {
        let mut world = World::empty();
        world.origins.push(Origin::new());
        world.add_relay(&text(protocol), vec![Feeder::Origin(0)]);
        Self { world }
    }

    /// All control planes have it.
    fn put(&mut self, of: &str, name: &str, frame: Frame) {
        let now = self.world.now;
        let version = format!("v{}", body_of(frame.any()));
        for origin in &mut self.world.origins {
            origin.put_frame(now, "", of, name, &version, frame.clone());
        }
    }

    /// Clusters with endpoints, each of one body, and listeners with routes.
    fn fill(&mut self) {
        for name in ["a", "b"] {
            self.put(CLUSTERS, name, eds_cluster(name, "1"));
            self.put(ENDPOINTS, name, frame(ENDPOINTS, name, "1"));
        }
        self.put(LISTENERS, "l", listener("l", "r", "1"));
        self.put(ROUTES, "r", frame(ROUTES, "r", "1"));
        // Nobody refers to it.
        self.put(ROUTES, "unused", frame(ROUTES, "unused", "1"));
    }

    /// One that is filled, and has said so.
    fn filled(protocol: Protocol) -> Self {
        let mut mesh = Self::new(protocol);
        mesh.fill();
        mesh.world.advance(2 * SILENCE);
        mesh
    }

    fn client(&mut self, cluster: &str) -> usize {
        let node = Node { id: "n".into(), cluster: cluster.into(), ..Node::default() };
        let client = self.world.client_with(0, DELTA, &node);
        for of in [LISTENERS, CLUSTERS] {
            self.world.subscribe(client, of, &["*"]);
        }
        self.world.subscribe(client, ROUTES, &["r"]);
        self.world.subscribe(client, ENDPOINTS, &["a", "b"]);
        client
    }

    fn held(&self, client: usize) -> String {
        let of = |of| self.world.clients[client].held(of).join(" ");
        [LISTENERS, ROUTES, CLUSTERS, ENDPOINTS].map(of).join(" | ")
    }

    fn changed(&mut self) {
        self.world.settle();
        self.world.advance(SECOND);
    }

    /// How the origin is, as who looks at the pages sees it.
    fn trouble(&self) -> Option<String> {
        let status = self.world.relays[0].core.status(self.world.now).origins.remove(0);
        assert_eq!(status.state == OriginState::Down, status.last_error.is_some());
        status.last_error.or(status.hint)
    }

    /// What the control plane says of a type does not arrive, but for that it says something.
    fn keep_silent_of(&mut self, of: &'static str) {
        self.world.between = Some(Box::new(move |_, hearer, response: Bytes| {
            let is_delta = DeltaDiscoveryResponse::decode(response.clone());
            match (hearer, is_delta) {
                (Hearer::Relay(_), Ok(DeltaDiscoveryResponse { type_url, nonce, .. })) if type_url == of => {
                    DeltaDiscoveryResponse { type_url, nonce, ..Default::default() }.encode_to_vec().into()
                }
                (Hearer::Relay(_), _) => match DiscoveryResponse::decode(response.clone()) {
                    Ok(DiscoveryResponse { type_url, nonce, .. }) if type_url == of => {
                        DiscoveryResponse { type_url, nonce, ..Default::default() }.encode_to_vec().into()
                    }
                    _ => response,
                },
                _ => response,
            }
        }));
    }
}

#[test]
fn all_that_there_is_is_asked_for_and_counts_once_it_was_said() {
    for protocol in BOTH {
        let mut mesh = Mesh::new(protocol);
        mesh.fill();
        let client = mesh.client("c");
        mesh.changed();
        let is_at_once = protocol == SOTW;
        assert_eq!(mesh.held(client) != " |  |  | ", is_at_once, "over delta no answer has an end");
        mesh.world.advance(2 * SILENCE);
        assert_eq!(mesh.held(client), "l@1 | r@1 | a@1 b@1 | a@1 b@1");
        assert_eq!(mesh.trouble(), None);
        // It is asked as one client, for what is referred to and nothing else.
        assert_eq!(mesh.world.streams_of(0), 1);
        assert_eq!(mesh.world.node_upstream(0).id, "xds-relay");
        let asked = mesh.world.asked(0).join("\n");
        assert!(asked.contains("RouteConfiguration") && asked.contains("ClusterLoadAssignment"), "{asked}");
        assert!(!asked.contains("unused"), "{asked}");
        // What is not in it does not exist, and nobody is asked.
        mesh.world.told(client);
        mesh.world.subscribe(client, ROUTES, &["unused"]);
        assert_eq!(mesh.world.told(client), ["RouteConfiguration -unused"]);
        assert_eq!(mesh.world.asked(0), [""; 0]);
    }
}

#[test]
fn what_changes_is_told_and_what_nothing_refers_to_any_more_goes_with_it() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        let client = mesh.client("c");
        mesh.world.told(client);
        mesh.put(ENDPOINTS, "a", frame(ENDPOINTS, "a", "2"));
        mesh.changed();
        assert_eq!(mesh.world.told(client), ["ClusterLoadAssignment a@2"]);
        // The same at another version is no change.
        let now = mesh.world.now;
        mesh.world.origins[0].put_frame(now, "", CLUSTERS, "a", "later", eds_cluster("a", "1"));
        mesh.changed();
        assert_eq!(mesh.world.told(client), [""; 0]);
        mesh.put(ROUTES, "other", frame(ROUTES, "other", "1"));
        mesh.put(LISTENERS, "l", listener("l", "other", "2"));
        mesh.changed();
        assert_eq!(mesh.held(client), "l@2 |  | a@1 b@1 | a@2 b@1");
        mesh.world.remove(0, CLUSTERS, "b");
        mesh.changed();
        assert_eq!(mesh.held(client), "l@2 |  | a@1 | a@2");
    }
}

#[test]
fn a_name_that_is_late_holds_up_what_refers_to_it_and_nothing_else() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        let client = mesh.client("c");
        mesh.keep_silent_of(ROUTES);
        mesh.put(ROUTES, "late", frame(ROUTES, "late", "1"));
        mesh.put(LISTENERS, "l", listener("l", "late", "2"));
        mesh.put(CLUSTERS, "a", eds_cluster("a", "2"));
        mesh.changed();
        assert_eq!(mesh.held(client), "l@1 | r@1 | a@2 b@1 | a@1 b@1");
        mesh.world.advance(25 * SECOND);
        let trouble = mesh.trouble().unwrap();
        assert!(
            trouble.contains("it has not said what envoy.config.route.v3.RouteConfiguration `late` is"),
            "{trouble}"
        );
        // For as long as it takes.
        mesh.world.advance(600 * SECOND);
        assert_eq!(mesh.held(client), "l@1 | r@1 | a@2 b@1 | a@1 b@1");
        mesh.world.between = None;
        mesh.put(ROUTES, "late", frame(ROUTES, "late", "2"));
        mesh.changed();
        assert_eq!(mesh.held(client), "l@2 |  | a@2 b@1 | a@1 b@1");
        mesh.world.advance(2 * SECOND);
        assert_eq!(mesh.trouble(), None);
    }
}

#[test]
fn what_is_known_is_served_where_a_name_is_late_from_the_start_and_of_nothing_it_is_said_that_it_is_not_there() {
    for protocol in BOTH {
        let mut mesh = Mesh::new(protocol);
        mesh.fill();
        mesh.keep_silent_of(ROUTES);
        let client = mesh.client("c");
        mesh.world.subscribe(client, CLUSTERS, &["none"]);
        mesh.world.advance(SILENCE);
        assert_eq!(mesh.held(client), " |  |  | ");
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.held(client), " |  | a@1 b@1 | a@1 b@1");
        assert!(mesh.world.told(client).iter().all(|line| !line.contains('-')));
        let trouble = mesh.trouble().unwrap();
        assert!(trouble.contains("`r` is, and what is known is served"), "{trouble}");
        mesh.world.between = None;
        mesh.put(ROUTES, "r", frame(ROUTES, "r", "2"));
        mesh.changed();
        assert_eq!(mesh.held(client), "l@1 | r@2 | a@1 b@1 | a@1 b@1");
        assert!(mesh.world.told(client).iter().any(|line| line.contains("-none")));
    }
}

#[test]
fn nothing_goes_while_the_control_plane_is_away_and_what_went_meanwhile_goes_when_it_says_so() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        let client = mesh.client("c");
        mesh.world.told(client);
        mesh.world.set_up(0, false);
        let now = mesh.world.now;
        mesh.world.origins[0].remove(now, CLUSTERS, "b");
        mesh.world.advance(600 * SECOND);
        assert!(mesh.trouble().unwrap().starts_with("the control plane is away, and all stays as it is"));
        let late = mesh.client("c");
        for client in [client, late] {
            assert_eq!(mesh.held(client), "l@1 | r@1 | a@1 b@1 | a@1 b@1");
        }
        mesh.world.asked(0);
        mesh.world.set_up(0, true);
        mesh.world.advance(60 * SECOND);
        for client in [client, late] {
            assert_eq!(mesh.held(client), "l@1 | r@1 | a@1 | a@1", "{protocol:?}");
        }
        assert_eq!(mesh.trouble(), None);
        let asked = mesh.world.asked(0).join("\n");
        assert!(protocol == SOTW || asked.contains("=a@v1"), "it says what it has: {asked}");
    }
}

#[test]
fn a_removal_of_much_at_once_is_held_until_it_is_seen_again() {
    for protocol in BOTH {
        let mut mesh = Mesh::new(protocol);
        let names: Vec<_> = (0..15).map(|number| format!("c{number:02}")).collect();
        for name in &names {
            mesh.put(CLUSTERS, name, eds_cluster(name, "1"));
            mesh.put(ENDPOINTS, name, frame(ENDPOINTS, name, "1"));
        }
        mesh.put(LISTENERS, "l", listener("l", "r", "1"));
        mesh.put(ROUTES, "r", frame(ROUTES, "r", "1"));
        mesh.world.advance(2 * SILENCE);
        let client = mesh.client("c");
        assert_eq!(mesh.world.clients[client].held(CLUSTERS).len(), 15);
        let now = mesh.world.now;
        names.iter().skip(1).for_each(|name| mesh.world.origins[0].remove(now, CLUSTERS, name));
        mesh.world.settle();
        mesh.world.advance(25 * SECOND);
        assert_eq!(mesh.world.clients[client].held(CLUSTERS).len(), 15);
        assert!(mesh.trouble().unwrap().starts_with("28 resources are gone at once"), "{:?}", mesh.trouble());
        // That it is so, only the control plane can say.
        mesh.world.set_up(0, false);
        mesh.world.advance(600 * SECOND);
        assert_eq!(mesh.world.clients[client].held(CLUSTERS).len(), 15);
        mesh.world.set_up(0, true);
        mesh.world.advance(90 * SECOND);
        assert_eq!(mesh.world.clients[client].held(CLUSTERS), ["c00@1"]);
    }
}

#[test]
fn what_is_asked_for_again_and_not_answered_stays_as_it_was() {
    let mut world = World::empty();
    world.origins.push(Origin::new());
    world.add_relay(&(text(DELTA) + "linger: 1s\n"), vec![Feeder::Origin(0)]);
    let mut mesh = Mesh { world };
    for name in ["l", "m", "n"] {
        mesh.put(LISTENERS, name, listener(name, "r", "1"));
    }
    mesh.put(ROUTES, "r", frame(ROUTES, "r", "1"));
    mesh.world.advance(2 * SILENCE);
    let client = mesh.client("c");
    assert_eq!(mesh.held(client), "l@1 m@1 n@1 | r@1 |  | ");
    let now = mesh.world.now;
    ["l", "m", "n"].iter().for_each(|name| mesh.world.origins[0].remove(now, LISTENERS, name));
    mesh.world.settle();
    mesh.world.advance(5 * SECOND);
    assert_eq!(mesh.held(client), "l@1 m@1 n@1 | r@1 |  | ", "all at once is much");
    assert!(mesh.world.asked(0).join("\n").contains("RouteConfiguration -r"), "nothing refers to it");
    mesh.keep_silent_of(ROUTES);
    mesh.put(LISTENERS, "l", listener("l", "r", "2"));
    mesh.world.settle();
    mesh.world.advance(60 * SECOND);
    assert_eq!(mesh.held(client), "l@1 | r@1 |  | ");
}

#[test]
fn what_nobody_could_use_is_refused_in_words_and_the_last_good_one_stays() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        let client = mesh.client("c");
        mesh.world.told(client);
        mesh.world.asked(0);
        // A field that ends before its length.
        let broken = [field(1, b"a"), vec![0x12, 0x70]].concat();
        mesh.put(CLUSTERS, "a", Frame::of_message(&CLUSTERS.into(), &broken));
        mesh.put(CLUSTERS, "b", eds_cluster("b", "2"));
        mesh.changed();
        assert_eq!(mesh.held(client), "l@1 | r@1 | a@1 b@2 | a@1 b@1");
        let asked = mesh.world.asked(0).join("\n");
        assert!(
            asked.contains("Cluster NACK ") && asked.contains("what is in it is no envoy.config.cluster.v3.Cluster"),
            "{asked}"
        );
        let trouble = mesh.trouble().unwrap();
        assert!(trouble.starts_with("a value is refused: res/envoy.config.cluster.v3.Cluster/a: "), "{trouble}");
        mesh.put(CLUSTERS, "a", eds_cluster("a", "1"));
        mesh.changed();
        mesh.world.advance(SECOND);
        assert_eq!(mesh.trouble(), None, "it is as it was before");
        // What refers to one that never was good stays as it was.
        mesh.put(
            ROUTES,
            "broken",
            Frame::of_message(&ROUTES.into(), &[field(1, b"broken"), vec![0x12, 0x70]].concat()),
        );
        mesh.put(LISTENERS, "l", listener("l", "broken", "2"));
        mesh.changed();
        assert_eq!(mesh.held(client), "l@1 | r@1 | a@1 b@2 | a@1 b@1");
        mesh.put(ROUTES, "broken", frame(ROUTES, "broken", "1"));
        mesh.changed();
        assert_eq!(mesh.held(client), "l@2 |  | a@1 b@2 | a@1 b@1");
        mesh.put(LISTENERS, "l", listener("l", "r", "1"));
        mesh.changed();
        // One that never was good goes without having been there.
        mesh.put(CLUSTERS, "c", Frame::of_message(&CLUSTERS.into(), &[field(1, b"c"), vec![0x12, 0x70]].concat()));
        mesh.changed();
        assert!(mesh.trouble().is_some());
        assert_eq!(mesh.held(client), "l@1 | r@1 | a@1 b@2 | a@1 b@1");
        mesh.world.remove(0, CLUSTERS, "c");
        mesh.changed();
        assert_eq!(mesh.trouble(), None, "{protocol:?}");
    }
}

#[test]
fn a_removal_that_is_held_from_the_start_does_not_count_before_all_is_said_again() {
    let (mut mesh, store) = (Mesh::new(DELTA), Memory::default());
    mesh.world.restart(0, &text(DELTA), store.clone());
    let names: Vec<_> = (0..13).map(|number| format!("c{number:02}")).collect();
    for name in &names {
        mesh.put(CLUSTERS, name, frame(CLUSTERS, name, "1"));
    }
    mesh.put(LISTENERS, "l", listener("l", "r", "1"));
    mesh.put(ROUTES, "r", frame(ROUTES, "r", "1"));
    mesh.world.advance(2 * SILENCE);
    let now = mesh.world.now;
    names.iter().skip(1).for_each(|name| mesh.world.origins[0].remove(now, CLUSTERS, name));
    mesh.world.restart(0, &text(DELTA), store);
    let client = mesh.client("c");
    mesh.world.advance(20 * SECOND);
    let is_as_it_was = |mesh: &Mesh| {
        mesh.world.clients[client].held(CLUSTERS).len() == 13 && mesh.world.clients[client].held(LISTENERS) == ["l@1"]
    };
    assert!(is_as_it_was(&mesh) && mesh.trouble().unwrap().contains("12 resources are gone"), "{:?}", mesh.trouble());
    mesh.world.set_up(0, false);
    mesh.keep_silent_of(ROUTES);
    mesh.put(ROUTES, "late", frame(ROUTES, "late", "1"));
    mesh.put(LISTENERS, "l", listener("l", "late", "2"));
    mesh.world.set_up(0, true);
    mesh.world.advance(300 * SECOND);
    assert!(is_as_it_was(&mesh), "{}", mesh.held(client));
    mesh.world.between = None;
    mesh.put(ROUTES, "late", frame(ROUTES, "late", "2"));
    mesh.world.settle();
    mesh.world.advance(120 * SECOND);
    assert_eq!(mesh.held(client), "l@2 |  | c00@1 | ");
}

#[test]
fn what_it_had_before_a_restart_is_served_while_it_is_away_and_nothing_more_is_said() {
    for protocol in BOTH {
        let mut mesh = Mesh::new(protocol);
        let store = Memory::default();
        mesh.world.restart(0, &text(protocol), store.clone());
        mesh.fill();
        mesh.world.advance(2 * SILENCE);
        mesh.world.set_up(0, false);
        mesh.world.restart(0, &text(protocol), store);
        let client = mesh.client("c");
        mesh.world.subscribe(client, CLUSTERS, &["none"]);
        mesh.world.advance(30 * SECOND);
        assert_eq!(mesh.held(client), "l@1 | r@1 | a@1 b@1 | a@1 b@1");
        assert!(mesh.world.told(client).iter().all(|line| !line.contains('-')));
        assert!(mesh.trouble().unwrap().contains("what it had before a restart is served"));
        mesh.world.remove(0, CLUSTERS, "b");
        mesh.world.set_up(0, true);
        mesh.world.advance(90 * SECOND);
        assert_eq!(mesh.held(client), "l@1 | r@1 | a@1 | a@1");
        assert!(mesh.world.told(client).iter().any(|line| line.contains("-none")));
    }
}

#[test]
fn one_that_is_to_be_asked_for_more_than_may_be_is_said_to_be_and_nothing_of_it_counts() {
    for protocol in BOTH {
        let mut world = World::empty();
        world.origins.push(Origin::new());
        world.add_relay(&(text(protocol) + "limits: { names: 4 }\n"), vec![Feeder::Origin(0)]);
        let mut mesh = Mesh { world };
        mesh.fill();
        let client = mesh.world.client(DELTA, "n");
        mesh.world.subscribe(client, CLUSTERS, &["*"]);
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.world.clients[client].held(CLUSTERS), [""; 0]);
        let trouble = mesh.trouble().unwrap();
        assert!(trouble.contains("more than 4 names (limits.names of the relay), and nothing is served"), "{trouble}");
    }
}

#[test]
fn another_server_in_its_place_says_what_is_otherwise_and_nothing_goes_before() {
    for protocol in BOTH {
        let mut mesh = Mesh::new(protocol);
        mesh.world.origins.push(Origin::new());
        mesh.fill();
        mesh.world.advance(2 * SILENCE);
        let client = mesh.client("c");
        mesh.world.told(client);
        let now = mesh.world.now;
        mesh.world.origins[1].put_frame(now, "", CLUSTERS, "a", "v1", eds_cluster("a", "of the second"));
        mesh.world.origins[1].remove(now, CLUSTERS, "b");
        mesh.world.lead_elsewhere(0, 0, Feeder::Origin(1));
        mesh.world.advance(120 * SECOND);
        assert_eq!(mesh.held(client), "l@1 | r@1 | a@of the second | a@1", "{protocol:?}");
        let told = mesh.world.told(client).join(" ");
        assert!(!told.contains("-a") && !told.contains("-l") && !told.contains("-r"), "{told}");
    }
}

#[test]
fn the_next_server_is_asked_while_the_first_is_away() {
    for protocol in BOTH {
        let mut world = World::empty();
        world.origins.extend([Origin::new(), Origin::new()]);
        let text = text(protocol).replace("server: '127.0.0.1:1'", "servers: ['a:1', 'b:1']");
        world.add_relay(&text, vec![Feeder::Origin(0), Feeder::Origin(1)]);
        let mut mesh = Mesh { world };
        mesh.fill();
        mesh.world.set_up(0, false);
        mesh.world.advance(2 * SILENCE);
        let client = mesh.client("c");
        assert_eq!(mesh.held(client), "l@1 | r@1 | a@1 b@1 | a@1 b@1", "{protocol:?}");
        assert_eq!(mesh.trouble(), None);
        mesh.world.told(client);
        mesh.world.set_up(0, true);
        mesh.world.advance(120 * SECOND);
        assert_eq!((mesh.world.origins[0].streams, mesh.world.origins[1].streams), (1, 0));
        assert_eq!(mesh.world.told(client), [""; 0]);
    }
}

#[test]
fn a_glob_of_names_of_an_authority_is_followed_and_what_is_of_another_origin_is_refused() {
    const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
    let member = |name: &str| GLOB.replace('*', name);
    let mut world = World::empty();
    world.origins.extend([Origin::new(), Origin::new()]);
    let text = format!(
        "origins: [{{ name: other, server: '127.0.0.1:1' }}, {{ name: cp, server: '127.0.0.1:1', authorities: [a], \
         follow: {{ collections: ['{GLOB}', envoy.config.cluster.v3.Cluster] }} }}]\ndefault_origin: other\n"
    );
    world.add_relay(&text, vec![Feeder::Origin(0), Feeder::Origin(1)]);
    let mut mesh = Mesh { world };
    let now = mesh.world.now;
    for name in [member("x"), member("y"), "old".to_owned()] {
        let put = frame(CLUSTERS, &name, "1");
        mesh.world.origins[1].put_frame(now, "", CLUSTERS, &name, "v1", put);
    }
    let client = mesh.world.client(DELTA, "n");
    mesh.world.subscribe(client, CLUSTERS, &[GLOB]);
    mesh.world.advance(2 * SILENCE);
    let held = |mesh: &Mesh| mesh.world.clients[client].held(CLUSTERS).join(" ");
    assert_eq!(held(&mesh), format!("{}@1 {}@1", member("x"), member("y")));
    assert!(mesh.world.asked(1).join("\n").contains("NACK "), "names without an authority are another origin's");
    mesh.world.remove(1, CLUSTERS, &member("y"));
    mesh.world.advance(SECOND);
    assert_eq!(held(&mesh), format!("{}@1", member("x")));
}

#[test]
fn what_it_has_is_released_by_stages_and_endpoints_are_served_as_they_are() {
    for protocol in BOTH {
        let mut mesh = Mesh::new(protocol);
        let canaries = Who::Match([("cluster".parse().unwrap(), "canary".to_owned())].into());
        let all = ["100%".parse().map(Who::Percent).unwrap()];
        let stages = [canaries].into_iter().chain(all).map(|who| Stage { who, hold: 600 * SECOND });
        let (rollout, store) = (Rollout::new(None, Stages::new(stages)), Arc::<Memory>::default());
        mesh.world.relays[0].core.roll_out(rollout, store, mesh.world.now).unwrap();
        mesh.fill();
        mesh.world.advance(2 * SILENCE);
        let [canary, other] = ["canary", "other"].map(|cluster| mesh.client(cluster));
        mesh.put(CLUSTERS, "a", eds_cluster("a", "2"));
        mesh.changed();
        assert_eq!(mesh.held(canary), "l@1 | r@1 | a@1 b@1 | a@1 b@1", "it has not settled");
        mesh.world.advance(5 * SECOND);
        assert_eq!(mesh.held(canary), "l@1 | r@1 | a@2 b@1 | a@1 b@1");
        assert_eq!(mesh.held(other), "l@1 | r@1 | a@1 b@1 | a@1 b@1");
        let candidate = || mesh.world.relays[0].core.release_control(None).unwrap().candidate().map(|of| of.release);
        let before = candidate();
        for body in ["2", "3", "4"] {
            mesh.put(ENDPOINTS, "a", frame(ENDPOINTS, "a", body));
            mesh.changed();
            mesh.world.advance(5 * SECOND);
        }
        assert_eq!(mesh.world.relays[0].core.release_control(None).unwrap().candidate().map(|of| of.release), before);
        assert_eq!(
            [canary, other].map(|client| mesh.held(client)),
            ["l@1 | r@1 | a@2 b@1 | a@4 b@1", "l@1 | r@1 | a@1 b@1 | a@4 b@1"]
        );
        mesh.world.set_up(0, false);
        mesh.world.advance(60 * SECOND);
        let order = Order::new(Act::Rollback { to: None }, By::Person("ann".into()), "a test", mesh.world.wall());
        let applied = mesh.world.relays[0].core.order_release(None, &order, mesh.world.now).unwrap();
        assert_eq!(applied.transition, Transition::RolledBack);
        mesh.world.advance(SECOND);
        assert_eq!(mesh.held(canary), "l@1 | r@1 | a@1 b@1 | a@4 b@1");
        mesh.world.set_up(0, true);
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.held(canary), "l@1 | r@1 | a@1 b@1 | a@4 b@1", "it is not taken again");
    }
}

#[test]
fn why_a_collection_is_not_sent_is_no_answer_and_what_was_known_of_it_stays() {
    const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
    const MEMBER: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/x";
    let cases = BOTH.into_iter().flat_map(|protocol| [("*", "a"), (GLOB, MEMBER)].map(|of| (protocol, of)));
    for ((protocol, (collection, member)), is_kept) in cases.flat_map(|case| [(case, true), (case, false)]) {
        let clusters = if collection == "*" { "envoy.config.cluster.v3.Cluster" } else { GLOB };
        let text = text(protocol).replace(
            "follow: {}",
            &format!("authorities: [a], follow: {{ collections: ['{clusters}', envoy.config.listener.v3.Listener] }}"),
        );
        let (mut mesh, store) = (Mesh::new(protocol), Memory::default());
        mesh.world.restart(0, &text, store.clone());
        mesh.put(LISTENERS, "l", listener("l", "r", "1"));
        mesh.put(ROUTES, "r", frame(ROUTES, "r", "1"));
        if is_kept {
            mesh.put(CLUSTERS, member, frame(CLUSTERS, member, "1"));
            mesh.world.advance(2 * SILENCE);
        }
        mesh.world.set_up(0, false);
        let now = mesh.world.now;
        mesh.world.origins[0].remove(now, CLUSTERS, member);
        mesh.world.fail(0, CLUSTERS, collection, 7, "not now");
        mesh.world.restart(0, &text, if is_kept { store } else { Memory::default() });
        let client = mesh.world.client(DELTA, "n");
        mesh.world.subscribe(client, CLUSTERS, &[collection, "none"]);
        mesh.world.subscribe(client, LISTENERS, &["*"]);
        mesh.world.set_up(0, true);
        mesh.world.advance(120 * SECOND);
        let case = format!("{protocol:?} {collection} {is_kept}");
        let held: Vec<_> = is_kept.then(|| format!("{member}@1")).into_iter().collect();
        assert_eq!(mesh.world.clients[client].held(CLUSTERS), held, "{case}");
        assert_eq!(mesh.world.clients[client].held(LISTENERS), ["l@1"], "{case}");
        assert!(mesh.world.told(client).iter().all(|line| !line.contains('-')), "{case}");
        let trouble = mesh.trouble().unwrap();
        let words = "it refuses to say which of envoy.config.cluster.v3.Cluster there are: not now, and what is known";
        assert!(trouble.contains(words), "{case}: {trouble}");
        mesh.put(CLUSTERS, member, frame(CLUSTERS, member, "2"));
        mesh.world.settle();
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.world.clients[client].held(CLUSTERS), [format!("{member}@2")], "{case}");
        assert_eq!(mesh.trouble(), None, "{case}");
    }
}

#[test]
fn an_error_that_passes_does_not_say_that_a_name_is_not_there_and_any_other_does() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        let client = mesh.client("c");
        mesh.world.fail(0, ROUTES, "r", 14, "later");
        mesh.world.fail(0, ROUTES, "late", 14, "later");
        mesh.put(LISTENERS, "l", listener("l", "late", "2"));
        mesh.world.settle();
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.held(client), "l@1 | r@1 | a@1 b@1 | a@1 b@1", "{protocol:?}");
        let trouble = mesh.trouble().unwrap();
        assert!(
            trouble.contains("it has not said what envoy.config.route.v3.RouteConfiguration `late` is"),
            "{trouble}"
        );
        mesh.world.fail(0, ROUTES, "late", 7, "not yours");
        mesh.world.advance(SECOND);
        assert_eq!(mesh.held(client), "l@2 |  | a@1 b@1 | a@1 b@1", "{protocol:?}");
        mesh.world.advance(SECOND);
        assert_eq!(mesh.trouble(), None);
    }
}

/// Fifteen Clusters, of which all but one are gone, and that is held.
fn mostly_gone(protocol: Protocol) -> (Mesh, usize) {
    let mut mesh = Mesh::new(protocol);
    let names: Vec<_> = (0..15).map(|number| format!("c{number:02}")).collect();
    names.iter().for_each(|name| mesh.put(CLUSTERS, name, frame(CLUSTERS, name, "1")));
    mesh.world.advance(4 * SILENCE);
    let client = mesh.client("c");
    let now = mesh.world.now;
    names.iter().skip(1).for_each(|name| mesh.world.origins[0].remove(now, CLUSTERS, name));
    mesh.world.settle();
    mesh.world.advance(SECOND);
    assert!(mesh.trouble().unwrap().starts_with("14 resources are gone at once"), "{:?}", mesh.trouble());
    (mesh, client)
}

#[test]
fn a_removal_of_much_at_once_is_not_seen_again_on_a_stream_that_says_nothing() {
    for protocol in BOTH {
        let (mut mesh, client) = mostly_gone(protocol);
        mesh.world.set_up(0, false);
        mesh.world.advance(5 * SECOND);
        mesh.world.origins[0].silent = true;
        mesh.world.set_up(0, true);
        mesh.world.advance(600 * SECOND);
        assert!(mesh.world.is_fed(0), "there is a stream");
        assert_eq!(mesh.world.clients[client].held(CLUSTERS).len(), 15, "{protocol:?}");
        mesh.world.origins[0].silent = false;
        mesh.world.advance(90 * SECOND);
        assert_eq!(mesh.world.clients[client].held(CLUSTERS), ["c00@1"], "{protocol:?}");
    }
}

#[test]
fn a_removal_of_much_at_once_is_seen_again_by_who_answers_for_as_long_as_it_is_held() {
    for protocol in BOTH {
        let (mut mesh, client) = mostly_gone(protocol);
        mesh.world.advance(20 * SECOND);
        mesh.world.set_up(0, false);
        mesh.world.advance(SECOND);
        mesh.world.set_up(0, true);
        mesh.world.advance(20 * SECOND);
        assert!(mesh.world.is_fed(0));
        assert_eq!(mesh.world.clients[client].held(CLUSTERS).len(), 15, "{protocol:?}");
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.world.clients[client].held(CLUSTERS), ["c00@1"], "{protocol:?}");
    }
}

#[test]
fn what_goes_before_all_was_said_stays_and_is_held_with_all_else() {
    let (mut mesh, store) = (Mesh::new(DELTA), Memory::default());
    mesh.world.restart(0, &text(DELTA), store.clone());
    let names: Vec<_> = (0..15).map(|number| format!("c{number:02}")).collect();
    names.iter().for_each(|name| mesh.put(CLUSTERS, name, frame(CLUSTERS, name, "1")));
    mesh.put(LISTENERS, "l", listener("l", "r", "1"));
    mesh.put(ROUTES, "r", frame(ROUTES, "r", "1"));
    mesh.world.advance(2 * SILENCE);
    mesh.keep_silent_of(ROUTES);
    mesh.world.restart(0, &text(DELTA), store.clone());
    mesh.world.advance(60 * SECOND);
    let client = mesh.client("c");
    let now = mesh.world.now;
    names.iter().skip(1).for_each(|name| mesh.world.origins[0].remove(now, CLUSTERS, name));
    mesh.put(CLUSTERS, "new", frame(CLUSTERS, "new", "1"));
    mesh.changed();
    mesh.world.advance(10 * SECOND);
    assert_eq!(mesh.world.clients[client].held(CLUSTERS).len(), 16);
    // Nor are they forgotten.
    mesh.world.set_up(0, false);
    mesh.world.restart(0, &text(DELTA), store);
    let client = mesh.client("c");
    mesh.world.advance(10 * SECOND);
    assert_eq!(mesh.world.clients[client].held(CLUSTERS).len(), 16);
    mesh.world.between = None;
    mesh.world.set_up(0, true);
    mesh.world.advance(2 * SILENCE);
    assert_eq!(mesh.world.clients[client].held(CLUSTERS).len(), 16);
    assert!(mesh.trouble().unwrap().contains("14 resources are gone at once"), "{:?}", mesh.trouble());
    mesh.world.advance(60 * SECOND);
    assert_eq!(mesh.world.clients[client].held(CLUSTERS), ["c00@1", "new@1"]);
}

#[test]
fn what_is_known_is_served_where_a_name_is_late_and_a_removal_is_held_from_the_start() {
    let (mut mesh, store) = (Mesh::new(DELTA), Memory::default());
    mesh.world.restart(0, &text(DELTA), store.clone());
    let names: Vec<_> = (0..15).map(|number| format!("c{number:02}")).collect();
    names.iter().for_each(|name| mesh.put(CLUSTERS, name, frame(CLUSTERS, name, "1")));
    mesh.world.advance(2 * SILENCE);
    let now = mesh.world.now;
    names.iter().skip(1).for_each(|name| mesh.world.origins[0].remove(now, CLUSTERS, name));
    mesh.world.restart(0, &text(DELTA), store);
    let client = mesh.client("c");
    mesh.world.advance(20 * SECOND);
    assert!(mesh.trouble().unwrap().contains("14 resources are gone"), "{:?}", mesh.trouble());
    mesh.keep_silent_of(ROUTES);
    mesh.put(LISTENERS, "l", listener("l", "late", "1"));
    mesh.put(CLUSTERS, "new", frame(CLUSTERS, "new", "1"));
    mesh.world.settle();
    mesh.world.advance(120 * SECOND);
    let held = mesh.world.clients[client].held(CLUSTERS);
    assert!(held.len() == 16 && held.contains(&"new@1".to_owned()), "{held:?}");
    assert_eq!(mesh.world.clients[client].held(LISTENERS), [""; 0]);
}

#[test]
fn what_refers_to_what_never_was_good_stays_as_it_was_over_a_restart() {
    for protocol in BOTH {
        let (mut mesh, store) = (Mesh::new(protocol), Memory::default());
        mesh.world.restart(0, &text(protocol), store.clone());
        mesh.fill();
        mesh.world.advance(2 * SILENCE);
        let broken = |name: &str| [field(1, name.as_bytes()), vec![0x12, 0x70]].concat();
        mesh.put(ROUTES, "broken", Frame::of_message(&ROUTES.into(), &broken("broken")));
        mesh.put(LISTENERS, "l", listener("l", "broken", "2"));
        // One that was good goes on as it was, and what refers to it changes.
        mesh.put(ENDPOINTS, "a", Frame::of_message(&ENDPOINTS.into(), &broken("a")));
        mesh.changed();
        mesh.put(CLUSTERS, "a", eds_cluster("a", "2"));
        mesh.changed();
        mesh.world.restart(0, &text(protocol), store);
        let client = mesh.client("c");
        mesh.put(CLUSTERS, "a", eds_cluster("a", "3"));
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.held(client), "l@1 | r@1 | a@3 b@1 | a@1 b@1", "{protocol:?}");
        mesh.put(ROUTES, "broken", frame(ROUTES, "broken", "1"));
        mesh.changed();
        mesh.world.advance(SECOND);
        assert_eq!(mesh.held(client), "l@2 |  | a@3 b@1 | a@1 b@1", "{protocol:?}");
        mesh.world.remove(0, LISTENERS, "l");
        mesh.changed();
        assert_eq!(mesh.held(client), " |  | a@3 b@1 | a@1 b@1", "{protocol:?}");
    }
}

#[test]
fn a_name_that_is_followed_and_late_is_not_said_to_be_gone() {
    const NAME: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/x";
    for protocol in BOTH {
        let text =
            text(protocol).replace("follow: {}", &format!("authorities: [a], follow: {{ collections: ['{NAME}'] }}"));
        let (mut mesh, store) = (Mesh::new(protocol), Memory::default());
        mesh.world.restart(0, &text, store.clone());
        mesh.put(CLUSTERS, NAME, frame(CLUSTERS, NAME, "1"));
        mesh.world.advance(2 * SILENCE);
        mesh.world.set_up(0, false);
        mesh.world.restart(0, &text, store);
        mesh.world.origins[0].silent = true;
        mesh.world.set_up(0, true);
        let client = mesh.world.client(DELTA, "n");
        mesh.world.subscribe(client, CLUSTERS, &[NAME]);
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.world.clients[client].held(CLUSTERS), [format!("{NAME}@1")], "{protocol:?}");
        let trouble = mesh.trouble().unwrap();
        assert!(
            trouble.contains(&format!("it has not said what envoy.config.cluster.v3.Cluster `{NAME}` is")),
            "{trouble}"
        );
        mesh.world.origins[0].silent = false;
        mesh.put(CLUSTERS, NAME, frame(CLUSTERS, NAME, "2"));
        mesh.world.advance(SILENCE);
        assert_eq!(mesh.world.clients[client].held(CLUSTERS), [format!("{NAME}@2")], "{protocol:?}");
        mesh.world.remove(0, CLUSTERS, NAME);
        mesh.world.advance(SECOND);
        assert_eq!(mesh.world.clients[client].held(CLUSTERS), [""; 0], "{protocol:?}");
    }
}

#[test]
fn what_another_origin_has_is_not_asked_for_and_holds_up_nothing() {
    const LISTENER: &str = "xdstp://a/envoy.config.listener.v3.Listener/l";
    let own = "xdstp://a/envoy.config.route.v3.RouteConfiguration/r";
    for protocol in BOTH {
        let spoken = if protocol == DELTA { "delta" } else { "sotw" };
        let mut world = World::empty();
        world.origins.extend([Origin::new(), Origin::new()]);
        let text = format!(
            "origins: [{{ name: other, server: '127.0.0.1:1', authorities: [b] }}, {{ name: cp, server: '127.0.0.1:1', \
             protocol: {spoken}, authorities: [a], follow: {{ collections: ['{LISTENER}'] }} }}]\ndefault_origin: other\n"
        );
        world.add_relay(&text, vec![Feeder::Origin(0), Feeder::Origin(1)]);
        let mut mesh = Mesh { world };
        mesh.keep_silent_of(ROUTES);
        let client = mesh.world.client(DELTA, "n");
        mesh.world.subscribe(client, LISTENERS, &[LISTENER]);
        for (body, routes) in [("1", "r"), ("2", "xdstp://b/envoy.config.route.v3.RouteConfiguration/r")] {
            mesh.put(LISTENERS, LISTENER, listener(LISTENER, routes, body));
            mesh.world.settle();
            mesh.world.advance(2 * SILENCE);
            assert_eq!(mesh.world.clients[client].held(LISTENERS), [format!("{LISTENER}@{body}")], "{protocol:?}");
        }
        assert!(!mesh.world.asked(1).join("\n").contains("RouteConfiguration"));
        mesh.put(LISTENERS, LISTENER, listener(LISTENER, own, "3"));
        mesh.world.settle();
        assert!(mesh.world.asked(1).join("\n").contains("RouteConfiguration"));
    }
}

#[test]
fn one_of_which_less_is_wanted_or_more_may_be_asked_for_is_followed_again() {
    for (protocol, is_by_limit) in BOTH.into_iter().flat_map(|protocol| [(protocol, true), (protocol, false)]) {
        let mut world = World::empty();
        world.origins.push(Origin::new());
        world.add_relay(&(text(protocol) + "limits: { names: 4 }\n"), vec![Feeder::Origin(0)]);
        let mut mesh = Mesh { world };
        mesh.fill();
        // Its names are of a limit of its own.
        let client = mesh.world.client(DELTA, "n");
        mesh.world.subscribe(client, CLUSTERS, &["*"]);
        mesh.world.advance(60 * SECOND);
        assert_eq!(mesh.world.clients[client].held(CLUSTERS), [""; 0]);
        if is_by_limit {
            let config = xds_relay::Config::parse("relay.yaml", &text(protocol)).unwrap();
            mesh.world.relays[0].core.set_what_is_read_at_use(&config);
        } else {
            mesh.world.remove(0, CLUSTERS, "b");
        }
        mesh.world.advance(60 * SECOND);
        let all = if is_by_limit { "a@1 b@1" } else { "a@1" };
        assert_eq!(mesh.world.clients[client].held(CLUSTERS).join(" "), all, "{protocol:?}");
        assert_eq!(mesh.trouble(), None, "{protocol:?}");
    }
}

#[test]
fn what_is_refused_of_what_nothing_refers_to_any_more_is_nobody_s_trouble() {
    for protocol in BOTH {
        let mut mesh = Mesh::filled(protocol);
        mesh.put(ROUTES, "other", frame(ROUTES, "other", "1"));
        mesh.put(LISTENERS, "l", listener("l", "other", "2"));
        mesh.changed();
        mesh.world.asked(0);
        // It lingers.
        let broken = [field(1, b"r"), vec![0x12, 0x70]].concat();
        mesh.put(ROUTES, "r", Frame::of_message(&ROUTES.into(), &broken));
        mesh.changed();
        assert!(mesh.world.asked(0).join("\n").contains("RouteConfiguration NACK "), "{protocol:?}");
        mesh.world.advance(SECOND);
        assert_eq!(mesh.trouble(), None, "{protocol:?}");
    }
}

#[test]
fn what_is_in_no_release_does_not_put_one_off() {
    let mut mesh = Mesh::new(SOTW);
    let (stages, store) = (Stages::new([]), Arc::<Memory>::default());
    mesh.world.relays[0].core.roll_out(Rollout::new(None, stages), store, mesh.world.now).unwrap();
    mesh.fill();
    mesh.world.advance(2 * SILENCE);
    let client = mesh.client("c");
    mesh.put(CLUSTERS, "a", eds_cluster("a", "2"));
    for body in 2..8 {
        mesh.put(ENDPOINTS, "a", frame(ENDPOINTS, "a", &body.to_string()));
        mesh.changed();
    }
    assert_eq!(mesh.held(client), "l@1 | r@1 | a@2 b@1 | a@7 b@1");
}
