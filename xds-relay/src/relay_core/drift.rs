//! Whether what is served is what an origin has: it is asked once more, on streams that know of nothing before.

mod asked;
mod clients;
mod compared;
mod error;
mod fresh;
mod heard;
mod rounds;
mod seen;

use std::sync::Arc;
use std::time::{Duration, Instant};

use xdstp_client::federation::Scope;

use self::asked::Asked;
use self::compared::Compared;
pub use self::error::{Askable, DriftError};
use self::heard::Room;
pub use self::rounds::DriftRounds;
pub(crate) use self::seen::DriftSeen;
use crate::api::{DriftQuery, Drifts, MOST_SCOPES};
use crate::relay_core::core::RelayCore;

/// Who said nothing for so long has said what there is of collections, as far as can be told.
const QUIET: Duration = Duration::from_secs(2);

/// What is not said by then is not waited for.
const LONGEST: Duration = Duration::from_secs(10);

/// What is on its way is no drift: what is, is still there after so long.
const STANDS: Duration = Duration::from_secs(1);

/// An origin is being asked. Dropping it ends the streams.
pub struct DriftCheck {
    core: Arc<RelayCore>,
    origin: String,
    scopes: Vec<Asked>,
    more_scopes: usize,
    began: Instant,
    /// What was found the first time, by scope, and when.
    found: Option<(Instant, Vec<Compared>)>,
}

impl RelayCore {
    /// Asks an origin once more for what clients want of it now, on streams that know of nothing before.
    ///
    /// # Errors
    /// There is no such origin, or it has no streams.
    pub fn check_drift(self: &Arc<Self>, query: &DriftQuery, now: Instant) -> Result<DriftCheck, DriftError> {
        let at = self.origin_to_ask(&query.origin)?;
        let is_meant = |scope: &Arc<Scope>| {
            scope.origin() == at && query.scope.as_ref().is_none_or(|label| scope.key.to_string() == *label)
        };
        let mut scopes: Vec<_> = self.all_scopes().into_iter().filter(is_meant).collect();
        scopes.retain(|scope| scope.supply().is_some());
        Ok(self.check_scopes(query.origin.clone(), scopes, query.type_url.as_deref(), now))
    }

    /// The position of an origin that has streams.
    fn origin_to_ask(&self, name: &str) -> Result<usize, DriftError> {
        let all = self.origins();
        let askable = || {
            let with_streams = all.iter().filter(|(.., origin)| !origin.is_authoritative());
            Askable(with_streams.map(|(_, name, _)| name.clone()).collect())
        };
        match all.iter().find(|(_, of, _)| of == name) {
            Some((at, _, origin)) if !origin.is_authoritative() => Ok(*at),
            Some((_, name, origin)) => {
                Err(DriftError::NotAsked { name: name.clone(), kind: origin.kind(), askable: askable() })
            }
            None if name.is_empty() => Err(DriftError::NoName(askable())),
            None => Err(DriftError::NoOrigin { name: name.to_owned(), askable: askable() }),
        }
    }

    /// Asks an origin once more for what clients want of these scopes, or of one type of that: of no more of them than it bears.
    fn check_scopes(
        self: &Arc<Self>,
        origin: String,
        mut scopes: Vec<Arc<Scope>>,
        type_url: Option<&str>,
        now: Instant,
    ) -> DriftCheck {
        let more_scopes = scopes.len().saturating_sub(MOST_SCOPES);
        scopes.truncate(MOST_SCOPES);
        let room = Arc::<Room>::default();
        let scopes = scopes.into_iter().map(|scope| Asked::new(scope, type_url, &room)).collect();
        DriftCheck { core: self.clone(), origin, scopes, more_scopes, began: now, found: None }
    }
}

impl DriftCheck {
    /// What came of it, once that is known: to be called a few times a second.
    pub fn poll(&mut self, now: Instant) -> Option<Drifts> {
        let compared = self.compared(now)?;
        let scopes = self.scopes.iter().zip(compared).map(|(asked, compared)| asked.told(compared)).collect();
        let (origin, more_scopes, clients) = (self.origin.clone(), self.more_scopes, self.core.client_counts(now));
        Some(Drifts { origin, scopes, more_scopes, clients })
    }

    /// What came of it, of each scope.
    fn compared(&mut self, now: Instant) -> Option<Vec<Compared>> {
        let compare = |scopes: &[Asked]| scopes.iter().map(Asked::compare).collect::<Vec<_>>();
        let Some((at, before)) = &self.found else {
            if self.scopes.iter().all(|asked| asked.is_over(now, self.began)) {
                self.found = Some((now, compare(&self.scopes)));
            }
            return None;
        };
        let has_found = before.iter().any(Compared::has_found);
        if has_found && now.saturating_duration_since(*at) < STANDS {
            return None;
        }
        let again = compare(&self.scopes).into_iter().zip(before);
        Some(again.map(|(compared, before)| compared.standing_since(before)).collect())
    }
}
