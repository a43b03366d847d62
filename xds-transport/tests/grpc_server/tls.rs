//! Connections that are secured: who is let in, what is known of him, and whom he does not keep waiting.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS12;
use rustls::{ClientConfig, ProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Status;
use tonic::transport::Server;
use xds_transport::Protocol;
use xds_transport::grpc::server::{Accept, Accepted, ClientCertificate, ControlPlane, Opened, Service, Shared};
use xds_transport::grpc::tls::{Incoming, Notice, ServerFiles, ServerTls, TlsClient, provider};

use crate::authority::{Authority, Files};
use crate::call::{Connection, ack, delta_wildcard};
use crate::served::Cluster;

pub(crate) const OURS: &str = "spiffe://ours/client";
pub(crate) const PRESENT: i32 = 4000;
const PAST: i32 = 2001;

type Connections = UnboundedReceiverStream<io::Result<DuplexStream>>;

/// A control plane for who is of ours.
struct OfOurs(Shared);

impl Accept for OfOurs {
    type Source = <Shared as Accept>::Source;

    async fn accept(&self, opened: Opened) -> Result<Accepted<Self::Source>, Status> {
        let id = opened.certificate().and_then(ClientCertificate::spiffe_id).unwrap_or("nobody");
        // What layers see is the same.
        let client = opened.request.extensions.get::<TlsClient>().unwrap();
        assert_eq!(client.certificate(), opened.certificate());
        assert_eq!((client.below::<()>(), opened.request.extensions.get::<()>()), (Some(&()), Some(&())));
        match id.starts_with("spiffe://ours/") {
            true => self.0.accept(opened).await,
            false => Err(Status::permission_denied(format!("{id} is not of ours"))),
        }
    }
}

/// A server by TLS.
pub(crate) struct Secured {
    connections: mpsc::UnboundedSender<io::Result<DuplexStream>>,
    notices: mpsc::UnboundedReceiver<Notice>,
    plane: ControlPlane,
}

impl Secured {
    fn serve(files: ServerFiles) -> Self {
        Self::serve_as(files, |incoming| incoming)
    }

    fn serve_as<F>(files: ServerFiles, set: F) -> Self
    where
        F: FnOnce(Incoming<Connections, DuplexStream>) -> Incoming<Connections, DuplexStream>,
    {
        Self::serve_by(&ServerTls::load(files).unwrap(), set)
    }

    pub(crate) fn serve_by<F>(tls: &ServerTls, set: F) -> Self
    where
        F: FnOnce(Incoming<Connections, DuplexStream>) -> Incoming<Connections, DuplexStream>,
    {
        let (connections, taken) = mpsc::unbounded_channel();
        let (tell, notices) = mpsc::unbounded_channel();
        let incoming = tls.incoming(UnboundedReceiverStream::new(taken));
        let incoming = set(incoming.with_notices(move |notice| _ = tell.send(notice)));
        let plane = ControlPlane::new();
        plane.put("a", &Cluster::new("a", "")).unwrap();
        let routes = Service::new(OfOurs(plane.shared().clone())).into_routes();
        tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(incoming));
        Self { connections, notices, plane }
    }

    fn dial(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(1 << 16);
        self.connections.send(Ok(far)).unwrap();
        near
    }

    /// A connection, or why there is none: what is wrong with the client it is told behind its own handshake.
    async fn connect(&self, client: Arc<ClientConfig>) -> Result<Connection, String> {
        Ok(Connection::handshake(self.secure(client).await?).await)
    }

    pub(crate) async fn secure(&self, client: Arc<ClientConfig>) -> Result<TlsStream<DuplexStream>, String> {
        let connecting = TlsConnector::from(client).connect("server".try_into().unwrap(), self.dial());
        connecting.await.map_err(|error| error.to_string())
    }

    /// What the server says next, and soon.
    pub(crate) async fn notice(&mut self) -> Notice {
        timeout(Duration::from_secs(60), self.notices.recv()).await.expect("nothing is said").unwrap()
    }

    /// Why the server does not speak to a client.
    pub(crate) async fn refusal(&mut self) -> String {
        match self.notice().await {
            Notice::Refused { reason, .. } => reason.to_string(),
            notice => panic!("{notice}"),
        }
    }
}

/// How many resources there are for who comes so.
pub(crate) async fn served(connection: &Connection) -> usize {
    let mut call = connection.aggregated(Protocol::Delta).await;
    call.send(&delta_wildcard());
    call.delta().await.unwrap().resources.len()
}

/// A server that asks for certificates, and what it is made of.
pub(crate) fn ours() -> (Files, Authority, ServerFiles) {
    let (files, authority) = (Files::new(), Authority::named("ours"));
    files.authority("ca", &authority);
    files.identity("server", &authority, "server", PRESENT);
    files.identity("client", &authority, OURS, PRESENT);
    let server = ServerFiles::new(files.path("server.pem"), files.path("server.key"));
    let server = server.with_client_ca(files.path("ca.pem"));
    (files, authority, server)
}

