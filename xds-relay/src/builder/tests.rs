//! What is said as a relay begins, and what it does not begin with.

use crate::admin::Inspect as _;

use super::*;
use crate::api;

#[test]
fn that_nothing_is_shared_is_said_where_it_matters() {
    let directory = tempfile::tempdir().unwrap();
    for (origins, expected) in [
        ("{ name: a, files: . }", false),
        ("{ name: a, server: a:1 }", true),
        ("{ name: a, files: . }, { name: b, server: a:1, authorities: [b] }", false),
        ("{ name: a, files: . }, { name: b, server: a:1, authorities: [b], xdstp: by_node }", true),
        ("{ name: a, server: a:1 }, { name: b, files: ., authorities: [b] }", true),
    ] {
        let config = Config::parse(directory.path().join("relay.yaml"), &format!("origins: [{origins}]")).unwrap();
        assert_eq!(asks_for_nodes(&config), expected, "{origins}");
    }
}

/// Has nothing yet.
fn empty() -> federation::SnapshotOrigin {
    federation::SnapshotOrigin::new("test", Arc::new(TypeRules::envoy()))
}

fn set() -> federation::SnapshotOrigin {
    let origin = empty();
    origin.set(Vec::new(), std::time::Instant::now());
    origin
}

fn embedded() -> Config {
    let mut config =
        Config::new([config::Origin::embedded("a"), config::Origin::server("b", "http://b:1".parse().unwrap())]);
    (config.listen, config.admin) = (([127, 0, 0, 1], 0).into(), None);
    config
}

#[tokio::test]
async fn an_embedded_origin_is_brought_and_ready_and_no_other_is() {
    type Make = fn(RelayBuilder) -> RelayBuilder;
    let cases: [(Make, &str); 4] = [
        (|builder| builder, "origin \"a\": it is embedded, and nobody brought it"),
        (|builder| builder.origin("a", empty()), "origin \"a\": its content has not come yet"),
        (
            |builder| builder.origin("a", set()).origin("b", set()),
            "origin \"b\": the configuration has no embedded origin of this name",
        ),
        (
            |builder| builder.origin("a", set()).origin("c", set()),
            "origin \"c\": the configuration has no embedded origin of this name",
        ),
    ];
    for (make, expected) in cases {
        let Err(error) = make(Relay::builder(embedded())).bind().await else { panic!("{expected}") };
        assert_eq!(error.to_string(), expected);
    }
    assert!(Relay::builder(embedded()).origin("a", empty()).origin("a", Arc::new(set())).bind().await.is_ok());
}

#[tokio::test]
async fn what_an_embedded_origin_has_whoever_wants_it_is_shown_as_that_of_files_is() {
    let (origin, now) = (empty(), std::time::Instant::now());
    let type_url = xdstp_cache::TypeUrl::from("type.googleapis.com/envoy.config.cluster.v3.Cluster");
    let web = xds_transport::Frame::of_message(&type_url, b"\x0a\x03web").into_resource(None);
    origin.set(vec![(type_url.clone(), "web".parse().unwrap(), web)], now);
    let Relay { core, .. } = Relay::builder(embedded()).origin("a", origin).bind().await.unwrap();
    let held = core.resources(&api::ResourceQuery::default(), now).resources;
    let [row] = held.as_slice() else { panic!("{held:?}") };
    assert_eq!((row.name.as_str(), row.scope.as_str(), row.origin.as_str()), ("web", "test", "a"));
    let query = api::NameQuery { type_url: type_url.to_string(), name: "web".to_owned() };
    assert_eq!(core.resource(&query).iter().map(|found| &found.held.row).collect::<Vec<_>>(), [row]);
    assert_eq!(core.origin_details(now).origins[0].status.resources, 1);
    assert_eq!(core.config_dump(now).origins[0].content[0].resources[0].name, "web");
}

#[tokio::test]
async fn a_configuration_that_was_made_is_validated() {
    let Err(error) = Relay::bind(Config::new([])).await else { panic!("it has no origin") };
    assert_eq!(error.to_string(), "configuration: origins: empty; expected at least one origin");
}

#[tokio::test]
async fn listeners_of_ones_own_count_and_not_the_addresses_of_the_configuration() {
    let [xds, admin] =
        [TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap()];
    let [at, admin_at] = [&xds, &admin].map(|listener| listener.local_addr().unwrap());
    let mut config = embedded();
    config.listen = ([192, 0, 2, 1], 1).into();
    let builder = Relay::builder(config).origin("a", set()).listener(xds).admin_listener(admin);
    let relay = builder.bind().await.unwrap();
    assert_eq!((relay.listen_address().unwrap(), relay.admin_address().unwrap()), (at.into(), Some(admin_at.into())));
}

#[tokio::test]
async fn a_registry_has_what_the_admin_pages_have_while_the_relay_is_there() {
    let registry = Registry::new();
    let builder = || Relay::builder(embedded()).origin("a", set()).registry(registry.clone());
    let names = || registry.gather().iter().map(|family| family.name().to_owned()).collect::<Vec<_>>();
    let relay = builder().bind().await.unwrap();
    let page = relay.core.metrics().render(&relay.pages.gauges());
    let on_page = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    assert_eq!(names(), on_page.collect::<Vec<_>>());
    let Err(Error::Metrics(prometheus::Error::AlreadyReg)) = builder().bind().await else { panic!("there is one") };
    drop(relay);
    assert!(names().is_empty());
}

/// The program's counts, and the configuration's is not opened.
#[tokio::test]
async fn what_survives_a_restart_is_kept_where_the_program_says() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = embedded();
    config.state = Some(config::State {
        path: directory.path().join("state"),
        secrets: config::Secrets::Omit,
        etcd: None,
        last_known_good: config::KnownIn::Own,
    });
    let (now, wall) = (std::time::Instant::now(), std::time::SystemTime::now());
    let identities = state::identities(&config, &EveryNode);
    let own = State::open(state::Memory::default(), identities, None, now, wall).unwrap();
    let relay = Relay::builder(config).origin("a", set()).state(own).bind().await.unwrap();
    assert!(relay.core.state().is_some());
    assert!(!directory.path().join("state").exists());
}

/// Nobody else opens it before the origins say what there is.
#[tokio::test]
async fn a_state_that_was_given_is_read_before_any_origin_is_asked() {
    let (config, memory) = (embedded(), state::Memory::default());
    let identities = state::identities(&config, &EveryNode);
    let (now, wall) = (std::time::Instant::now(), std::time::SystemTime::now());
    let state = State::later(move || Ok(memory.clone()), identities, None, now, wall);
    let relay = Relay::builder(config).origin("a", set()).state(state).bind().await.unwrap();
    assert!(relay.core.state().is_some_and(State::is_kept));
}
