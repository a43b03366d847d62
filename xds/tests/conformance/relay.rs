//! The relay on files, and the adapter that writes them.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::mpsc;

use tokio::net::TcpListener;
use xds_relay::{Config, Relay, config};
use xds_transport::Dialect;

use super::plane::Plane;
use super::runs::Results;

/// Its address. It runs for as long as the tests do.
fn relay(directory: &Path) -> String {
    let origin = config::Origin::files("files", directory).with_authorities(["conformance", "elsewhere"]);
    started(Config::new([origin]))
}

fn started(mut config: Config) -> String {
    config.admin = None;
    let (started, start) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let relay = Relay::builder(config).listener(listener).bind().await.unwrap();
            started.send(relay.listen_address().unwrap().to_string()).unwrap();
            relay.run(std::future::pending()).await.unwrap();
        });
    });
    start.recv().unwrap()
}

#[test]
fn the_relay_on_files_keeps_the_rules() {
    let directory = tempfile::tempdir().unwrap();
    let (server, adapter) = (relay(directory.path()), format!("files:{}", directory.path().display()));
    // Files are read when they were quiet for a while: the others are for a server that is told.
    let results = Results::of(&[
        &server,
        "--adapter",
        &adapter,
        "--timeout",
        "60",
        "--only",
        "13,66,70,84,99,106,119,120,122,134",
    ]);
    assert!(results.rules("fail").is_empty(), "{}", results.trouble());
    assert!(results.rules("inconclusive").is_empty(), "{}", results.trouble());
    assert_eq!(results.run.code, 0);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
}

/// A relay that speaks the draft before an origin that does not: what it cannot ask for it refuses, and says what that is.
#[test]
fn a_relay_that_translates_sends_what_it_can_and_refuses_the_rest_by_its_name() {
    for (upstream, groups) in [(Dialect::Final, "ranges"), (Dialect::Draft, "parameters,ranges")] {
        let plane = Plane::speaking(upstream);
        let mut origin = config::Origin::server("plane", plane.server.to_string().parse().unwrap());
        origin.dynamic_parameters = upstream;
        let mut config = Config::new([origin]);
        config.dynamic_parameters = Dialect::Draft;
        let (server, adapter) = (started(config), format!("tcp:{}", plane.adapter));
        let args = [&*server, "--adapter", &adapter, "--timeout", "60", "--dialect", "draft", "--only", groups];
        let results = Results::of(&args);
        assert_eq!(results.run.code, 0, "{upstream:?}: {}", results.trouble());
        assert!(results.rules("inconclusive").is_empty(), "{upstream:?}: {}", results.trouble());
    }
}