#[tokio::test(start_paused = true)]
async fn who_decides_about_a_stream_has_the_certificate() {
    let (files, authority, server) = ours();
    files.identity("other", &authority, "spiffe://theirs/client", PRESENT);
    let secured = Secured::serve(server);
    let ours = secured.connect(files.client("ca", Some("client"))).await.unwrap();
    assert_eq!(served(&ours).await, 1);
    let other = secured.connect(files.client("ca", Some("other"))).await.unwrap();
    let mut call = other.aggregated(Protocol::Delta).await;
    let response = call.response().await;
    let said = crate::call::status_of(response.headers());
    assert_eq!(said, (7, "spiffe://theirs/client is not of ours".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn who_is_not_vouched_for_is_refused_and_both_sides_know_why() {
    let (files, authority, server) = ours();
    let stranger = Authority::named("stranger");
    files.authority("stranger", &stranger);
    files.identity("unknown", &stranger, OURS, PRESENT);
    files.identity("late", &authority, OURS, PAST);
    let mut secured = Secured::serve(server);
    for (ca, shows, told) in [
        ("ca", None, "peer sent no certificates"),
        ("ca", Some("unknown"), "invalid peer certificate: UnknownIssuer"),
        ("ca", Some("late"), "invalid peer certificate: certificate expired"),
        ("stranger", Some("client"), "received fatal alert: UnknownCA"),
    ] {
        let connected = secured.connect(files.client(ca, shows)).await;
        let refusal = secured.refusal().await;
        assert!(refusal.starts_with(told), "{shows:?}: {refusal}");
        assert_eq!(connected.is_err(), ca == "stranger", "who refuses knows it first");
    }
    let mut clear = secured.dial();
    clear.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let refusal = secured.refusal().await;
    assert!(refusal.starts_with("it speaks clear text, or something else ("), "{refusal}");
    assert_eq!(served(&secured.connect(files.client("ca", Some("client"))).await.unwrap()).await, 1, "it goes on");
}

/// Their versions: 3.3 is TLS 1.2. What is older has been taken back (RFC 8996).
#[tokio::test(start_paused = true)]
async fn tls_1_2_is_spoken_and_nothing_older() {
    let (files, _, server) = ours();
    let mut secured = Secured::serve(server);
    let io = secured.secure(files.client_of(&[&TLS12], "ca", Some("client"))).await.unwrap();
    assert_eq!(io.get_ref().1.protocol_version(), Some(ProtocolVersion::TLSv1_2));
    assert_eq!(served(&Connection::handshake(io).await).await, 1);
    for minor in 0..3 {
        // TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, no compression, and of extensions the groups and schemes that there are.
        let extensions = [&[0, 10, 0, 4, 0, 2, 0, 23][..], &[0, 13, 0, 4, 0, 2, 4, 3]].concat();
        let hello = [&[3, minor][..], &[7; 32], &[0, 0, 2, 0xc0, 0x2b, 1, 0, 0, 16], &extensions].concat();
        let hello = [&[1, 0, 0, u8::try_from(hello.len()).unwrap()], &hello[..]].concat();
        let mut old = secured.dial();
        old.write_all(&[&[22, 3, 1, 0, u8::try_from(hello.len()).unwrap()], &hello[..]].concat()).await.unwrap();
        let mut alert = Vec::new();
        old.read_to_end(&mut alert).await.unwrap();
        assert_eq!((alert[0], &alert[3..]), (21, &[0, 2, 2, 70][..]), "fatal: protocol_version, of 3.{minor}");
        drop(old);
        let refusal = secured.refusal().await;
        assert!(refusal.contains("peer is incompatible"), "{refusal}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_slow_keeps_nobody_waiting_and_not_for_ever() {
    let (files, _, server) = ours();
    let mut secured = Secured::serve_as(server, |incoming| incoming.handshake_within(Duration::from_secs(7)));
    let (began, mut silent) = (Instant::now(), secured.dial());
    let client = secured.connect(files.client("ca", Some("client"))).await.unwrap();
    assert_eq!(served(&client).await, 1);
    assert!(began.elapsed() < Duration::from_secs(7));
    assert_eq!(secured.refusal().await, "the handshake took longer than 7s");
    assert_eq!(silent.read(&mut [0]).await.unwrap(), 0, "it is closed");
}

#[tokio::test(start_paused = true)]
async fn who_comes_when_there_are_enough_handshakes_is_taken_later() {
    let (files, _, server) = ours();
    let secured = Secured::serve_as(server, |incoming| incoming.max_handshakes(2));
    let (began, silent) = (Instant::now(), [secured.dial(), secured.dial()]);
    let client = secured.connect(files.client("ca", Some("client"))).await.unwrap();
    assert_eq!(served(&client).await, 1);
    assert!(began.elapsed() >= Duration::from_secs(5), "the silent ones have their time");
    drop(silent);
}

#[tokio::test(start_paused = true)]
async fn a_shortage_of_connections_ends_nothing() {
    let (files, _, server) = ours();
    let mut secured = Secured::serve(server);
    secured.connections.send(Err(io::Error::other("no descriptors"))).unwrap();
    let began = Instant::now();
    let client = secured.connect(files.client("ca", Some("client"))).await.unwrap();
    assert_eq!(served(&client).await, 1);
    assert!(began.elapsed() >= Duration::from_millis(100), "it is not tried without a pause");
    let notice = secured.notices.recv().await.unwrap().to_string();
    assert_eq!(notice, "no connection is taken for the moment: no descriptors");
}

/// As Kubernetes replaces what it mounts: a link to the directory of the files is moved.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn files_that_are_replaced_count_from_the_next_handshake_on_and_open_streams_go_on() {
    let files = Files::new();
    let [before, after] = ["before", "after"].map(Authority::named);
    for (generation, authority) in [("1", &before), ("2", &after)] {
        fs::create_dir(files.path(generation)).unwrap();
        files.authority(&format!("{generation}/ca"), authority);
        files.identity(&format!("{generation}/server"), authority, "server", PRESENT);
        files.identity(&format!("{generation}/client"), authority, OURS, PRESENT);
    }
    let link = |generation: &str| {
        std::os::unix::fs::symlink(files.path(generation), files.path("new")).unwrap();
        fs::rename(files.path("new"), files.path("now")).unwrap();
    };
    link("1");
    let server = ServerFiles::new(files.path("now/server.pem"), files.path("now/server.key"));
    let mut secured = Secured::serve(server.with_client_ca(files.path("now/ca.pem")));
    let old = secured.connect(files.client("1/ca", Some("1/client"))).await.unwrap();
    let mut open = old.aggregated(Protocol::Delta).await;
    open.send(&delta_wildcard());
    let first = open.delta().await.unwrap();
    open.send(&ack(&first));

    link("2");
    let notice = secured.notices.recv().await.unwrap();
    assert!(
        matches!(&notice, Notice::Renewed { certificate } if *certificate == files.path("now/server.pem")),
        "{notice}"
    );
    let new = secured.connect(files.client("2/ca", Some("2/client"))).await.unwrap();
    assert_eq!(served(&new).await, 1);
    let connected = secured.connect(files.client("2/ca", Some("1/client"))).await;
    assert!(secured.refusal().await.contains("UnknownIssuer"), "who was vouched for before is not any more");
    drop(connected);
    secured.plane.put("b", &Cluster::new("b", "")).unwrap();
    assert_eq!(open.delta().await.unwrap().resources[0].name, "b");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_good_does_not_count_and_is_said_once() {
    let (files, authority, server) = ours();
    let mut secured = Secured::serve(server);
    // Once the files were read, and the first look is over.
    served(&secured.connect(files.client("ca", Some("client"))).await.unwrap()).await;
    fs::write(files.path("server.key"), "torn").unwrap();
    let notice = secured.notices.recv().await.unwrap().to_string();
    assert!(notice.starts_with("new certificates do not count, those before do: "), "{notice}");
    assert!(notice.contains("server.key: there is no private key in it"), "{notice}");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(secured.notices.try_recv().is_err(), "it is said once");
    assert_eq!(served(&secured.connect(files.client("ca", Some("client"))).await.unwrap()).await, 1);

    files.identity("late", &authority, "server", PAST);
    fs::rename(files.path("late.key"), files.path("server.key")).unwrap();
    assert!(secured.notices.recv().await.unwrap().to_string().contains("server.pem with the key "));
    fs::rename(files.path("late.pem"), files.path("server.pem")).unwrap();
    let late = secured.notices.recv().await.unwrap().to_string();
    assert!(late.ends_with("server.pem: the certificate has expired"), "{late}");
    assert_eq!(
        served(&secured.connect(files.client("ca", Some("client"))).await.unwrap()).await,
        1,
        "there is a better one"
    );

    files.identity("new", &authority, "server", 4000);
    fs::rename(files.path("new.key"), files.path("server.key")).unwrap();
    assert!(secured.notices.recv().await.unwrap().to_string().contains("server.pem with the key "));
    fs::rename(files.path("new.pem"), files.path("server.pem")).unwrap();
    let renewed = secured.notices.recv().await.unwrap();
    assert!(matches!(renewed, Notice::Renewed { .. }), "{renewed}");
}

#[tokio::test(start_paused = true)]
async fn a_verifier_of_ones_own_is_made_of_the_files_and_may_ask_and_do_without() {
    let (files, _, server) = ours();
    let server = server.with_verifier(|roots| {
        assert_eq!(roots.len(), 1);
        Ok(WebPkiClientVerifier::builder_with_provider(roots.into(), provider()).allow_unauthenticated().build()?)
    });
    let secured = Secured::serve(server.clone());
    let nobody = secured.connect(files.client("ca", None)).await.unwrap();
    let mut call = nobody.aggregated(Protocol::Delta).await;
    let said = crate::call::status_of(call.response().await.headers());
    assert_eq!(said, (7, "nobody is not of ours".to_owned()));
    assert_eq!(served(&secured.connect(files.client("ca", Some("client"))).await.unwrap()).await, 1);

    let none = server.with_verifier(|_| Err("not today".into()));
    let error = ServerTls::load(none).unwrap_err().to_string();
    assert!(error.ends_with("ca.pem: not today"), "{error}");
}
