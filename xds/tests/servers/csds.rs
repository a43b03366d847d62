use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use xds_transport::Frame;
use xds_transport::grpc::server::{ClientStatusService, Shared};
use xds_transport::server::Settings;
use xdstp_cache::{Cache, Options};

use super::cli::Run;
use super::origin::{Origin, Scene, nobody};
use super::{CDS, objects, run};

/// A control plane that has the cluster `web`, and tells what its clients have. It runs for as long as the tests do.
fn control_plane() -> String {
    let (address, serving) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let shared = Shared::new(Cache::new(Options::default()), Settings::default());
            let web = Frame::of_message(&CDS.into(), b"\x0a\x03web").into_resource(Some("v1".into()));
            shared.put(&CDS.into(), &"web".parse().unwrap(), web).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            address.send(listener.local_addr().unwrap().to_string()).unwrap();
            let routes = shared.service().into_routes().add_service(ClientStatusService::new(shared.clone()));
            Server::builder().add_routes(routes).serve_with_incoming(TcpListenerStream::new(listener)).await
        })
    });
    serving.recv().unwrap()
}

/// A client that is there until this is dropped.
struct Watching(Child);

impl Watching {
    fn of(server: &str, names: &[&str]) -> Self {
        let mut watch = Command::new(env!("CARGO_BIN_EXE_xds"));
        watch.args(["watch", "--server", server, "--node", "edge", "cluster"]).args(names);
        Self(watch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Asks until it is so.
fn csds_until(done: impl Fn(&Run) -> bool, args: &[&str]) -> Run {
    loop {
        let run = run(&[&["csds"], args].concat());
        if done(&run) {
            return run;
        }
    }
}

#[test]
fn what_clients_have_is_shown_and_0_if_all_of_it_is_well() {
    let server = control_plane();
    let run = run(&["csds", &server]);
    assert_eq!((run.code, &*run.out, &*run.err), (0, "", ""), "there is nobody");
    let _client = Watching::of(&server, &["web"]);
    let acked = |run: &Run| run.out.contains("ACKED");
    let run = csds_until(acked, &["--output", "json", &server]);
    let [object] = objects(&run).try_into().unwrap();
    let expected = serde_json::json!({
        "node": "edge", "type": CDS, "name": "web", "version": "v1", "status": "ACKED", "sent": "SYNCED"
    });
    assert_eq!((run.code, object), (0, expected));
    let run = csds_until(acked, &["--contents", "--output", "json", &server]);
    assert_eq!(objects(&run)[0]["resource"]["name"], "web");
    assert_eq!(csds_until(acked, &[&server]).out, "edge\n  ACKED Cluster web at v1\n");
}

#[test]
fn what_a_client_asks_for_and_does_not_have_is_1() {
    let server = control_plane();
    let _client = Watching::of(&server, &["none"]);
    let run = csds_until(|run| run.out.contains("none"), &[&server]);
    assert_eq!((run.code, &*run.out), (1, "edge\n  DOES_NOT_EXIST Cluster none\n"));
}

#[test]
fn who_does_not_tell_is_3() {
    let away = nobody();
    let origin = Origin::play(&[Scene::Silence]).address();
    for (server, why) in [(&away, "refused"), (&origin, "it has no CSDS")] {
        let run = run(&["csds", server]);
        assert_eq!((run.code, &*run.out), (3, ""));
        assert!(run.err.contains(server.as_str()) && run.err.contains(why), "{}", run.err);
    }
}
