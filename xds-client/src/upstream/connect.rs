//! Connections to an origin.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(feature = "rustls-any")]
use tokio_rustls::TlsConnector;
use tonic::transport::{self, Channel, Uri};
use tower::{BoxError, Service, ServiceExt, service_fn};

use super::ended::chain;
use super::heard::{Heard, Listening};
use super::last_words::LastWords;
use super::own::{Own, Stake};
use crate::endpoint::Endpoint;
#[cfg(unix)]
use crate::unix_address::UnixAddress;

/// A connection that is being made; if there is none to be had, why.
pub(crate) type Connecting = Pin<Box<dyn Future<Output = Result<Connected, String>> + Send>>;

/// A connection, and what is heard on it. It ends with the last channel.
#[derive(Clone, Debug)]
pub(crate) struct Connected {
    pub(crate) channel: Channel,
    pub(super) heard: Heard,
    /// Among those of its pool, where these are counted.
    _stake: Option<Arc<Stake>>,
}

/// Connects to `endpoint` by TCP, or to its unix socket, and speaks TLS if it says so.
pub(crate) fn to(endpoint: &Endpoint) -> Connecting {
    match endpoint.socket.clone() {
        None => tcp_by(endpoint, HttpConnector::new()),
        #[cfg(unix)]
        Some(address) => securely(endpoint, service_fn(move |_: Uri| unix(address.clone()))),
        #[cfg(not(unix))]
        Some(address) => Box::pin(async move { Err(format!("{address}: this system has no unix sockets")) }),
    }
}

/// The same for a pool, as far as there is room for it beside what is the pool's `own`.
pub(super) fn of_pool(endpoint: &Endpoint, own: &Arc<Own>) -> Connecting {
    let Some(room) = &endpoint.room else { return to(endpoint) };
    match own.take(room) {
        Ok(stake) => {
            let connecting = to(endpoint);
            Box::pin(async move {
                let connected = connecting.await?;
                stake.connected(connected.heard.clone());
                Ok(Connected { _stake: Some(Arc::new(stake)), ..connected })
            })
        }
        Err(error) => Box::pin(async move { Err(error.to_string()) }),
    }
}

/// By TCP. The name is looked up for each connection, as the connector does it, and each of the addresses is tried.
fn tcp_by<R>(endpoint: &Endpoint, connector: HttpConnector<R>) -> Connecting
where
    HttpConnector<R>: Service<Uri, Response = TokioIo<TcpStream>, Error: Into<BoxError> + Send, Future: Send>,
    R: Clone + Send + 'static,
{
    let connector = configured(connector, &endpoint.transport);
    securely(endpoint, connector.map_response(TokioIo::into_inner))
}

#[cfg(unix)]
async fn unix(address: UnixAddress) -> Result<tokio::net::UnixStream, BoxError> {
    address.connect().await.map_err(|error| format!("{address}: {error}").into())
}

#[cfg(not(feature = "rustls-any"))]
fn securely<C>(endpoint: &Endpoint, connector: C) -> Connecting
where
    C: Service<Uri, Error: Into<BoxError> + Send, Future: Send> + Send + 'static,
    C::Response: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    heard_over(Heard::in_clear_text(), endpoint.transport.clone(), connector)
}

#[cfg(feature = "rustls-any")]
fn securely<C>(endpoint: &Endpoint, connector: C) -> Connecting
where
    C: Service<Uri, Error: Into<BoxError> + Send, Future: Send> + Clone + Send + 'static,
    C::Response: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let transport = endpoint.transport.clone();
    let Some(tls) = endpoint.tls.clone() else { return heard_over(Heard::in_clear_text(), transport, connector) };
    let patience = transport.get_connect_timeout().unwrap_or(Duration::MAX);
    let connector = service_fn(move |uri: Uri| {
        let (connector, tls) = (connector.clone(), tls.clone());
        let securing = async move {
            let name = tls.name_of(&uri)?;
            // Files may be on a disk that does not answer.
            let config = tokio::task::spawn_blocking(move || tls.config()).await??;
            let io = connector.oneshot(uri).await.map_err(Into::into)?;
            let io = TlsConnector::from(config).connect(name, io).await.map_err(unsecured)?;
            match io.get_ref().1.alpn_protocol() {
                Some(b"h2") => Ok(io),
                _ => Err(BoxError::from("connected by TLS, but the origin does not offer HTTP/2 there (ALPN)")),
            }
        };
        async move {
            let secured = tokio::time::timeout(patience, securing).await;
            secured.unwrap_or_else(|_| Err(format!("nobody answered by TLS within {patience:?}").into()))
        }
    });
    over(transport, connector)
}

