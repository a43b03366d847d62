//! Orders: each is one transaction, which is done if the control value is as it was, and considered anew if not.

use prost::Message as _;
use sha2::{Digest as _, Sha256};
use xdstp_client::state::{Commit, Compare, Op, Revision, StoreError};

use crate::hex::hex;

use crate::releases::act::{Act, By, Order, Transition};
use crate::releases::control::Control;
use crate::releases::ordered::Ordered;
use crate::releases::records::{ControlRecord, Count};
use crate::releases::sealed::seal;
use crate::releases::stage::Stages;
use crate::releases::stored::error::StoredError;
use crate::releases::stored::{Applied, Stored, Waiting};

/// How often an order is considered anew because others were faster.
pub(super) const TRIES: usize = 8;
/// How many orders wait for the store.
const UNSAVED: usize = 64;

/// What is done with an order, and whether it is so in the store.
type Done = (Option<Transition>, bool);

impl Stored {
    /// Does what is ordered, here and in the store, together with its entry in the log. While the store is away, what takes
    /// something back is done here alone (freeze, rollback, hold, halt), and nothing else is.
    ///
    /// # Errors
    /// Why it is not done.
    pub fn apply(&mut self, order: &Order, stages: &Stages) -> Result<Applied, StoredError> {
        self.apply_as(order, None, stages)
    }

    /// The same, only if all is still as the [mark](Self::mark) says that was read: whoever orders has seen what it is about.
    ///
    /// # Errors
    /// Why it is not done: as [`apply`](Self::apply), or [`Changed`](StoredError::Changed).
    pub fn apply_at(&mut self, order: &Order, mark: &str, stages: &Stages) -> Result<Applied, StoredError> {
        self.apply_as(order, Some(mark), stages)
    }

    /// What tells the control value from those before and after: another one after each change, here or in the store. A store that is
    /// put back to what it was counts anew, and what is so then is another.
    pub fn mark(&self) -> String {
        let record = ControlRecord::of(&self.scope, &self.control, self.count).encode_to_vec();
        let hash = Sha256::digest(record);
        format!("{}-{}", self.revision, hex(hash.get(..4).unwrap_or_default()))
    }

    /// How many orders are done here, and are not in the store yet.
    pub fn unsaved(&self) -> usize {
        self.unsaved.len()
    }

    /// Tells the store what was done while it was away; whether there was anything. What others did meanwhile comes first.
    ///
    /// # Errors
    /// It is away still.
    pub fn flush(&mut self, stages: &Stages) -> Result<bool, StoredError> {
        let any = !self.unsaved.is_empty();
        if any {
            self.reconcile(None, None, stages)?;
        }
        Ok(any)
    }

    /// Reads what others did to the control value.
    ///
    /// # Errors
    /// It cannot be read. What is known holds on.
    pub fn refresh(&mut self, stages: &Stages) -> Result<(), StoredError> {
        if self.is_recalled {
            self.read()?;
        } else {
            let is_new = self.revision == 0;
            self.read_control_alone(is_new)?;
        }
        let settled = self.settle_doubts();
        (self.control, _) = self.with_unsaved(stages);
        settled
    }

    fn apply_as(&mut self, order: &Order, mark: Option<&str>, stages: &Stages) -> Result<Applied, StoredError> {
        let (transition, is_kept) = self.reconcile(Some(order), mark, stages)?;
        Ok(Applied { transition: transition.unwrap_or(Transition::Unchanged), is_kept })
    }

