//! Releases that several relays have together, in etcd: what one does there the others hear, and one publishes at a time.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use xdstp_client::state::{Etcd, Lease, Store, StoreError};

use crate::relay_core::{Following, Heard, RelayCore};
use crate::releases::{Instance, Turn, Turns};

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

/// Tells the relay what is done in the store of its releases, on a thread of its own, for as long as there is that relay.
///
/// # Errors
/// The system has no thread for it.
pub(crate) fn tell(following: Following, core: &Arc<RelayCore>) -> io::Result<()> {
    let following = following.after_reading(core);
    let core = Arc::downgrade(core);
    thread::Builder::new().name("releases".to_owned()).spawn(move || run(following, &core)).map(drop)
}

fn run(mut following: Following, core: &Weak<RelayCore>) {
    while let Some(core) = core.upgrade() {
        match following.step(&core, WAIT, Instant::now) {
            Heard::Known => {}
            Heard::Free => core.release(Instant::now(), SystemTime::now()),
            Heard::Away => {
                drop(core);
                thread::sleep(WAIT);
            }
        }
    }
}
