//! The relay on files, and the adapter that writes them.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::mpsc;

use tokio::net::TcpListener;
use xds_relay::{Config, Relay, config};

use super::runs::Results;

/// Its address. It runs for as long as the tests do.
fn relay(directory: &Path) -> String {
    let origin = config::Origin::files("files", directory).with_authorities(["conformance", "elsewhere"]);
    let mut config = Config::new([origin]);
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