    fn reconcile(&mut self, order: Option<&Order>, mark: Option<&str>, stages: &Stages) -> Result<Done, StoredError> {
        let (mut was_read, mut unheard) = (false, None);
        for _ in 0..TRIES {
            let settled = self.settle_doubts();
            if mark.is_some_and(|mark| mark != self.mark()) {
                // Whoever read it may have read it where it was newer.
                if !std::mem::replace(&mut was_read, true) && self.is_behind(stages)?.0 {
                    continue;
                }
                return Err(StoredError::Changed { is: self.mark() });
            }
            let (mut control, mut done) = self.with_unsaved(stages);
            let waits = order.map(|order| Waiting::new(order, &control));
            let made = order.map(|order| control.apply(order, stages, &|release| self.has(release))).transpose();
            let changes = matches!(made, Ok(Some(made)) if made != Transition::Unchanged);
            // That nothing is to be done may be so only by what was known here.
            if order.is_some() && !changes && !std::mem::replace(&mut was_read, true) {
                let (is_behind, why_not) = self.is_behind(stages)?;
                unheard = why_not;
                if is_behind {
                    continue;
                }
            }
            let transition = made?;
            if let (Some(order), Some(transition), true) = (order, transition, changes) {
                done.push((order.clone(), transition));
            }
            if done.is_empty() {
                // That it is so already may be said by what is not known here: it waits as what would change something.
                let unsure = unheard.or_else(|| self.may_write().err());
                if let (Some(waits), Some(error)) = (waits.filter(|waits| !is_by_relay(&waits.order)), unsure) {
                    if !self.may_wait(&waits.order, &error) {
                        return Err(error);
                    }
                    self.unsaved.push(waits);
                    self.control = control;
                    return Ok((transition, false));
                }
                // What was recalled does not say what the store lacks.
                if !self.is_recalled {
                    self.unsaved.clear();
                }
                self.control = control;
                return Ok((transition, true));
            }
            match settled
                .and_then(|()| self.commit(&control, &done))
                .and_then(|is_done| Ok(is_done || !self.was_overtaken()?))
            {
                Ok(true) => return Ok((transition, true)),
                Ok(false) => {}
                // What this relay ordered as the publisher is not for it to say any more.
                Err(StoredError::Store(StoreError::Fenced)) if self.unsaved.iter().any(|of| is_by_relay(&of.order)) => {
                    self.unsaved.retain(|of| !is_by_relay(&of.order));
                }
                Err(error) => {
                    self.is_unsure |= matches!(error, StoredError::Store(StoreError::Unsure(_)));
                    let waits = waits.filter(|waits| self.may_wait(&waits.order, &error));
                    let Some(waits) = waits else { return Err(error) };
                    if changes {
                        self.unsaved.push(waits);
                    }
                    self.control = control;
                    return Ok((transition, false));
                }
            }
        }
        Err(StoredError::Contended)
    }

    /// Whether others changed the control value since it was read: it is read now. And why that cannot be told, where the store is away.
    fn is_behind(&mut self, stages: &Stages) -> Result<(bool, Option<StoredError>), StoredError> {
        if let Err(error) = self.may_ask() {
            return Ok((false, Some(error)));
        }
        let before = (self.revision, self.is_recalled);
        let away = match self.refresh(stages) {
            Ok(()) => None,
            Err(error @ StoredError::Store(_)) => Some(error),
            Err(error) => return Err(error),
        };
        // Some of it may have been read.
        Ok(((self.revision, self.is_recalled) != before, away))
    }

    fn may_wait(&self, order: &Order, error: &StoredError) -> bool {
        let is_away = match error {
            StoredError::Store(error) => !matches!(error, StoreError::Fenced),
            other => matches!(other, StoredError::PutBack),
        };
        order.act.takes_back() && self.unsaved.len() < UNSAVED && is_away
    }

    /// It was: what others did is read.
    pub(super) fn was_overtaken(&mut self) -> Result<bool, StoredError> {
        self.read_control_alone(false)?;
        Ok(true)
    }

