//! The scopes that anything is kept of. Each has a record in the store, which comes with its first key and goes with its last:
//! of a scope that was only seen nothing is written.

use std::collections::HashMap;

use crate::state::format::{Moment, ScopeId, scope_of};

/// How often it is said that a scope is in use, in seconds.
const USED: u64 = 24 * 3600;
/// How often it is looked which of them are, beside those that anything changed of, in seconds.
const LOOK: u64 = 3600;

/// What is kept of each, in the store or about to be written there.
#[derive(Debug, Default)]
pub(crate) struct KeptScopes {
    by_id: HashMap<ScopeId, Of>,
    /// When all were looked at.
    looked: u64,
}

#[derive(Debug, Default)]
struct Of {
    keys: usize,
    /// When it was last said in this run that it is in use.
    used: Option<u64>,
    /// Not all of it is by the same servers, and never is again as long as anything is kept.
    is_mixed: bool,
}

impl KeptScopes {
    /// One more key of a scope is kept. Whether it is the first.
    pub(crate) fn add(&mut self, id: &ScopeId) -> bool {
        if let Some(of) = self.by_id.get_mut(id) {
            of.keys += 1;
            return false;
        }
        self.by_id.insert(id.clone(), Of { keys: 1, used: None, is_mixed: false });
        true
    }

    /// A key is not kept any more. The scope, if it was its last.
    pub(crate) fn remove(&mut self, key: &str) -> Option<ScopeId> {
        let id = scope_of(key)?;
        let of = self.by_id.get_mut(id)?;
        of.keys = of.keys.saturating_sub(1);
        if of.keys > 0 {
            return None;
        }
        self.by_id.remove_entry(id).map(|(id, _)| id)
    }

    /// Whether anything is kept of a scope.
    pub(crate) fn has(&self, id: &ScopeId) -> bool {
        self.by_id.contains_key(id)
    }

    /// Whether it was not said for long that a scope is in use, of which anything is kept; or not yet that it is by several servers.
    pub(crate) fn is_due(&self, id: &ScopeId, is_mixed: bool, at: Moment) -> bool {
        let is_due = |of: &Of| of.used.is_none_or(|used| used + USED <= at.seconds()) || is_mixed && !of.is_mixed;
        self.by_id.get(id).is_some_and(is_due)
    }

    /// It is said.
    pub(crate) fn uses(&mut self, id: &ScopeId, at: Moment) {
        if let Some(of) = self.by_id.get_mut(id) {
            of.used = Some(at.seconds());
        }
    }

    /// What is kept of a scope is by several servers.
    pub(crate) fn mix(&mut self, id: &ScopeId) {
        self.by_id.get_mut(id).into_iter().for_each(|of| of.is_mixed = true);
    }

    /// Whether it is.
    pub(crate) fn is_mixed(&self, id: &ScopeId) -> bool {
        self.by_id.get(id).is_some_and(|of| of.is_mixed)
    }

    /// Whether it is to be looked which are in use that nothing changed of: there may be very many.
    pub(crate) fn is_to_look(&self, at: Moment) -> bool {
        self.looked + LOOK <= at.seconds()
    }

    /// That was done.
    pub(crate) fn look(&mut self, at: Moment) {
        self.looked = at.seconds();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant, SystemTime};

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment { now: Instant::now(), wall: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) }
    }

    #[test]
    fn a_scope_is_known_from_its_first_key_to_its_last() {
        let mut scopes = KeptScopes::default();
        let [one, other] = ["1", "2"].map(ScopeId::read);
        let key = |id: &ScopeId| format!("{}T\0x", id.prefix());
        assert_eq!([scopes.add(&one), scopes.add(&one), scopes.add(&other)], [true, false, true]);
        assert_eq!((scopes.remove(&key(&one)), scopes.has(&one)), (None, true));
        assert_eq!((scopes.remove(&key(&one)), scopes.has(&one)), (Some(one.clone()), false));
        assert_eq!(scopes.remove(&key(&one)), None);
        assert_eq!(scopes.remove("elsewhere"), None);
        assert!(scopes.has(&other) && scopes.by_id.len() == 1);
    }

    #[test]
    fn it_is_said_once_a_day_of_a_scope_that_anything_is_kept_of_that_it_is_in_use() {
        let mut scopes = KeptScopes::default();
        let id = ScopeId::read("1");
        assert!(!scopes.is_due(&id, false, at(USED)), "nothing is kept");
        scopes.uses(&id, at(USED));
        scopes.add(&id);
        assert!(scopes.is_due(&id, false, at(5)), "it was not said in this run");
        scopes.uses(&id, at(5));
        assert_eq!([4, 5].map(|more| scopes.is_due(&id, false, at(USED + more))), [false, true]);
        assert!(scopes.is_to_look(at(LOOK)));
        scopes.look(at(LOOK));
        assert_eq!([2 * LOOK - 1, 2 * LOOK].map(|seconds| scopes.is_to_look(at(seconds))), [false, true]);
    }
}
