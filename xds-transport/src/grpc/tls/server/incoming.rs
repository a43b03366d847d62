//! Connections of clients, each secured before the server has it.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep, timeout};
use tokio_stream::Stream;
use tonic::transport::server::Connected;

use crate::grpc::tls::expiry::ExpiryWatch;
use crate::grpc::tls::server::client::TlsClient;
use crate::grpc::tls::server::current::ServerTls;
use crate::grpc::tls::server::handshake::HandshakeError;
use crate::grpc::tls::server::notice::Notice;
use crate::grpc::tls::server::secured::Secured;

/// How long no connection is taken after the system had none to give.
const PAUSE: Duration = Duration::from_millis(100);
/// How often it is looked whether a certificate is about to expire.
const LOOK: Duration = Duration::from_secs(60);

type Tell = Arc<dyn Fn(Notice) + Send + Sync>;

/// The connections that clients make, secured, for tonic's `serve_with_incoming`. Each handshake is made in a task of its own, so
/// that nobody waits for who is slow, and files are [followed](ServerTls::follow) for as long as connections are taken.
pub struct Incoming<S, I> {
    connections: S,
    tls: ServerTls,
    within: Duration,
    at_most: usize,
    tell: Tell,
    handshakes: JoinSet<Option<Secured<I>>>,
    following: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pause: Option<Pin<Box<Sleep>>>,
    over: bool,
}

impl ServerTls {
    /// Secures these connections, each with the files as they were a second ago at the most.
    pub fn incoming<S, I>(&self, connections: S) -> Incoming<S, I>
    where
        S: Stream<Item = io::Result<I>> + Unpin,
        I: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
    {
        Incoming {
            connections,
            tls: self.clone(),
            within: Duration::from_secs(5),
            at_most: 1024,
            tell: Arc::new(|_| {}),
            handshakes: JoinSet::new(),
            following: None,
            pause: None,
            over: false,
        }
    }
}

impl<S, I> Incoming<S, I> {
    /// How long a handshake may take: 5 seconds otherwise.
    #[must_use]
    pub fn handshake_within(self, time: Duration) -> Self {
        Self { within: time, ..self }
    }

    /// How many handshakes are under way at the most: 1024 otherwise. Who comes then waits to be taken.
    #[must_use]
    pub fn max_handshakes(self, handshakes: usize) -> Self {
        Self { at_most: handshakes.max(1), ..self }
    }

    /// Who is told what happens. It must not wait for anything.
    #[must_use]
    pub fn with_notices(self, tell: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self { tell: Arc::new(tell), ..self }
    }

    /// Has files count anew that changed.
    fn follow(&mut self, cx: &mut Context<'_>) {
        let Self { tls, tell, following, .. } = self;
        let following = following.get_or_insert_with(|| Box::pin(follow(tls.clone(), tell.clone())));
        // It has no end.
        let _ = following.as_mut().poll(cx);
    }
}

impl<S, I> Incoming<S, I>
where
    S: Stream<Item = io::Result<I>> + Unpin,
    I: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    /// Begins handshakes with who is there, as far as there is room.
    fn begin(&mut self, cx: &mut Context<'_>) {
        while !self.over && self.handshakes.len() < self.at_most {
            if let Some(pause) = &mut self.pause {
                if pause.as_mut().poll(cx).is_pending() {
                    return;
                }
                self.pause = None;
            }
            match Pin::new(&mut self.connections).poll_next(cx) {
                Poll::Pending => return,
                Poll::Ready(None) => self.over = true,
                Poll::Ready(Some(Err(error))) => {
                    (self.tell)(Notice::NotTaken(error));
                    self.pause = Some(Box::pin(sleep(PAUSE)));
                }
                Poll::Ready(Some(Ok(io))) => {
                    let client = TlsClient::new(io.connect_info());
                    let (accept, within, tell) = (self.tls.accept(io), self.within, self.tell.clone());
                    self.handshakes.spawn(async move {
                        let reason = match timeout(within, accept).await {
                            Ok(Ok(io)) => return Some(Secured::new(io, client)),
                            Ok(Err(error)) => HandshakeError::from(error),
                            Err(_) => HandshakeError::Late(within),
                        };
                        tell(Notice::Refused { client, reason });
                        None
                    });
                }
            }
        }
    }
}

