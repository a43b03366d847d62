//! The signals that ask a process to stop, and what comes of them.

use std::future::Future;
use std::io;
use std::time::Duration;

use humantime::format_duration;
use tokio::sync::oneshot;

/// Runs; the first signal says `stop`, the second one ends it where it is (`None`).
pub(crate) async fn until_stopped<T>(
    running: impl Future<Output = T>,
    stop: oneshot::Sender<()>,
    drain: impl Fn() -> (Duration, Duration),
    mut signal: impl AsyncFnMut() -> &'static str,
) -> Option<T> {
    let twice = async {
        let name = signal().await;
        let (delay, drain) = drain();
        let (delay, drain) = ((delay > Duration::ZERO).then(|| format_duration(delay)), format_duration(drain));
        let delay = delay.map(|delay| format!("serves for {delay} more, and ")).unwrap_or_default();
        tracing::info!("{name}: the relay {delay}ends when its streams are drained, in {drain} at most");
        drop(stop);
        let name = signal().await;
        tracing::warn!("{name}, a second signal: the relay ends at once, whether its streams are drained or not");
    };
    tokio::select! {
        result = running => Some(result),
        () = twice => None,
    }
}

/// Those that are waited for.
pub(crate) struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

/// The signal that asks a process to read its configuration again.
pub(crate) struct Hangups {
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

impl Hangups {
    #[cfg(unix)]
    pub(crate) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { hangup: signal(SignalKind::hangup())? })
    }

    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        if self.hangup.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        std::future::pending::<()>().await;
    }
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The name of the next one.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> &'static str {
        drop(tokio::signal::ctrl_c().await);
        "^C"
    }
}

#[cfg(test)]
#[path = "../tests/support/log.rs"]
mod log;

#[cfg(test)]
mod tests {
    use std::future::pending;
    use tracing::subscriber::DefaultGuard;

    use super::log::Log;
    use super::*;

    const DRAIN: (Duration, Duration) = (Duration::ZERO, Duration::from_secs(90));

    /// One signal after the other, and then none.
    fn given(names: &'static [&'static str]) -> impl AsyncFnMut() -> &'static str {
        let mut names = names.iter().copied();
        async move || match names.next() {
            Some(name) => name,
            None => pending().await,
        }
    }

    impl Log {
        /// Hears this thread for as long as what is given stands. Each test here has one: what a line's place is worth is
        /// noted for all threads by the first that comes by, and one that nobody hears would note that nobody ever does.
        fn listening() -> (Self, DefaultGuard) {
            let log = Self::default();
            let lines = log.clone();
            let writing =
                tracing_subscriber::fmt().with_writer(move || lines.clone()).without_time().with_target(false);
            (log, tracing::subscriber::set_default(writing.with_ansi(false).finish()))
        }
    }

    #[tokio::test]
    async fn the_first_signal_lets_the_streams_drain() {
        let (_log, _listening) = Log::listening();
        let (stop, stopped) = oneshot::channel();
        let drained = async { stopped.await.is_err() };
        assert_eq!(until_stopped(drained, stop, || DRAIN, given(&["SIGTERM"])).await, Some(true));
    }

    #[tokio::test]
    async fn the_time_until_streams_are_ended_is_said_with_the_time_that_takes() {
        let (log, _listening) = Log::listening();
        let (stop, stopped) = oneshot::channel();
        let times = || (Duration::from_secs(5), DRAIN.1);
        assert!(until_stopped(async { drop(stopped.await) }, stop, times, given(&["SIGTERM"])).await.is_some());
        assert_eq!(
            log.text(),
            " INFO SIGTERM: the relay serves for 5s more, and ends when its streams are drained, in 1m 30s at most\n"
        );
    }

    #[tokio::test]
    async fn the_second_signal_ends_a_drain_that_does_not_end_and_each_says_what_it_does() {
        let (log, _listening) = Log::listening();
        let (stop, _stopped) = oneshot::channel();
        assert_eq!(until_stopped(pending::<()>(), stop, || DRAIN, given(&["SIGINT", "SIGTERM"])).await, None);
        assert_eq!(
            log.text(),
            " INFO SIGINT: the relay ends when its streams are drained, in 1m 30s at most\n \
             WARN SIGTERM, a second signal: the relay ends at once, whether its streams are drained or not\n"
        );
    }
}
