//! What is done in a store of releases that several relays have, as one of them hears it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use xdstp_client::state::{Store, StoreError, Watch};

use crate::relay_core::core::RelayCore;
use crate::releases::PREFIX;

/// Follows a store, from one [step](Self::step) to the next.
pub struct Following {
    store: Arc<dyn Store>,
    /// None while all is to be read.
    watch: Option<Watch>,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Heard {
    /// The relay knows what is done, as far as anybody does.
    Known,
    /// Nobody publishes any more: this relay may, at once.
    Free,
    /// The store does not answer, and nobody has waited.
    Away,
}

impl Following {
    /// From now on: before the relay reads what is there.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn begin(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let watch = Some(watch(&*store)?);
        Ok(Self { store, watch })
    }

    /// The same of a store that does not answer: all that is there is read once it does.
    pub fn later(store: Arc<dyn Store>) -> Self {
        Self { store, watch: None }
    }

    /// The relay has begun with what it could read: if that was not all, it is read as if nothing had been.
    #[must_use]
    pub fn after_reading(self, core: &RelayCore) -> Self {
        if core.are_releases_recalled() { Self::later(self.store) } else { self }
    }

    /// Tells the relay what is done, and waits for that, or has it read all.
    pub fn step(&mut self, core: &RelayCore, wait: Duration, now: impl Fn() -> Instant) -> Heard {
        let heard = self.next(core, wait, now);
        core.are_releases_heard(heard != Heard::Away);
        heard
    }

    fn next(&mut self, core: &RelayCore, wait: Duration, now: impl Fn() -> Instant) -> Heard {
        let Some(watch) = &mut self.watch else { return self.begin_anew(core, now()) };
        match watch.next(wait) {
            Ok(events) if !events.is_empty() && core.hear_releases(&events, now()) => Heard::Free,
            Ok(_) => Heard::Known,
            Err(error) => {
                tracing::warn!("what other relays do with releases was not heard, and is read: {error}");
                self.watch = None;
                self.begin_anew(core, now())
            }
        }
    }

    fn begin_anew(&mut self, core: &RelayCore, now: Instant) -> Heard {
        match watch(&*self.store) {
            Ok(watch) if core.read_releases_anew(now) => {
                self.watch = Some(watch);
                Heard::Known
            }
            Ok(_) => Heard::Away,
            Err(error) => {
                tracing::debug!("releases cannot be read: {error}");
                Heard::Away
            }
        }
    }
}

fn watch(store: &dyn Store) -> Result<Watch, StoreError> {
    // Nothing has this key: that is what revision there is.
    let revision = store.list(&[PREFIX, "none"].concat())?.revision;
    store.watch(PREFIX, revision)
}
