//! Which request for the wildcard an empty delta response may answer.

use xdstp_cache::Interest;

/// The wildcard on one stream. A response does not say what it answers: one that crossed the request that gave the wildcard
/// up answers what was asked for before.
#[derive(Debug, Default)]
pub(crate) struct Wildcards {
    /// It was asked for, and nothing came that can only be for it.
    awaited: bool,
    /// How often it was given up like that, or asked for once more.
    given_up: u32,
    /// It was refused.
    refused: bool,
}

impl Wildcards {
    pub(crate) fn asked(&mut self, interests: &[Interest]) {
        if interests.contains(&Interest::Wildcard) {
            self.given_up += u32::from(std::mem::replace(&mut self.awaited, true));
        }
    }

    pub(crate) fn left(&mut self, interests: &[Interest]) {
        if interests.contains(&Interest::Wildcard) {
            self.given_up += u32::from(std::mem::take(&mut self.awaited));
        }
    }

    /// What came is nothing but the wildcard's.
    pub(crate) fn answered(&mut self) {
        self.awaited = false;
    }

    /// An error of it came, perhaps `beside` resources: the answer, unless it says again there what was said before.
    pub(crate) fn refused(&mut self, beside: bool) {
        if !(std::mem::replace(&mut self.refused, true) && beside) {
            self.end();
        }
    }

    /// An empty response came. Whether it says that there is nothing, or nothing but what the origin was told that we have: a
    /// wildcard that is asked for again has none of that. Who is never answered twice is known by silence (rule 151).
    pub(crate) fn end(&mut self) -> bool {
        let ends = self.given_up == 0;
        self.given_up = self.given_up.saturating_sub(1);
        self.awaited &= !ends;
        ends
    }
}
