//! What a scope of several servers knows of them.

use std::sync::Arc;

use crate::federation::choice::{Choice, Standing};
#[cfg(test)]
use crate::federation::faults::{Fault, planted};
use crate::federation::terms::Trouble;

/// The servers of a scope that has several.
pub(super) struct Several {
    pub(super) choice: Choice,
    /// What they are called.
    names: Arc<[Arc<str>]>,
    /// Whether anything is wanted that nothing is known of.
    look: Look,
}

/// How far it was looked whether anything is wanted that nothing is known of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// It is to be looked once all that are asked fail.
    Due,
    /// It is being looked.
    Begun,
    /// There was nothing, and nothing came since.
    Done,
}

impl Several {
    pub(super) fn new(names: Arc<[Arc<str>]>) -> Self {
        let choice = Choice::new(names.len());
        Self { choice, names, look: Look::Due }
    }

    /// Something is wanted that nothing is known of.
    pub(super) fn lacks(&mut self) {
        self.look = Look::Due;
    }

    /// Nothing is wanted any more.
    pub(super) fn rest(&mut self) {
        let _ = self.choice.unwanted();
        self.look = Look::Due;
    }

    /// A server fails. Whether it is to be looked whether anything is wanted that nothing is known of.
    pub(super) fn failed(&mut self, server: usize, reason: &str, anew: bool) -> bool {
        // Whether that is so still is looked at.
        let _ = self.choice.unknown(false);
        let _ = self.choice.failed(server, reason);
        let looks = self.choice.may_fall_back() && (anew || self.look == Look::Due);
        if looks {
            self.look = Look::Begun;
        } else if anew {
            self.look = Look::Due;
        }
        looks
    }

    /// It was looked, and something is `lacking`, or not.
    pub(super) fn looked(&mut self, lacking: bool) {
        self.look = match self.look {
            _ if lacking => Look::Due,
            // What came meanwhile may not have been looked at.
            Look::Begun => Look::Done,
            look => look,
        };
    }

    /// Why none of them can be reached: all that are asked fail, and no other is about to be.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        let reason = self.choice.trouble()?;
        let is_left = self.choice.may_fall_back() && self.look != Look::Done;
        #[cfg(test)]
        let is_left = is_left && !planted(Fault::TellFirstFailure);
        let last = self.names.get(self.choice.asked().len().checked_sub(1)?).filter(|_| !is_left)?;
        Some(Trouble { server: last.clone(), reason: reason.into() })
    }

    /// The one that is waited for: that which counts, unless it fails.
    pub(super) fn current(&self) -> usize {
        let asked = self.choice.asked();
        let answers = |at: &usize| asked.get(*at).is_some_and(|standing| !matches!(standing, Standing::Fails(_)));
        self.choice.counts().filter(answers).unwrap_or(asked.len().saturating_sub(1))
    }

    /// Whether what a server says counts.
    pub(super) fn heeds(&self, server: usize) -> bool {
        #[cfg(test)]
        if planted(Fault::HeedServersBelow) {
            return true;
        }
        self.choice.counts().map_or(self.choice.is_asked(server), |counts| counts == server)
    }
}
