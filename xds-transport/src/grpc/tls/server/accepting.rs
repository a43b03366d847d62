//! A handshake under way, and how one that fails ends.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, FallibleAccept};

use crate::grpc::tls::server::sessions::Withheld;

/// How long a client has to take its refusal: a round trip, on a long way.
const PARTING: Duration = Duration::from_millis(500);
/// How much of what it sends meanwhile is read.
const AT_MOST: usize = 1 << 16;

/// TLS that is about to be spoken on a connection, as [`ServerTls::accept`](super::ServerTls::accept) begins it.
///
/// A connection that is closed with bytes unread is reset, and many a client that writes then never reads the alert that says
/// why. So one that is refused is read from until it is closed at the other end, for half a second at the most.
pub struct Accepting<I>(State<I>);

#[allow(clippy::large_enum_variant, reason = "each begins as the largest")]
enum State<I> {
    Beginning(FallibleAccept<I>, Option<Arc<Withheld>>),
    Parting(Box<Parting<I>>),
    Done,
}

/// A connection that is refused.
struct Parting<I> {
    io: I,
    reason: io::Error,
    is_shut: bool,
    unread: usize,
    until: Pin<Box<Sleep>>,
}

impl<I: AsyncRead + AsyncWrite + Unpin> Accepting<I> {
    pub(super) fn new(accept: Accept<I>, withheld: Option<Arc<Withheld>>) -> Self {
        Self(State::Beginning(accept.into_fallible(), withheld))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> Future for Accepting<I> {
    type Output = io::Result<TlsStream<I>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self(state) = self.get_mut();
        loop {
            match state {
                State::Beginning(accept, withheld) => match ready!(Pin::new(accept).poll(cx)) {
                    Ok(secured) => {
                        if let Some(withheld) = withheld {
                            withheld.release(secured.get_ref().1);
                        }
                        *state = State::Done;
                        return Poll::Ready(Ok(secured));
                    }
                    Err((reason, io)) => {
                        let until = Box::pin(sleep(PARTING));
                        let parting = Parting { io, reason, is_shut: false, unread: AT_MOST, until };
                        *state = State::Parting(Box::new(parting));
                    }
                },
                State::Parting(parting) => {
                    ready!(parting.poll(cx));
                    let over = std::mem::replace(state, State::Done);
                    let State::Parting(parting) = over else { continue };
                    return Poll::Ready(Err(parting.reason));
                }
                State::Done => return Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            }
        }
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> Parting<I> {
    /// Ready when the client has closed, or had its time.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.until.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if !self.is_shut {
            if ready!(Pin::new(&mut self.io).poll_shutdown(cx)).is_err() {
                return Poll::Ready(());
            }
            self.is_shut = true;
        }
        let mut room = [0; 1024];
        loop {
            let mut read = ReadBuf::new(&mut room);
            let is_read = ready!(Pin::new(&mut self.io).poll_read(cx, &mut read)).is_ok();
            self.unread = self.unread.saturating_sub(read.filled().len());
            if !is_read || read.filled().is_empty() || self.unread == 0 {
                return Poll::Ready(());
            }
        }
    }
}

impl<I> fmt::Debug for Accepting<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepting").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::Instant;

    use crate::grpc::tls::server::{ServerFiles, ServerTls};

    use super::*;

    /// A client of clear text, and the handshake that comes to nothing.
    fn refused() -> (DuplexStream, Accepting<DuplexStream>) {
        let directory = tempfile::tempdir().unwrap();
        let [pem, key] = ["a.pem", "a.key"].map(|name| directory.path().join(name));
        let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
        fs::write(&pem, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let tls = ServerTls::load(ServerFiles::new(pem, key)).unwrap();
        let (near, far) = duplex(1 << 16);
        (near, tls.accept(far))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_refused_is_read_from_until_it_closes() {
        let (mut client, mut accepting) = refused();
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let mut alert = Vec::new();
        // It reads all there is, up to the end, and goes on to write.
        tokio::select! {
            biased;
            _ = &mut accepting => panic!("it is over before the client closes"),
            read = client.read_to_end(&mut alert) => drop(read.unwrap()),
        }
        assert!(alert.starts_with(&[21, 3]), "{alert:?}");
        client.write_all(&[0; 1000]).await.unwrap();
        let begun = Instant::now();
        drop(client);
        accepting.await.unwrap_err();
        assert!(begun.elapsed().is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_refused_and_stays_or_goes_on_and_on_has_half_a_second() {
        let (mut client, accepting) = refused();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let begun = Instant::now();
        accepting.await.unwrap_err();
        assert_eq!(begun.elapsed(), PARTING);

        let (mut client, accepting) = refused();
        let begun = Instant::now();
        let sent = tokio::spawn(async move {
            let mut sent = 0;
            while client.write_all(&[b'a'; 1024]).await.is_ok() {
                sent += 1024;
            }
            sent
        });
        accepting.await.unwrap_err();
        assert!(begun.elapsed().is_zero());
        assert!(sent.await.unwrap() <= 3 * AT_MOST);
    }
}
