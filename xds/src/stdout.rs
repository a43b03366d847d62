//! Whether anybody reads what is printed.

/// Resolves when nobody reads standard output any more, as far as the system tells before something is written.
#[cfg(unix)]
pub(crate) async fn closed() {
    use std::thread;

    use rustix::event::{PollFd, PollFlags, poll};
    use tokio::sync::oneshot;

    let (left, reader) = oneshot::channel();
    // It waits in the system for as long as the program runs.
    let waiting = thread::Builder::new().spawn(move || {
        let stdout = std::io::stdout();
        // Asked for nothing, it tells errors alone: that of a pipe is that nobody has its other end.
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        while poll(&mut watched, None) == Err(rustix::io::Errno::INTR) {}
        let [watched] = watched;
        if watched.revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            let _ = left.send(());
        }
    });
    if waiting.is_err() || reader.await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Without a way to be told it is found out by the next write.
#[cfg(not(unix))]
pub(crate) async fn closed() {
    std::future::pending::<()>().await;
}
