//! `xds get` of a server.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, unreachable_pub, reason = "a test fails by panicking")]

mod cli;

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::transport::Server;
use xds_transport::Frame;
use xds_transport::grpc::server::{Accept, Accepted, Opened, Service};
use xds_transport::server::Settings;
use xdstp_cache::{Cache, Options};
use xdstp_uri::ResourceName;

use cli::xds;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/dir/*";
const MEMBER: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/dir/x";

/// Clusters `web` and `MEMBER` for everybody.
struct Clusters;

impl Accept for Clusters {
    type Source = Cache<Frame>;

    fn accept(&self, _: Opened) -> Result<Accepted<Cache<Frame>>, Status> {
        let mut cache = Cache::new(Options::default());
        for name in ["web", MEMBER] {
            let mut payload = vec![0x0a, u8::try_from(name.len()).unwrap()];
            payload.extend(name.bytes());
            let resource = Frame::of_message(&CDS.into(), &payload).into_resource(None);
            cache.upsert_raw(
                &CDS.into(),
                &ResourceName::parse(name).unwrap(),
                resource,
                Instant::now(),
                &mut Vec::new(),
            );
        }
        Ok(cache.into())
    }

    fn settings(&self) -> Settings {
        Settings::default()
    }
}

/// Serves for as long as the tests run.
fn serve() -> SocketAddr {
    let (address, serving) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            address.send(listener.local_addr().unwrap()).unwrap();
            let routes = Service::new(Arc::new(Clusters)).into_routes();
            Server::builder().add_routes(routes).serve_with_incoming(TcpListenerStream::new(listener)).await
        })
    });
    serving.recv().unwrap()
}

/// What `xds get` of these clusters prints, without the times; what it says beside; its exit code.
fn get(names: &[&str]) -> (Vec<String>, String, i32) {
    let server = serve().to_string();
    let run = xds(&[&["get", "--server", &server, "cluster"], names].concat(), "");
    let line = |line: &str| line.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<_> = run.out.lines().map(line).collect();
    lines.sort_unstable();
    (lines, run.err, run.code)
}

#[test]
fn what_two_names_cover_is_printed_once() {
    let both = (vec!["put web".to_owned(), format!("put {MEMBER}")], String::new(), 0);
    assert_eq!(get(&["web", MEMBER]), both);
    assert_eq!(get(&["*", GLOB]), both);
    assert_eq!(get(&[MEMBER, "*", GLOB]), both);
}

#[test]
fn a_name_that_does_not_exist_is_a_failure_with_words_and_an_empty_collection_is_none() {
    let (lines, words, code) = get(&["web", "wbe"]);
    assert_eq!((lines, words.as_str(), code), (vec!["put web".to_owned()], "xds: there is no wbe\n", 1));
    let empty = GLOB.replace("dir", "other");
    assert_eq!(get(&[&empty]), (Vec::new(), String::new(), 0));
}
