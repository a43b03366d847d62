//! What a configuration has released by stages: from files to clients, told by the API, and kept over a restart.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use xds_relay::api::{CandidateState, Origins, ReleasedScope, Releases};
use xds_relay::{Config, Relay};
use xds_transport::Protocol;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node, Status};

use crate::Running;
use crate::pages::page;
use crate::stream::{Call, framed, in_time};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

async fn start(directory: &Path) -> Running {
    start_with(directory, "").await
}

pub(crate) async fn start_with(directory: &Path, more: &str) -> Running {
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndrain: 1h\norigins: [{{ name: files, files: resources }}]\n\
         state: {{ path: state }}\n\
         rollout: [{{ scope: old-style, settle: 0s, stages: [{{ match: {{ cluster: canary }}, hold: 1h }}] }}]\n{more}\n"
    );
    Running::run(Relay::bind(Config::parse(directory.join("relay.yaml"), &text).unwrap()).await.unwrap())
}

/// The file is replaced whole, as those do it that deploy files.
pub(crate) fn write(directory: &Path, names: &[&str]) {
    let resources = names.iter().map(|name| format!("- {{ '@type': {CDS}, name: {name} }}\n"));
    let text = format!("resources:\n{}", resources.collect::<String>());
    fs::write(directory.join("next"), text).unwrap();
    fs::rename(directory.join("next"), directory.join("resources/a.yaml")).unwrap();
}

fn request(of: DeltaDiscoveryRequest) -> Bytes {
    framed(&DeltaDiscoveryRequest { type_url: CDS.into(), ..of }.encode_to_vec())
}

pub(crate) async fn client(relay: &Running, cluster: &str) -> Call {
    let mut client = Call::open(relay.address, Protocol::Delta.aggregated_method()).await;
    let node = Node { id: "n".into(), cluster: cluster.into(), ..Node::default() }.encode_to_vec().into();
    let subscribe = vec!["*".into()];
    client
        .send(request(DeltaDiscoveryRequest { node, resource_names_subscribe: subscribe, ..Default::default() }))
        .await;
    client
}

/// What a client is sent next, which it takes or refuses.
pub(crate) async fn sent(client: &mut Call, refusal: Option<&str>) -> String {
    let sent = DeltaDiscoveryResponse::decode(in_time(client.message()).await.unwrap()).unwrap();
    let mut names: Vec<_> = sent.resources.iter().map(|resource| resource.name.to_string()).collect();
    names.sort();
    let error_detail = refusal.map(|message| Status { code: 3, message: message.into() });
    client
        .send(request(DeltaDiscoveryRequest { response_nonce: sent.nonce, error_detail, ..Default::default() }))
        .await;
    names.join(" ")
}

/// The only scope, once it is so.
pub(crate) async fn told(relay: &Running, is: impl Fn(&ReleasedScope) -> bool) -> ReleasedScope {
    in_time(async {
        loop {
            let (status, body) = page(relay, "/api/v1/releases").await;
            assert_eq!(status, 200, "{body}");
            let Releases { mut scopes, .. } = serde_json::from_str(&body).unwrap();
            assert_eq!(scopes.len(), 1, "{body}");
            let scope = scopes.remove(0);
            if is(&scope) {
                return scope;
            }
        }
    })
    .await
}

#[tokio::test]
async fn what_canaries_refuse_halts_and_is_halted_still_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::create_dir(directory.join("resources")).unwrap();
    write(directory, &["a"]);
    let mut relay = start(directory).await;
    let stable = told(&relay, |scope| scope.stable.is_some()).await;
    assert_eq!((stable.scope.as_str(), stable.kept.len(), stable.candidate), ("old-style", 1, None));
    let (mut canary, mut other) = (client(&relay, "canary").await, client(&relay, "web").await);
    assert_eq!([sent(&mut canary, None).await, sent(&mut other, None).await], ["a", "a"]);

    write(directory, &["a", "b"]);
    assert_eq!(sent(&mut canary, Some("no such filter")).await, "b");
    let halted =
        told(&relay, |scope| scope.candidate.as_ref().is_some_and(|of| of.state == CandidateState::Halted)).await;
    let candidate = halted.candidate.clone().unwrap();
    assert_eq!((candidate.stage, candidate.stages, candidate.due), (1, 1, None));
    let why = candidate.said.unwrap().why;
    assert!(why.starts_with("clients refused 1") && why.ends_with(" by n: no such filter"), "{why}");
    assert_eq!((halted.stable, halted.kept.len()), (stable.stable.clone(), 2));
    assert_eq!((halted.clients.stable, halted.clients.candidate), (1, 1));
    let (_, metrics) = page(&relay, "/metrics").await;
    for line in [
        "release_candidate{scope=\"old-style\",state=\"halted\"} 1",
        "release_candidate{scope=\"old-style\",state=\"none\"} 0",
        "release_stage{scope=\"old-style\"} 1",
        "release_halts_total{scope=\"old-style\"} 1",
        "release_publisher{scope=\"old-style\"} 1",
        "release_store_up{scope=\"old-style\"} 1",
    ] {
        assert!(metrics.contains(&format!("\nxds_relay_{line}\n")), "{line}: {metrics}");
    }
    // Nobody else gets it: not who was there, nor who comes.
    assert_eq!(sent(&mut client(&relay, "canary").await, None).await, "a");
    relay.stop();
    drop((canary, other));
    relay.stopped().await;

    let relay = start(directory).await;
    let restarted = told(&relay, |_| true).await;
    assert_eq!(restarted.stable, stable.stable);
    assert_eq!(restarted.candidate.unwrap().state, CandidateState::Halted);
    for cluster in ["web", "canary"] {
        assert_eq!(sent(&mut client(&relay, cluster).await, None).await, "a");
    }
}

