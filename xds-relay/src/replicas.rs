//! Releases that several relays have together, in etcd: what one does there the others hear, and one publishes at a time.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use xdstp_client::state::{Etcd, Lease, Store, StoreError, Watch};

use crate::relay_core::RelayCore;
use crate::releases::{Instance, PREFIX, Turn, Turns};

/// How long whoever publishes may be silent before another one does: longer than etcd takes to elect a leader.
const TTL: Duration = Duration::from_secs(3);
/// How often it is looked whether anybody listens still, and how long it is waited for a store that is away.
const WAIT: Duration = Duration::from_secs(1);

impl Turns for Etcd {
    fn take(&self, key: &str, instance: Instance) -> Result<Option<Box<dyn Turn>>, StoreError> {
        let lease = self.lease(key, format!("{:016x}", instance.0), TTL)?;
        Ok(lease.map(|lease| Box::new(lease) as Box<dyn Turn>))
    }
}

impl Turn for Lease {
    fn is_held(&self) -> bool {
        Self::is_held(self)
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(Self::store(self))
    }
}

/// What is heard of the releases in a store, from a moment on.
pub(crate) struct Following {
    store: Arc<dyn Store>,
    watch: Watch,
}

impl Following {
    /// From now on: before what is there is read.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn begin(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let watch = watch(&*store)?;
        Ok(Self { store, watch })
    }

    /// Tells the relay what is done, on a thread of its own, for as long as there is that relay.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(crate) fn tell(self, core: &Arc<RelayCore>) -> io::Result<()> {
        let core = Arc::downgrade(core);
        thread::Builder::new().name("releases".to_owned()).spawn(move || self.run(&core)).map(drop)
    }

    fn run(mut self, core: &Weak<RelayCore>) {
        while core.strong_count() > 0 {
            match self.watch.next(WAIT) {
                Ok(events) if events.is_empty() => {}
                Ok(events) => {
                    let Some(core) = core.upgrade() else { return };
                    if core.hear_releases(&events, Instant::now()) {
                        core.release(Instant::now(), SystemTime::now());
                    }
                }
                Err(error) => {
                    tracing::warn!("what other relays do with releases was not heard, and is read: {error}");
                    if !self.begin_anew(core) {
                        return;
                    }
                }
            }
        }
    }

    /// Whether there is anybody to tell it to.
    fn begin_anew(&mut self, core: &Weak<RelayCore>) -> bool {
        loop {
            let Some(core) = core.upgrade() else { return false };
            match watch(&*self.store) {
                Ok(watch) => {
                    self.watch = watch;
                    if core.read_releases_anew(Instant::now()) {
                        return true;
                    }
                }
                Err(error) => tracing::debug!("releases cannot be read: {error}"),
            }
            drop(core);
            thread::sleep(WAIT);
        }
    }
}

fn watch(store: &dyn Store) -> Result<Watch, StoreError> {
    // Nothing has this key: that is what revision there is.
    let revision = store.list(&[PREFIX, "none"].concat())?.revision;
    store.watch(PREFIX, revision)
}
