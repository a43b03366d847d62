//! What stands beside, before and around the service: other services, layers, interceptors.

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::service::InterceptorLayer;
use tonic::transport::Server;
use tonic::{Request, Status};
use xds_transport::Protocol;
use xds_transport::grpc::server::{Accept, Accepted, ControlPlane, Opened, Service, Shared};

use crate::call::{Connection, delta_wildcard, framed, status_of};
use crate::served::{Cluster, InMemory};

const GRPC: (&str, &str) = ("content-type", "application/grpc");

fn plane() -> ControlPlane {
    let plane = ControlPlane::new();
    plane.put("cart", &Cluster::new("cart", "")).unwrap();
    plane
}

#[tokio::test(start_paused = true)]
async fn health_is_served_beside_it() {
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_service_status("", tonic_health::ServingStatus::Serving).await;
    let served = InMemory::serve(plane().service().into_routes().add_service(health));
    let connection = served.connect().await;
    let mut check = connection.call("/grpc.health.v1.Health/Check", &[GRPC]).await;
    check.send_bytes(framed(0, b""), true);
    assert_eq!(check.message().await, Some(Bytes::from_static(b"\x08\x01")), "it serves");
    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send(&delta_wildcard());
    assert_eq!(call.delta().await.unwrap().resources.len(), 1);
}

/// Whose an interceptor found a call to be.
#[derive(Clone)]
struct Tenant(String);

/// Serves one tenant.
struct OfTenant(Shared);

impl Accept for OfTenant {
    type Source = <Shared as Accept>::Source;

    async fn accept(&self, opened: Opened) -> Result<Accepted<Self::Source>, Status> {
        match opened.request.extensions.get::<Tenant>() {
            Some(Tenant(name)) if name == "mine" => self.0.accept(opened).await,
            Some(Tenant(name)) => Err(Status::permission_denied(format!("not {name}"))),
            None => Err(Status::internal("no interceptor")),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_interceptor_may_refuse_and_tell_who_accepts_what_it_found() {
    let find = |mut request: Request<()>| {
        let Some(tenant) = request.metadata().get("x-tenant") else {
            return Err(Status::unauthenticated("whose is it"));
        };
        let tenant = Tenant(tenant.to_str().unwrap().to_owned());
        request.extensions_mut().insert(tenant);
        Ok(request)
    };
    let routes = Service::new(OfTenant(plane().shared().clone())).into_routes();
    let (connections, incoming) = mpsc::unbounded_channel();
    let server = Server::builder().layer(InterceptorLayer::new(find)).add_routes(routes);
    tokio::spawn(server.serve_with_incoming(UnboundedReceiverStream::new(incoming)));
    let (near, far) = tokio::io::duplex(1 << 16);
    connections.send(Ok::<_, std::io::Error>(far)).unwrap();
    let connection = Connection::handshake(near).await;
    let path = Protocol::Delta.aggregated_method();
    for (headers, status) in
        [(&[GRPC][..], (16, "whose is it".to_owned())), (&[GRPC, ("x-tenant", "yours")], (7, "not yours".to_owned()))]
    {
        let mut call = connection.call(path, headers).await;
        assert_eq!(status_of(call.response().await.headers()), status);
    }
    let mut call = connection.call(path, &[GRPC, ("x-tenant", "mine")]).await;
    call.send(&delta_wildcard());
    assert_eq!(call.delta().await.unwrap().resources.len(), 1);
}
