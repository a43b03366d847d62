//! What somebody else says of a candidate, who is asked over and over while it is on its way.

use std::time::{Duration, Instant};

use http::Uri;

use super::Releases;
use crate::lock::lock;
use crate::releases::{Progress, Release};

/// How old an answer may be by which a candidate goes on.
const FRESH: Duration = Duration::from_secs(15);

/// What was said of a candidate, asked whether all is well with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// It is.
    Well,
    /// It is not: what was said.
    NotWell(String),
    /// Nothing was said, and why. That is no answer: the candidate stays in its stage, and does not halt.
    Nothing(String),
}

/// What was said last, of which candidate, and when.
pub(super) type LastChecked = (Release, Instant, Checked);

impl Releases {
    /// Of which candidate is to be asked, and where.
    pub(in crate::relay_core) fn to_check(&self) -> Option<(Release, Uri)> {
        let uri = self.rollout.halt.check.clone()?;
        let served = lock(&self.served);
        let candidate = served.control.candidate().filter(|_| served.control.frozen().is_none())?;
        let is_halted = matches!(candidate.progress, Progress::Halted(_));
        (!is_halted).then_some((candidate.release, uri))
    }

    /// That was said.
    pub(in crate::relay_core) fn is_checked(&self, release: Release, checked: Checked, now: Instant) {
        lock(&self.served).checked = Some((release, now, checked));
    }

    /// Why a candidate halts by what was said, or whether it may go on.
    pub(super) fn checked(&self, release: Release, now: Instant) -> Result<bool, String> {
        if self.rollout.halt.check.is_none() {
            return Ok(true);
        }
        match lock(&self.served).checked.as_ref().filter(|(of, ..)| *of == release) {
            Some((_, _, Checked::NotWell(words))) => Err(words.clone()),
            Some((_, at, Checked::Well)) => Ok(now.saturating_duration_since(*at) <= FRESH),
            Some((_, _, Checked::Nothing(_))) | None => Ok(false),
        }
    }

    /// What was said of a candidate last, in words, where somebody is asked.
    pub(in crate::relay_core) fn check_words(&self, release: Release) -> Option<String> {
        self.rollout.halt.check.as_ref()?;
        Some(match lock(&self.served).checked.as_ref().filter(|(of, ..)| *of == release) {
            Some((_, _, Checked::Well)) => "all is well".to_owned(),
            Some((_, _, Checked::NotWell(words))) => words.clone(),
            Some((_, _, Checked::Nothing(why))) => format!("no answer: {why}"),
            None => "not asked yet".to_owned(),
        })
    }
}
