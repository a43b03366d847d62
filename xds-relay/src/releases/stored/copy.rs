//! What a relay keeps of releases that are elsewhere, for when it starts and they cannot be read: it goes by that until they are, and
//! beyond if they were put back to an earlier state.

use std::sync::Arc;

use xdstp_client::state::{Commit, Op, Store, StoreError};

use crate::releases::control::Control;
use crate::releases::ordered::Ordered;
use crate::releases::records::Count;
use crate::releases::sealed::seal;
use crate::releases::stage::Stages;
use crate::releases::stored::error::StoredError;
use crate::releases::stored::{Stored, Waiting};

impl Stored {
    /// The releases of a scope in a store that was not read yet: what a copy has holds until it is, and then counts for nothing, unless
    /// the store has an earlier state of it.
    /// Nothing is written before.
    pub(crate) fn recalled(store: Arc<dyn Store>, scope: &str, copy: Option<&Self>) -> Self {
        let mut stored = Self { is_recalled: true, ..Self::of_nothing(store, scope) };
        if let Some(copy) = copy {
            (stored.base, stored.count, stored.ordered) = (copy.base.clone(), copy.count, copy.ordered.clone());
            stored.releases = copy.releases.clone();
        }
        stored.control = stored.base.clone();
        stored
    }

    /// Whether the store was never read.
    pub(crate) fn is_recalled(&self) -> bool {
        self.is_recalled
    }

    /// Why nothing is written, if nothing is.
    pub(super) fn may_write(&self) -> Result<(), StoredError> {
        if self.is_recalled {
            return Err(StoreError::Away("it was not read since this relay began".to_owned()).into());
        }
        self.may_ask()?;
        if self.went_back || self.awaits_newer { Err(StoredError::PutBack) } else { Ok(()) }
    }

    /// Why nothing is asked of the store, if nothing is.
    pub(super) fn may_ask(&self) -> Result<(), StoredError> {
        match self.is_left_alone {
            true => Err(StoreError::Away("it did not answer just now".to_owned()).into()),
            false => Ok(()),
        }
    }

    /// What was ordered before this relay began, and may not be in the store: it holds, and the store is told.
    ///
    /// # Errors
    /// The store was read, and cannot be any more.
    pub(crate) fn order_again(&mut self, waiting: Vec<Waiting>, stages: &Stages) -> Result<(), StoredError> {
        (self.unsaved, self.is_unsure) = (waiting, true);
        let settled = self.settle_doubts();
        for Waiting { order, .. } in &self.unsaved {
            let (scope, by, act, why) = (self.scope.as_str(), &order.by, &order.act, &order.why);
            tracing::warn!(scope, %by, ?act, why, "it was ordered before this relay began, and the store may not know it");
        }
        (self.control, _) = self.with_unsaved(stages);
        settled
    }

    /// What was done is not done again, when nobody heard that it was: others may have taken it back since.
    pub(super) fn settle_doubts(&mut self) -> Result<(), StoredError> {
        if self.is_recalled || !self.is_unsure {
            return Ok(());
        }
        self.may_ask()?;
        if !self.unsaved.is_empty() {
            let log = self.log()?;
            self.unsaved.retain(|Waiting { order, .. }| !log.iter().any(|entry| entry.is_of(order)));
        }
        self.is_unsure = false;
        Ok(())
    }

    /// What waits for the store.
    pub(crate) fn waiting(&self) -> &[Waiting] {
        &self.unsaved
    }

    /// What holds by the store, whatever waits.
    pub(crate) fn base(&self) -> &Control {
        &self.base
    }

    /// How far what is in the store got.
    pub(crate) fn count(&self) -> Count {
        self.count
    }

    /// What people ordered last.
    pub(crate) fn ordered(&self) -> &Ordered {
        &self.ordered
    }

    /// This is a copy: that holds where the original is, and here. What it does not name is removed, but for the last ones.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn copy(&mut self, base: &Control, count: Count, ordered: &Ordered) -> Result<(), StoredError> {
        let key = self.keys.control();
        self.ordered = ordered.clone();
        let record = self.control_record(base, count);
        // Nobody else writes here.
        if let Commit::Done(revision) = self.store.commit(&[Op::put(&*key, seal(&key, &record))], &[])? {
            self.revision = revision;
        }
        (self.base, self.control, self.count) = (base.clone(), base.clone(), count);
        self.control.stable().map_or(Ok(()), |stable| self.sweep(stable))
    }
}
