//! Our own control plane, and an adapter for it: the one that the guide shows.

use std::net::SocketAddr;
use std::sync::mpsc;

use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use xds_transport::Dialect;
use xds_transport::grpc::server::ControlPlane;
use xds_transport::server::Settings;

use super::adapter;

/// Where it is served, and where it is changed. It runs for as long as the tests do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plane {
    pub(crate) server: SocketAddr,
    pub(crate) adapter: SocketAddr,
    pub(crate) cncf: SocketAddr,
}

impl Plane {
    pub(crate) fn start() -> Self {
        Self::speaking(Dialect::Final)
    }

    /// One that speaks this form of dynamic parameters.
    pub(crate) fn speaking(dialect: Dialect) -> Self {
        let (started, start) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let plane = serve(dialect).await;
                started.send(plane).unwrap();
                std::future::pending::<()>().await;
            });
        });
        start.recv().unwrap()
    }
}

/// A control plane, as the runtime's tasks.
pub(crate) async fn serve(dialect: Dialect) -> Plane {
    let mut settings = Settings::default();
    settings.identifier = "plane".into();
    settings.dialect = dialect;
    let plane = ControlPlane::with_settings(settings);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let routes = plane.service().into_routes();
    tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(incoming(listener)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let adapter = listener.local_addr().unwrap();
    let cncf = super::cncf::serve(plane.shared().clone()).await;
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(adapter::adapt(stream, plane.shared().clone()));
        }
    });
    Plane { server, adapter, cncf }
}

/// Without waiting for more to send.
pub(crate) fn incoming(listener: TcpListener) -> TcpIncoming {
    TcpIncoming::from(listener).with_nodelay(Some(true))
}
