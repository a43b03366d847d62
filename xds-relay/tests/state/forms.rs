//! What earlier versions wrote. In `form-1` is what a relay kept that was killed in the year 2100, so that it never grows old: what its
//! origin had said, and releases of which one was frozen and another waited.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use xdstp_client::{Client, Endpoint, Event};

use crate::process::{Running, answer, connect, file, relay};

const KEPT: [(&str, &[u8]); 2] = [
    ("state.redb", include_bytes!("form-1/state.redb.gz")),
    ("releases.redb", include_bytes!("form-1/releases.redb.gz")),
];
const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
// Nobody is there.
const CONFIG: &str = "
listen: 127.0.0.1:0
admin: 127.0.0.1:0
origins:
  - { name: files, files: resources }
  - { name: away, server: 'unix-abstract:xds-relay-form-1', authorities: [xds.example.com] }
state: { path: state }
rollout: [{ scope: old-style, settle: 0s }]
";

fn unpack(directory: &Path) {
    fs::create_dir(directory.join("state")).unwrap();
    for (name, packed) in KEPT {
        let mut kept = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut kept).unwrap();
        fs::write(directory.join("state").join(name), kept).unwrap();
    }
    fs::create_dir(directory.join("resources")).unwrap();
    fs::write(directory.join("resources/a.yaml"), format!("resources:\n- {{ '@type': {CDS}, name: other }}\n"))
        .unwrap();
}

#[tokio::test]
async fn what_was_kept_in_the_first_form_is_served_and_frozen_as_it_was() {
    let (directory, config) = file(CONFIG);
    unpack(directory.path());
    let mut command = relay();
    command.arg("--config").arg(config);
    let relay = Running::start(command, "curl");
    let admin = relay.address_after("http://").trim_end_matches('/').to_owned();

    let client = Client::connect(Endpoint::new(&format!("http://{}", relay.address_after("xDS"))).unwrap());
    let name = format!("xdstp://xds.example.com/{}/mesh/backend", CDS.rsplit('/').next().unwrap());
    for (name, version, bytes) in
        [(&*name, "5eeab05145cbbb9c9f6b7a7a4faaf46c", 225), ("kept", "10912a48b7e0a131f78dd806e8878d46", 61)]
    {
        match client.watch(CDS, name).changed().await {
            Event::Put { version: is, resource, .. } => {
                assert_eq!((is.to_string(), resource.len()), (version.to_owned(), bytes), "{name}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }

    let page = |path: &str| -> Value {
        let answer = answer(&mut connect(&admin), path);
        serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    };
    let scope = &page("/api/v1/releases")["scopes"][0];
    assert_eq!(scope["stable"], "81280bca7c5d3bb8eda5dc4ac7ab5915", "{scope}");
    assert_eq!(scope["candidate"]["release"], "bde856651fc2216c6a46b2134855a383", "{scope}");
    assert_eq!([&scope["frozen"]["by"], &scope["frozen"]["why"]], ["ops (uid 0)", "an upgrade"], "{scope}");
    let audit = page("/api/v1/audit");
    let done: Vec<_> = audit["entries"].as_array().unwrap().iter().rev().map(|entry| &entry["done"]).collect();
    assert_eq!(done[..4], ["took over", "promoted", "frozen", "waits"], "{audit}");
    assert_eq!(page("/config_dump")["state"]["damaged"], 0);
}
