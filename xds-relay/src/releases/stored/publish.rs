//! Publishing: what is in a release, who is served it and what it replaces are one transaction, where a store takes that much. Who
//! follows the store is told once, then.

use bytes::Bytes;
use xdstp_client::state::{Commit, Compare};

use crate::releases::act::{By, Order, Transition};
use crate::releases::control::Control;
use crate::releases::control::error::ControlError;
use crate::releases::manifest::{Item, Manifest};
use crate::releases::stage::Stages;
use crate::releases::stored::Stored;
use crate::releases::stored::batch::{MOST, is_one};
use crate::releases::stored::error::StoredError;
use crate::releases::stored::orders::TRIES;
use crate::releases::stored::save::New;

/// What is taken, from where, and the encoded `Any` of each of its items.
pub(crate) struct Taken<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) from: &'a str,
    pub(crate) body: &'a dyn Fn(&Item) -> Option<Bytes>,
}

/// What became of a commit of all.
enum Committed {
    Done,
    Conflict,
    /// A store takes less at once, and nothing was done.
    TooMuch,
}

impl Stored {
    /// [Saves](Self::save) a release and does what is ordered of it: to [publish](crate::releases::Act::Publish) it, and then to
    /// [advance](crate::releases::Act::Advance) it as often as that may be done, if that is ordered. What came of each, in that order.
    ///
    /// What is too much for one commit is saved before, and then the rest is one.
    ///
    /// # Errors
    /// As [`save`](Self::save) and [`apply`](Self::apply). Others may have changed what is stable meanwhile: it is for whoever orders
    /// to look at that first.
    pub(crate) fn publish(
        &mut self,
        taken: &Taken<'_>,
        publish: &Order,
        advance: Option<&Order>,
        stages: &Stages,
    ) -> Result<Vec<Transition>, StoredError> {
        let stable = self.base.stable;
        for _ in 0..TRIES {
            let mut control = self.base.clone();
            let done = transitions(&mut control, publish, advance, stages)?;
            // Others write into a store that was put back only what it lacks: that is no publishing.
            self.may_write()?;
            // What waits is told first; and that nothing is to be done may be so only by what was known here.
            if done.is_empty() || !self.unsaved.is_empty() {
                break;
            }
            let Taken { manifest, from, body } = taken;
            let new = self.not_kept(manifest, from, publish.at, body)?;
            let is_kept = new.is_none();
            match self.commit_all(new, &control, &done)? {
                Committed::Done => return Ok(done.into_iter().map(|(_, transition)| transition).collect()),
                Committed::TooMuch if is_kept => break,
                Committed::TooMuch => self.save_taken(taken, publish)?,
                Committed::Conflict => {
                    self.was_overtaken()?;
                    (self.control, _) = self.with_unsaved(stages);
                    // It may be what was to be, and nobody heard that.
                    if ![stable, Some(manifest.release())].contains(&self.base.stable) {
                        return Err(StoredError::Contended);
                    }
                }
            }
        }
        self.save_taken(taken, publish)?;
        Ok(vec![self.apply(publish, stages)?.transition])
    }

    fn save_taken(&mut self, Taken { manifest, from, body }: &Taken<'_>, order: &Order) -> Result<(), StoredError> {
        let By::Publisher(by) = order.by else { return Err(ControlError::NotThePublisher.into()) };
        self.save(manifest, by, from, order.at, body)
    }

    fn commit_all(
        &mut self,
        new: Option<New>,
        control: &Control,
        done: &[(Order, Transition)],
    ) -> Result<Committed, StoredError> {
        let (control_ops, count) = self.control_ops(control, done)?;
        let mut ops: Vec<_> = new.iter().flat_map(New::ops).cloned().collect();
        ops.extend(control_ops);
        // It is looked for what is to go only where there is room for that.
        if !is_one(ops.iter()) {
            return Ok(Committed::TooMuch);
        }
        let mut sweep = None;
        if let Some(new) = &new {
            sweep = self.to_sweep(new.release, Some(new), MOST.saturating_sub(ops.len()))?;
            let Some(sweep) = &sweep else { return Ok(Committed::TooMuch) };
            ops.extend(self.sweep_ops(sweep));
        }
        if !is_one(ops.iter()) {
            return Ok(Committed::TooMuch);
        }
        // Nobody may hear what came of it.
        self.is_unread |= new.is_some();
        match self.writer.commit(&ops, &[Compare::unchanged(self.keys.control(), self.revision)])? {
            Commit::Conflict => Ok(Committed::Conflict),
            Commit::Done(revision) => {
                self.is_written(control, count, revision, done);
                if let (Some(new), Some(sweep)) = (new, sweep) {
                    // Nobody else writes what the publisher does.
                    self.floor = revision.max(self.floor);
                    self.keep(new);
                    self.swept(sweep);
                    self.is_unread = false;
                }
                Ok(Committed::Done)
            }
        }
    }
}

/// What comes of these orders, one after the other: nothing, if nothing is to be done.
fn transitions(
    control: &mut Control,
    publish: &Order,
    advance: Option<&Order>,
    stages: &Stages,
) -> Result<Vec<(Order, Transition)>, ControlError> {
    // Neither names a release that is to be kept already.
    let apply = |control: &mut Control, order: &Order| control.apply(order, stages, &|_| false);
    let mut transition = apply(control, publish)?;
    let mut done: Vec<_> =
        Some((publish.clone(), transition)).filter(|_| transition != Transition::Unchanged).into_iter().collect();
    while let (Transition::Opened | Transition::InStage(_), Some(advance)) = (transition, advance)
        && let Ok(next) = apply(control, advance)
    {
        transition = next;
        done.push((advance.clone(), transition));
    }
    Ok(done)
}