/// Why TLS came to nothing. Who speaks something else says so in its first bytes, or hangs up.
#[cfg(feature = "rustls-any")]
fn unsecured(error: std::io::Error) -> BoxError {
    let reason = error.get_ref().and_then(|reason| reason.downcast_ref::<rustls::Error>());
    if matches!(reason, Some(rustls::Error::InvalidMessage(_))) {
        return format!("it does not speak TLS: http:// and no certificates are for clear text ({error})").into();
    }
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        return format!("it hung up as TLS began; if it speaks clear text, that is http:// ({error})").into();
    }
    error.into()
}

fn configured<R>(mut connector: HttpConnector<R>, endpoint: &transport::Endpoint) -> HttpConnector<R> {
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(endpoint.get_connect_timeout());
    connector
}

/// Connects over what `connector` makes.
#[cfg(any(test, feature = "rustls-any"))]
pub(super) fn over<C>(endpoint: transport::Endpoint, connector: C) -> Connecting
where
    C: Service<Uri, Error: Into<BoxError> + Send, Future: Send> + Send + 'static,
    C::Response: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    heard_over(Heard::default(), endpoint, connector)
}

/// The same, with what is noted of what is heard. Before the origin has said how many streams it bears it is not connected: a
/// stream too many would wait without a word.
fn heard_over<C>(heard: Heard, endpoint: transport::Endpoint, connector: C) -> Connecting
where
    C: Service<Uri, Error: Into<BoxError> + Send, Future: Send> + Send + 'static,
    C::Response: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let listening = heard.clone();
    let heeded = move |io| TokioIo::new(LastWords::new(Listening::new(io, listening.clone())));
    let mut connector = Some(connector.map_response(heeded));
    // By itself a channel would connect again, and none of its streams would know.
    let once = service_fn(move |uri| {
        let connector = connector.take();
        async move {
            match connector {
                Some(connector) => connector.oneshot(uri).await.map_err(Into::into),
                None => Err(BoxError::from("the connection is over")),
            }
        }
    });
    Box::pin(async move {
        let patience = endpoint.get_connect_timeout().unwrap_or(Duration::MAX);
        let channel = endpoint.connect_with_connector(once).await.map_err(|error| chain(&error))?;
        match tokio::time::timeout(patience, heard.settings()).await {
            Ok(begun) => begun.map(|()| Connected { channel, heard, _stake: None }),
            Err(_) => Err(format!("connected, but nobody spoke HTTP/2 within {patience:?}")),
        }
    })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::convert::Infallible;
    use std::net::SocketAddr;
    use std::sync::Mutex;

    use hyper_util::client::legacy::connect::dns::Name;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;
    use tokio::sync::Notify;

    use super::*;
    use crate::Endpoint;
    use crate::federation::Quota;
    use crate::upstream::Pool;

    /// What a server of HTTP/2 says first: settings, none.
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    /// That it takes no more streams.
    const GO_AWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    /// A name that stands for another address from one moment to the next, as where servers are moved.
    #[tokio::test]
    async fn a_name_is_looked_up_for_each_connection() {
        let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = first.local_addr().unwrap().port();
        let second = TcpListener::bind(("127.0.0.2", port)).await.unwrap();
        let stands_for = Arc::new(Mutex::new("127.0.0.1:0".parse::<SocketAddr>().unwrap()));
        let resolves = stands_for.clone();
        let resolver = service_fn(move |name: Name| {
            assert_eq!(name.as_str(), "control-plane.test");
            let address = *resolves.lock().unwrap();
            async move { Ok::<_, Infallible>(std::iter::once(address)) }
        });
        let endpoint = Endpoint::new(&format!("control-plane.test:{port}")).unwrap();
        let to = endpoint.clone();
        let connect = move || tcp_by(&to, HttpConnector::new_with_resolver(resolver.clone()));
        let pool = Pool::over(endpoint, connect);
        for (listener, next) in [(first, "127.0.0.2:0"), (second, "127.0.0.1:0")] {
            let (place, accepted) = tokio::join!(pool.place(), async {
                let (mut io, _) = listener.accept().await.unwrap();
                io.write_all(&SETTINGS).await.unwrap();
                io
            });
            *stands_for.lock().unwrap() = next.parse().unwrap();
            // Its last place is left, and with it the connection.
            drop((place.unwrap(), accepted));
        }
    }

    /// The address of a server of HTTP/2 that keeps each of its connections until it is told to say GOAWAY on all.
    async fn server() -> (String, Arc<Notify>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, leave) = (listener.local_addr().unwrap().to_string(), Arc::new(Notify::new()));
        let told = leave.clone();
        tokio::spawn(async move {
            let mut accepted = Vec::new();
            loop {
                tokio::select! {
                    io = listener.accept() => accepted.push(begun(io.unwrap().0).await),
                    () = told.notified() => {
                        for io in &mut accepted {
                            let _ = io.write_all(&GO_AWAY).await;
                        }
                    }
                }
            }
        });
        (address, leave)
    }

    async fn begun(mut io: TcpStream) -> TcpStream {
        io.write_all(&SETTINGS).await.unwrap();
        io
    }

    fn with_room(address: &str, room: &Arc<Quota>) -> Endpoint {
        let endpoint = Endpoint::new(address).unwrap().with_streams_per_connection(std::num::NonZeroUsize::MIN);
        endpoint.with_room(room.clone())
    }

    /// Whoever else takes all the room that there is.
    #[tokio::test]
    async fn one_connection_of_each_pool_takes_no_room_and_for_more_there_is_so_much() {
        let (address, _) = server().await;
        let room = Quota::new("connections", "connections to origins", 1);
        let pool = || Pool::new(with_room(&address, &room));
        let (greedy, other) = (pool(), pool());
        let first = greedy.place().await.unwrap();
        assert_eq!(room.used(), 0);
        let second = greedy.place().await.unwrap();
        assert_eq!(room.used(), 1);
        let words = "more than 1 connections to origins";
        assert_eq!(greedy.place().await.err().map(|error| error.error).as_deref(), Some(words));
        let of_other = other.place().await.unwrap();
        assert_eq!(other.place().await.err().map(|error| error.error).as_deref(), Some(words));
        // What is given back is its own again.
        drop(of_other);
        let third = pool();
        for _ in 0..2 {
            drop(third.place().await.unwrap());
        }
        assert_eq!(room.used(), 1);
        drop((first, second));
    }

    /// Places that are no streams of the pool keep their connections.
    #[tokio::test]
    async fn a_pool_that_leads_elsewhere_again_and_again_has_no_more_connections_than_there_is_room_for() {
        let (address, _) = server().await;
        let room = Quota::new("connections", "connections to origins", 2);
        let pool = Pool::new(with_room(&address, &room));
        let mut places = Vec::new();
        for used in [0, 0, 1, 2] {
            places.push(pool.place().await.unwrap());
            assert_eq!(room.used(), used);
            pool.lead_to(with_room(&address, &room));
        }
        let words = "more than 2 connections to origins";
        assert_eq!(pool.place().await.err().map(|error| error.error).as_deref(), Some(words));
        drop(places);
        assert_eq!(room.used(), 0);
    }

    #[tokio::test]
    async fn after_goaway_there_is_another_connection_though_no_room_is_left_and_streams_go_on() {
        let (address, leave) = server().await;
        let room = Quota::new("connections", "connections to origins", 0);
        let pool = Pool::new(with_room(&address, &room));
        let first = pool.place().await.unwrap();
        leave.notify_one();
        first.left().await;
        let second = pool.place().await.unwrap();
        drop((first, second));
    }
}