    /// The control value of the store, with what was done while it was away, as far as that may be done still.
    pub(super) fn with_unsaved(&self, stages: &Stages) -> (Control, Vec<(Order, Transition)>) {
        let mut control = self.base.clone();
        let mut done = Vec::new();
        for waiting @ Waiting { order, .. } in &self.unsaved {
            if !waiting.is_due(&control) {
                told(&self.scope, order, "the release under way is another one");
                continue;
            }
            match control.apply(order, stages, &|release| self.has(release)) {
                Ok(Transition::Unchanged) => {}
                Ok(transition) => done.push((order.clone(), transition)),
                Err(error) => told(&self.scope, order, error),
            }
        }
        (control, done)
    }

    /// Whether it is written: it is not if others were faster. What was put back to an earlier state is mended first, or it would
    /// name what it does not have.
    fn commit(&mut self, control: &Control, done: &[(Order, Transition)]) -> Result<bool, StoredError> {
        self.may_write()?;
        let names_release = |(order, _): &(Order, _)| matches!(order.act, Act::Rollback { to: Some(_) });
        if self.is_unread && done.iter().any(names_release) {
            // It may be kept no more.
            self.read_content()?;
            return Ok(false);
        }
        self.commit_anyhow(control, done)
    }

    pub(super) fn commit_anyhow(
        &mut self,
        control: &Control,
        done: &[(Order, Transition)],
    ) -> Result<bool, StoredError> {
        let (ops, count) = self.control_ops(control, done)?;
        let store = if done.iter().any(|(order, _)| is_by_relay(order)) { &self.writer } else { &self.store };
        match store.commit(&ops, &[Compare::unchanged(self.keys.control(), self.revision)])? {
            Commit::Conflict => Ok(false),
            Commit::Done(revision) => {
                self.is_written(control, count, revision, done);
                Ok(true)
            }
        }
    }

    /// What is written of a control value and of what was done, and how far it got then.
    pub(super) fn control_ops(
        &self,
        control: &Control,
        done: &[(Order, Transition)],
    ) -> Result<(Vec<Op>, Count), StoredError> {
        let changes = self.count.changes.saturating_add(done.len() as u64);
        // The first change is that somebody publishes; and earlier versions did not say who began.
        let begun_by = match self.count.begun_by {
            0 => control.publisher.map_or(0, |publisher| publisher.instance.0),
            begun_by => begun_by,
        };
        let count = Count { changes, begun_by };
        let key = self.keys.control();
        let mut record = self.control_record(control, count);
        // Where nothing is done it is what there was.
        record.is_put_back = done.is_empty();
        record.ordered = self.ordered_with(done).prints().to_vec();
        let mut ops = vec![Op::put(&*key, seal(&key, &record))];
        let entries = done.iter().zip(self.count.changes..);
        ops.extend(entries.map(|((order, transition), number)| self.entry(order, *transition, control, number)));
        ops.extend(self.trim(changes)?);
        Ok((ops, count))
    }

    /// What people ordered, with what is done now.
    fn ordered_with(&self, done: &[(Order, Transition)]) -> Ordered {
        let mut ordered = self.ordered.clone().begun(self.count.changes);
        done.iter().for_each(|(order, _)| ordered.note(order));
        ordered
    }

    /// A control value is in the store.
    pub(super) fn is_written(
        &mut self,
        control: &Control,
        count: Count,
        revision: Revision,
        done: &[(Order, Transition)],
    ) {
        (self.ordered, self.there) = (self.ordered_with(done), None);
        self.base = control.clone();
        (self.control, self.count, self.revision) = (control.clone(), count, revision);
        (self.went_back, self.written_stages, self.bad_control) = (false, self.own_stages, None);
        self.unsaved.clear();
    }
}

fn is_by_relay(order: &Order) -> bool {
    !matches!(order.by, By::Person(_))
}

/// It was done here, and is not done for others: they were faster.
fn told(scope: &str, order: &Order, error: impl std::fmt::Display) {
    let (act, by) = (&order.act, &order.by);
    tracing::warn!(scope, %by, ?act, "what was ordered while the store was away is not done any more: {error}");
}
