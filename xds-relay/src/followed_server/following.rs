//! The origins of a configuration that are control planes which are followed, each by a thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::server::FollowedServer;
use crate::config::Config;
use crate::error::Error;
use crate::lock::lock;
use crate::relay_core::RelayCore;

/// What comes within so long is one change: each is work in proportion to all that there is.
const TOGETHER: Duration = Duration::from_millis(100);
/// How long is waited at the most where nobody says when.
const LONGEST: Duration = Duration::from_secs(1);

/// An origin is followed for as long as this lives.
pub(crate) struct Following {
    bell: Arc<Bell>,
}

#[derive(Default)]
struct Bell {
    rung: Mutex<Rung>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Rung {
    is_news: bool,
    is_over: bool,
}

impl Bell {
    /// Until there is news, or so long. Whether it goes on.
    fn wait(&self, at_most: Duration) -> bool {
        let is_quiet = |rung: &mut Rung| !rung.is_news && !rung.is_over;
        let waited = self.changed.wait_timeout_while(lock(&self.rung), at_most, is_quiet);
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        rung.is_news = false;
        !rung.is_over
    }

    /// So long, whatever there is. Whether it goes on.
    fn rest(&self, time: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(lock(&self.rung), time, |rung| !rung.is_over);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_over
    }

    fn ring(&self, ring: impl FnOnce(&mut Rung)) {
        ring(&mut lock(&self.rung));
        self.changed.notify_all();
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring(|rung| rung.is_news = true);
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.bell.ring(|rung| rung.is_over = true);
    }
}

/// Begins to follow all of them; nobody waits for what a control plane says.
///
/// # Errors
/// The system has no thread for one, or what its types are read by is not good.
pub(crate) fn follow_all(config: &Config, core: &Arc<RelayCore>) -> Result<Vec<Following>, Error> {
    let mut all = Vec::new();
    for (position, origin) in config.origins.iter().enumerate() {
        let bell = Arc::<Bell>::default();
        let Some(server) = FollowedServer::new(config, position, core, Waker::from(bell.clone()))? else { continue };
        let failed = |reason: String| Error::Origin { origin: origin.name.clone(), reason };
        // Its streams are the relay's, and what is read of them takes its time.
        let runtime = Handle::try_current().map_err(|error| failed(error.to_string()))?;
        let following = Following { bell: bell.clone() };
        let run = move || run(server, &bell, &runtime);
        thread::Builder::new().name("follow".into()).spawn(run).map_err(|error| failed(error.to_string()))?;
        all.push(following);
    }
    Ok(all)
}

fn run(mut server: FollowedServer, bell: &Bell, runtime: &Handle) {
    let _entered = runtime.enter();
    let follow = |server: &mut FollowedServer| {
        loop {
            server.poll(Instant::now());
            let at = server.poll_timeout().map(|at| at.saturating_duration_since(Instant::now()));
            // In this order: what comes meanwhile has rung.
            if !(bell.wait(at.map_or(LONGEST, |at| at.min(LONGEST))) && bell.rest(TOGETHER)) {
                return;
            }
        }
    };
    guarded(&mut server, follow);
}

/// A fault of whoever follows ends that, and it is said.
fn guarded(server: &mut FollowedServer, follow: impl FnOnce(&mut FollowedServer)) {
    if catch_unwind(AssertUnwindSafe(|| follow(server))).is_err() {
        server.lost("it is followed no more: a fault of the relay, which the log has");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::followed_server::server::tests::server;

    #[tokio::test]
    async fn that_it_is_followed_no_more_is_said() {
        let (mut server, core) = server();
        let trouble = || core.status(Instant::now()).origins[0].hint.clone().unwrap();
        guarded(&mut server, |_| {});
        assert!(!trouble().contains("followed no more"));
        guarded(&mut server, |_| panic!("a fault"));
        assert!(trouble().contains("followed no more"), "{}", trouble());
    }
}