#[tokio::test]
async fn a_relay_does_not_start_without_what_is_released() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::create_dir(directory.join("resources")).unwrap();
    fs::create_dir(directory.join("state")).unwrap();
    fs::write(directory.join("state/releases.redb"), "no such file").unwrap();
    let text = "listen: 127.0.0.1:0\nadmin: none\norigins: [{ name: files, files: resources }]\nstate: { path: state }\n\
        rollout: [{ scope: old-style }]\n";
    let config = Config::parse(directory.join("relay.yaml"), text).unwrap();
    let Err(error) = Relay::bind(config).await else { panic!("it starts") };
    let error = error.to_string();
    assert!(error.starts_with("rollout: what is released cannot be read from "), "{error}");
    assert!(error.contains("releases.redb: "), "{error}");
}

#[tokio::test]
async fn who_is_asked_whether_all_is_well_halts_a_release_by_another_answer_than_200_and_not_by_none() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::create_dir(directory.join("resources")).unwrap();
    write(directory, &["a"]);
    let (asked, answers) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), ["200 OK", "503 Service Unavailable"]);
    let at = asked.local_addr().unwrap();
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\norigins: [{{ name: files, files: resources }}]\n\
         state: {{ path: state }}\n\
         rollout: [{{ scope: old-style, settle: 0s, stages: [{{ match: {{ cluster: canary }}, hold: 1h }}], \
         halt: {{ check: 'http://{at}/ok?a=b' }} }}]\n"
    );
    let relay = Running::run(Relay::bind(Config::parse(directory.join("relay.yaml"), &text).unwrap()).await.unwrap());
    told(&relay, |scope| scope.stable.is_some()).await;
    write(directory, &["a", "b"]);
    let check = |words: &str| {
        let words = words.to_owned();
        move |scope: &ReleasedScope| {
            scope.candidate.as_ref().is_some_and(|of| of.check.as_ref().is_some_and(|check| check.contains(&words)))
        }
    };
    // It takes the connection and says nothing: that is none.
    drop(in_time(asked.accept()).await.unwrap());
    told(&relay, check("no answer: ")).await;
    for answer in answers {
        let (mut io, _) = in_time(asked.accept()).await.unwrap();
        let mut head = [0; 512];
        let length = in_time(io.read(&mut head)).await.unwrap();
        assert!(head[..length].starts_with(b"GET /ok?a=b HTTP/1.1\r\n"), "{:?}", &head[..length]);
        io.write_all(format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await.unwrap();
        let words = if answer.starts_with("200") { "all is well" } else { "says 503" };
        told(&relay, check(words)).await;
    }
    let halted = told(&relay, |scope| scope.candidate.as_ref().unwrap().state == CandidateState::Halted).await;
    assert_eq!(halted.candidate.unwrap().said.unwrap().why, format!("http://{at}/ok?a=b says 503 Service Unavailable"));
}

/// Whether the origin of files is said to be in trouble, and with what.
async fn trouble(relay: &Running) -> Option<String> {
    let (_, body) = page(relay, "/api/v1/origins").await;
    let origins: Origins = serde_json::from_str(&body).unwrap();
    origins.origins.into_iter().find_map(|origin| origin.status.trouble())
}

#[tokio::test]
async fn a_relay_starts_with_bad_files_and_serves_what_is_stable_until_they_are_good() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::create_dir(directory.join("resources")).unwrap();
    write(directory, &["a"]);
    let mut relay = start(directory).await;
    told(&relay, |scope| scope.stable.is_some()).await;
    assert_eq!(trouble(&relay).await, None);
    relay.stop();
    relay.stopped().await;

    fs::write(directory.join("resources/a.yaml"), "resources: [{}]").unwrap();
    fs::write(directory.join("resources/b.yaml"), "resources: [").unwrap();
    let mut relay = start(directory).await;
    let mut client = client(&relay, "web").await;
    assert_eq!(sent(&mut client, None).await, "a");
    // What is in no release, such as endpoints, was not read.
    let (status, words) = page(&relay, "/readyz").await;
    assert!(status == 503 && words.contains("origin \"files\""), "{status} {words}");
    assert!(words.contains("a.yaml:1:") && words.contains("what was released is served"), "{words}");
    let words = trouble(&relay).await.unwrap();
    assert!(words.contains("a.yaml:1:") && words.contains("b.yaml:1:"), "{words}");
    let (_, metrics) = page(&relay, "/metrics").await;
    let failed = "xds_relay_file_reloads_total{origin=\"files\",result=\"failed\"} 1\n";
    assert!(metrics.contains(failed), "{metrics}");

    fs::remove_file(directory.join("resources/b.yaml")).unwrap();
    write(directory, &["a", "b"]);
    told(&relay, |scope| scope.candidate.is_some()).await;
    assert_eq!(trouble(&relay).await, None);
    relay.stop();
    drop(client);
    relay.stopped().await;
}

#[tokio::test]
async fn a_relay_does_not_start_with_bad_files_where_nothing_is_released_yet() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::create_dir(directory.join("resources")).unwrap();
    fs::write(directory.join("resources/a.yaml"), "resources: [{}]").unwrap();
    fs::write(directory.join("resources/b.yaml"), "resources: [").unwrap();
    let rollout = "state: { path: state }\nrollout: [{ scope: old-style }]\n";
    for more in ["", rollout] {
        let text = format!("listen: 127.0.0.1:0\nadmin: none\norigins: [{{ name: files, files: resources }}]\n{more}");
        let config = Config::parse(directory.join("relay.yaml"), &text).unwrap();
        let Err(error) = Relay::bind(config).await else { panic!("it starts") };
        let error = error.to_string();
        assert!(error.contains("a.yaml:1:") && error.contains("b.yaml:1:"), "{error}");
    }
}