async fn follow(tls: ServerTls, tell: Tell) {
    let expiry = Mutex::new(ExpiryWatch::default());
    let remind = || {
        let mut expiry = expiry.lock().unwrap_or_else(PoisonError::into_inner);
        let reminders = expiry.look(tls.validity(), SystemTime::now());
        reminders.into_iter().for_each(|reminder| tell(Notice::Reminder(reminder)));
    };
    let mut following = pin!(tls.follow(|looked| match looked {
        Ok(()) => {
            tell(Notice::Renewed { certificate: tls.certificate().unwrap_or_default() });
            remind();
        }
        Err(error) => tell(Notice::NotRenewed(error)),
    }));
    let mut reminding = pin!(async {
        loop {
            remind();
            sleep(LOOK).await;
        }
    });
    poll_fn(|cx| {
        // Neither has an end.
        let _ = following.as_mut().poll(cx);
        reminding.as_mut().poll(cx)
    })
    .await;
}

impl<S, I> Stream for Incoming<S, I>
where
    S: Stream<Item = io::Result<I>> + Unpin,
    I: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    type Item = io::Result<Secured<I>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        this.follow(cx);
        loop {
            this.begin(cx);
            match this.handshakes.poll_join_next(cx) {
                Poll::Ready(Some(Ok(Some(io)))) => return Poll::Ready(Some(Ok(io))),
                // There is room for another.
                Poll::Ready(Some(_)) => {}
                Poll::Ready(None) if this.over => return Poll::Ready(None),
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl<S, I> fmt::Debug for Incoming<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handshakes = self.handshakes.len();
        f.debug_struct("Incoming").field("tls", &self.tls).field("handshakes", &handshakes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;

    use tokio::io::DuplexStream;
    use tokio::time::Instant;
    use tokio_stream::StreamExt;

    use super::*;
    use crate::grpc::tls::server::files::ServerFiles;

    fn tls_until(year: i32) -> ServerTls {
        let directory = tempfile::tempdir().unwrap();
        let [pem, key] = ["a.pem", "a.key"].map(|name| directory.path().join(name));
        let made = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(2001, 1, 1), rcgen::date_time_ymd(year, 1, 1));
        fs::write(&pem, params.self_signed(&made).unwrap().pem()).unwrap();
        fs::write(&key, made.serialize_pem()).unwrap();
        ServerTls::load(ServerFiles::new(pem, key)).unwrap()
    }

    /// What is told by the time that one who connects, and says nothing, is not waited for any more.
    async fn told(tls: &ServerTls) -> Vec<Notice> {
        let told = Arc::<Mutex<Vec<_>>>::default();
        let (_near, far) = tokio::io::duplex(1);
        let connections = tokio_stream::iter([Ok::<DuplexStream, io::Error>(far)]);
        let tell = told.clone();
        let mut incoming = tls.incoming(connections).with_notices(move |notice| tell.lock().unwrap().push(notice));
        assert!(incoming.next().await.is_none());
        std::mem::take(&mut *told.lock().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_has_five_seconds_and_keeps_nobody_waiting() {
        let tls = tls_until(4000);
        let begun = Instant::now();
        let told = told(&tls).await;
        assert_eq!(begun.elapsed().as_secs(), 5);
        let late = |notice: &&Notice| matches!(notice, Notice::Refused { reason: HandshakeError::Late(_), .. });
        assert_eq!(told.iter().filter(late).count(), 1, "{told:?}");
        assert!(!told.iter().any(|notice| matches!(notice, Notice::Reminder(_))), "{told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn that_a_certificate_has_expired_is_told_when_connections_are_taken() {
        let told = told(&tls_until(2002)).await;
        assert_eq!(told.iter().filter(|notice| matches!(notice, Notice::Reminder(_))).count(), 1, "{told:?}");
    }
}
