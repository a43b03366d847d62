//! What is heard on a connection of the connection itself: how many streams it may have, and that it is over.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::frames::{Frames, Said};
use super::go_away::GoAway;

/// What the origin said of a connection so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// It has sent its settings, which come first of all (RFC 9113, 3.4).
    began: bool,
    /// How many streams it bears at a time, if it said so.
    max_streams: Option<u32>,
    go_away: Option<GoAway>,
    /// It ended, and why if that is known.
    broken: Option<String>,
    /// It is spoken to without TLS.
    in_clear_text: bool,
}

/// What an alert of TLS begins with (RFC 8446, 5.1): who expects TLS answers clear text with one.
const TLS_ALERT: [u8; 2] = [21, 3];

impl Heard {
    /// On a connection that TLS has no part in.
    pub(super) fn in_clear_text() -> Self {
        let heard = Self::default();
        heard.lock().in_clear_text = true;
        heard
    }

    /// Resolves when the origin has sent its settings.
    ///
    /// # Errors
    /// The connection was over before it could be used.
    pub(super) async fn settings(&self) -> Result<(), String> {
        loop {
            let changed = self.0.changed.notified();
            {
                let state = self.lock();
                if state.is_over() {
                    let when = if state.began { "at once" } else { "before it spoke HTTP/2" };
                    let why = state.broken.as_ref().filter(|why| !why.is_empty()).map(|why| format!(": {why}"));
                    let hint = (state.in_clear_text && !state.began)
                        .then(|| "; if it speaks TLS, that is https:// or a certificate authority".to_owned());
                    let said =
                        state.go_away.as_ref().map(|said| format!("; {said}")).or(why).or(hint).unwrap_or_default();
                    return Err(format!("the connection ended {when}{said}"));
                }
                if state.began {
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    /// How many streams the connection may have at a time. One that bears none at the moment has one, which waits, and is
    /// how the end of that is found out.
    pub(super) fn room(&self) -> usize {
        let state = self.lock();
        if state.is_over() {
            return 0;
        }
        state.max_streams.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX).max(1))
    }

    /// Whether it is there and bears no stream at the moment: another connection would fare no better.
    pub(super) fn bears_none(&self) -> bool {
        let state = self.lock();
        !state.is_over() && state.max_streams == Some(0)
    }

    /// Whether it takes no more streams.
    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over()
    }

    /// Resolves when it takes no more streams.
    #[cfg(test)]
    pub(super) async fn over(&self) {
        loop {
            let changed = self.0.changed.notified();
            if self.is_over() {
                return;
            }
            changed.await;
        }
    }

    /// What the origin said when it ended the connection.
    pub(super) fn go_away(&self) -> Option<GoAway> {
        self.lock().go_away.clone()
    }

    pub(super) fn note(&self, said: Said) {
        let mut state = self.lock();
        match said {
            Said::Settings { max_streams } => {
                state.began = true;
                state.max_streams = max_streams.or(state.max_streams);
            }
            Said::GoAway(go_away) => state.go_away = Some(go_away),
        }
        drop(state);
        self.0.changed.notify_waiters();
    }

    /// These bytes were the next.
    fn listen(&self, bytes: &[u8]) {
        let state = self.lock();
        let expects_tls = state.in_clear_text && !state.began && bytes.starts_with(&TLS_ALERT);
        drop(state);
        if expects_tls {
            self.note_end(
                "it speaks TLS, and was spoken to in clear text: https:// or a certificate authority is for TLS",
            );
        }
    }

    /// The first that is noted is why.
    pub(super) fn note_end(&self, why: impl ToString) {
        self.lock().broken.get_or_insert_with(|| why.to_string());
        self.0.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_over(&self) -> bool {
        self.broken.is_some() || self.go_away.is_some()
    }
}

/// The client's side of a connection, which is listened to.
#[derive(Debug)]
pub(super) struct Listening<T> {
    io: T,
    frames: Frames,
    heard: Heard,
}

impl<T> Listening<T> {
    pub(super) fn new(io: T, heard: Heard) -> Self {
        Self { io, frames: Frames::default(), heard }
    }
}

impl<T> Drop for Listening<T> {
    fn drop(&mut self) {
        self.heard.note_end("");
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Listening<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let had_room = into.remaining() > 0;
        let read = ready!(Pin::new(&mut self.io).poll_read(cx, into));
        let bytes = into.filled().get(before..).unwrap_or_default();
        match &read {
            // By TLS this is where one learns that the other end did not take our certificate.
            Err(error) => self.heard.note_end(error),
            Ok(()) if had_room && bytes.is_empty() => self.heard.note_end(""),
            Ok(()) => {}
        }
        let Self { frames, heard, .. } = &mut *self;
        heard.listen(bytes);
        frames.pass(bytes, &mut |said| heard.note(said));
        Poll::Ready(read)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Listening<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
