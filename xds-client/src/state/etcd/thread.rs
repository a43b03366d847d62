//! A thread that speaks to etcd for those who may wait.

use std::io;
use std::sync::mpsc;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The thread. It ends when this is dropped, with all that it does.
#[derive(Debug)]
pub(super) struct Thread {
    handle: Handle,
    _until_dropped: oneshot::Sender<()>,
}

impl Thread {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (until_dropped, dropped) = oneshot::channel();
        std::thread::Builder::new().name("etcd".to_owned()).spawn(move || {
            let _: Result<(), _> = runtime.block_on(dropped);
            // A file may be being read that is on a disk that does not answer.
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, _until_dropped: until_dropped })
    }

    /// Does something, and goes on.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// Does something, and waits for it, for as long as that takes: `None` if it was given up on.
    pub(super) fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        // Not tokio's: it may be waited for anywhere that may wait, within another runtime, too.
        let (done, result) = mpsc::sync_channel(1);
        self.spawn(async move {
            let _ = done.send(work.await);
        });
        result.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_on_is_not_waited_for() {
        let thread = Thread::start().unwrap();
        assert_eq!(thread.run(async { 1 }), Some(1));
        assert_eq!(thread.run::<()>(async { panic!("on purpose") }), None);
        assert_eq!(thread.run(async { 2 }), Some(2));
    }
}
