//! Relays that are, through others, their own origin: rule 159.

use xds_relay::admin::UpstreamDump;

use crate::support::*;

impl World {
    /// Relays each of which is the origin of the one before, and the first that of the last.
    fn ring(relays: usize, protocol: Protocol) -> Self {
        let mut world = Self::empty();
        for relay in 0..relays {
            world.add_relay_before(Feeder::Relay((relay + 1) % relays), protocol);
        }
        world
    }

    /// The streams of a relay to one of its origins.
    fn upstream(&self, relay: usize, origin: usize) -> Vec<UpstreamDump> {
        self.relays[relay].core.config_dump(self.now).origins.remove(origin).streams
    }

    fn instance(&self, relay: usize) -> String {
        self.relays[relay].core.instance()
    }
}

#[test]
fn rule_159_the_stream_that_closes_a_loop_is_dropped_and_nothing_is_subscribed_for_ever() {
    for protocol in [DELTA, SOTW] {
        for relays in 1..=4 {
            for asked in 0..relays {
                let mut world = World::ring(relays, protocol);
                let client = world.client_of(asked, DELTA, "n");
                world.subscribe(client, CLUSTERS, &["x", "*"]);
                world.advance(60 * SECOND);
                let last = (asked + relays - 1) % relays;
                for relay in 0..relays {
                    let [stream] = &world.upstream(relay, 0)[..] else { panic!("one stream") };
                    let error = stream.last_error.as_deref().unwrap_or_default();
                    assert_eq!(error.starts_with("a loop of relays: "), relay == last, "{error}");
                    assert_eq!(stream.relays.is_none(), relay == last);
                }
                let refused = "xds_relay_downstream_loops_total 0";
                assert!(!world.metrics_of(asked).contains(refused), "{}", world.metrics_of(asked));
                assert_eq!(world.told(client), [""; 0], "nobody answered");

                world.disconnect(client);
                world.advance(LINGER * 5);
                let left: Vec<_> = (0..relays).map(|relay| world.streams_of(relay)).collect();
                assert_eq!(left, vec![0; relays]);
            }
        }
    }
}

#[test]
fn rule_159_a_stream_that_closes_a_loop_is_counted_once() {
    let mut world = World::ring(1, DELTA);
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    assert_eq!(world.counted(0, "downstream_loops_total"), 1);
}

/// Two relays that are each other's origin for different names are a loop too; who was there first is served on.
#[test]
fn rule_159_what_comes_over_other_streams_is_not_touched() {
    for protocol in [DELTA, SOTW] {
        let mut world = World::of(&[protocol, protocol], &[&[], &["other"]], "");
        world.relays[0].fed_by[1] = Feeder::Relay(1);
        let second = world.add_relay_before(Feeder::Relay(0), protocol);
        world.put(0, CLUSTERS, "a", "1");
        let served = world.client_of(second, DELTA, "n");
        world.subscribe(served, CLUSTERS, &["*"]);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[served].held(CLUSTERS), ["a@1"]);
        world.told(served);

        let other = world.client_of(0, DELTA, "m");
        world.subscribe(other, ENDPOINTS, &[&endpoints("other", "x")]);
        world.advance(60 * SECOND);
        let (first, loops) = (world.instance(0), world.upstream(0, 1));
        let ring = format!("a loop of relays: {0} → {first} → {0}", world.instance(second));
        assert_eq!(loops.iter().map(|stream| stream.last_error.clone().unwrap()).collect::<Vec<_>>(), [ring]);
        let [kept] = &world.upstream(second, 0)[..] else { panic!("one stream") };
        assert!(kept.connected);
        assert_eq!(kept.relays.as_deref(), Some(&*first));
        assert_eq!((world.told(served), world.told(other)), (Vec::new(), Vec::new()));

        world.put(0, CLUSTERS, "a", "2");
        assert_eq!(world.clients[served].held(CLUSTERS), ["a@2"]);
    }
}

#[test]
fn rule_159_an_origin_that_is_no_loop_any_more_is_asked() {
    let mut world = World::ring(2, DELTA);
    let client = world.client_of(0, DELTA, "n");
    world.subscribe(client, CLUSTERS, &["x"]);
    assert!(world.upstream(1, 0)[0].relays.is_none());
    world.relays[1].fed_by[0] = Feeder::Origin(0);
    world.origins.push(Origin::new());
    world.put(0, CLUSTERS, "x", "1");
    world.advance(30 * SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS), ["x@1"]);
}
