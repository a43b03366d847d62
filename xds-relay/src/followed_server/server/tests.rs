use super::*;
use crate::metrics::Metrics;
use crate::relay_core::EveryNode;

pub(in crate::followed_server) fn server() -> (FollowedServer, Arc<RelayCore>) {
    let (config, core) = relay();
    let server = FollowedServer::new(&config, 0, &core, Waker::noop().clone()).unwrap().unwrap();
    (server, core)
}

pub(in crate::followed_server) fn teller() -> (Teller, Arc<RelayCore>) {
    let (config, core) = relay();
    (Teller::new(&core, (0, &config.origins[0])), core)
}

fn relay() -> (Config, Arc<RelayCore>) {
    let text =
        "origins: [{ name: cp, server: 'a:1', follow: {} }]\nstate: { path: . }\nrollout: [{ scope: old-style }]";
    let config = Config::parse("relay.yaml", text).unwrap();
    let dialer = Box::new(crate::origins::Connections::new(&config).unwrap());
    let core = RelayCore::new(&config, Box::new(EveryNode), dialer, Arc::new(Metrics::new([])));
    (config, core)
}

fn asking(now: Instant) -> (FollowedServer, Arc<RelayCore>) {
    let (mut server, core) = server();
    assert!(server.poll(now));
    assert_eq!((server.stage, server.subscribers.len()), (Stage::Asks, 2));
    (server, core)
}

#[tokio::test]
async fn where_nothing_is_new_nothing_is_looked_through() {
    let now = Instant::now();
    let (mut server, _core) = asking(now);
    server.poll(now);
    server.poll(now + LOOKED);
    let told = server.gathered.asked();
    for seconds in 2..20 {
        assert!(!server.poll(now + seconds * LOOKED));
    }
    assert_eq!(server.gathered.asked(), told);
}

#[tokio::test]
async fn one_that_has_too_much_is_asked_for_nothing_for_a_while_and_then_anew() {
    let now = Instant::now();
    let (mut server, core) = asking(now);
    server.gathered.at_most(1);
    for name in ["a", "b"] {
        let resource = xds_transport::Frame::of_message(&"x.Y".into(), b"").into_resource(None);
        server.gathered.put(("x.Y".into(), name.parse().unwrap()), resource);
    }
    server.poll(now + LOOKED);
    let until = now + LOOKED + RESTS;
    assert_eq!(
        (server.stage, server.subscribers.len(), server.poll_timeout()),
        (Stage::Rests { until }, 0, Some(until))
    );
    let trouble = core.status(now).origins[0].clone();
    let trouble = trouble.last_error.or(trouble.hint).unwrap();
    assert!(trouble.contains("it has more than 1 resources"), "{trouble}");
    assert!(!server.poll(until - LOOKED));
    server.poll(until);
    assert_eq!((server.stage, server.subscribers.len()), (Stage::Asks, 2));
    assert!(server.gathered.is_empty());
}
