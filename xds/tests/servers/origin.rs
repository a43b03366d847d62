//! An origin that plays a script: what each of its streams is served.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::transport::Server;
use xds_transport::Frame;
use xds_transport::grpc::server::{Accept, Accepted, Opened, Service, StreamHandle};
use xdstp_cache::{Cache, Options, ResourceError, Variant};
use xdstp_uri::ResourceName;

use super::CDS;

/// What a stream is served.
#[derive(Clone, Debug)]
pub(crate) enum Scene {
    /// These and no others: type, name and encoded message of each.
    Serve(Vec<(String, String, Vec<u8>)>),
    /// Clusters that have variants: the name, what its parameters must satisfy, and the version of each.
    Vary(Vec<(String, String, String)>),
    /// Clusters, as of [`clusters`](Self::clusters), and that something is not sent.
    Withhold(Vec<(String, String, Vec<u8>)>, String),
    /// Nothing, and no word of it.
    Silence,
    /// The end of the stream.
    Refuse(Status),
}

/// A running origin. It runs for as long as the tests do.
pub(crate) struct Origin {
    address: SocketAddr,
    streams: mpsc::Receiver<StreamHandle>,
}

struct Script {
    scenes: Mutex<VecDeque<Scene>>,
    streams: mpsc::Sender<StreamHandle>,
}

impl Scene {
    /// Clusters with these names and nothing else.
    pub(crate) fn clusters(names: &[&str]) -> Self {
        Self::with(&names.iter().map(|name| (*name, &[][..])).collect::<Vec<_>>())
    }

    /// The same, and of something that it is not sent.
    pub(crate) fn withholding(asked: &str, names: &[&str]) -> Self {
        match Self::clusters(names) {
            Self::Serve(resources) => Self::Withhold(resources, asked.to_owned()),
            other => other,
        }
    }

    /// Clusters with these names, and more of the message.
    pub(crate) fn with(clusters: &[(&str, &[u8])]) -> Self {
        let cluster = |(name, more): &(&str, &[u8])| {
            let head = [0x0a, u8::try_from(name.len()).unwrap()];
            (CDS.to_owned(), (*name).to_owned(), [&head, name.as_bytes(), more].concat())
        };
        Self::Serve(clusters.iter().map(cluster).collect())
    }
}

impl Origin {
    /// Plays these scenes, a stream each; the last one for all that come after it.
    pub(crate) fn play(scenes: &[Scene]) -> Self {
        let (address, serving) = mpsc::channel();
        let (streams, opened) = mpsc::channel();
        let script = Script { scenes: Mutex::new(scenes.iter().cloned().collect()), streams };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                address.send(listener.local_addr().unwrap()).unwrap();
                let routes = Service::new(script).into_routes();
                Server::builder().add_routes(routes).serve_with_incoming(TcpListenerStream::new(listener)).await
            })
        });
        Self { address: serving.recv().unwrap(), streams: opened }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Ends the oldest stream that was not ended yet, when it is there.
    pub(crate) fn end_stream(&self) {
        self.streams.recv().unwrap().end("the next scene");
    }
}

/// An address where nobody listens.
pub(crate) fn nobody() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

impl Accept for Script {
    type Source = Cache<Frame>;

    async fn accept(&self, opened: Opened) -> Result<Accepted<Cache<Frame>>, Status> {
        let mut scenes = self.scenes.lock().unwrap();
        let scene = if scenes.len() > 1 { scenes.pop_front() } else { scenes.front().cloned() };
        let mut variants = Vec::new();
        let mut withheld = None;
        let (authoritative, resources) = match scene.unwrap() {
            Scene::Withhold(resources, name) => {
                withheld = Some(name);
                (true, resources)
            }
            Scene::Serve(resources) => (true, resources),
            Scene::Vary(all) => {
                variants = all;
                (true, Vec::new())
            }
            Scene::Silence => (false, Vec::new()),
            Scene::Refuse(status) => return Err(status),
        };
        let mut options = Options::default();
        options.authoritative = authoritative;
        let mut cache = Cache::new(options);
        for (type_url, name, message) in resources {
            let (type_url, name) = (type_url.as_str().into(), ResourceName::parse(&name).unwrap());
            let resource = Frame::of_message(&type_url, &message).into_resource(Some("v1".into()));
            let mut edit = cache.edit(Instant::now());
            edit.put(&type_url, &name, resource);
            let _ = edit.finish();
        }
        let mut edit = cache.edit(Instant::now());
        if let Some(name) = withheld {
            let error = ResourceError::new(ResourceError::PERMISSION_DENIED, "ask for each by its name");
            edit.fail(&CDS.into(), &name.parse().unwrap(), error);
        }
        for (name, constraint, version) in variants {
            let message = [&[0x0a, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
            let resource = Frame::of_message(&CDS.into(), &message).into_resource(Some(version.as_str().into()));
            let variant = Variant::Constraints(constraint.parse().unwrap());
            edit.put_variant(&CDS.into(), &name.parse().unwrap(), &variant, resource);
        }
        let _ = edit.finish();
        let _ = self.streams.send(opened.handle);
        Ok(cache.into())
    }
}
