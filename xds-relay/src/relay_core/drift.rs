//! Whether what is served is what an origin has: it is asked once more, on streams that know of nothing before.

mod fresh;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use xds_transport::Frame;
use xdstp_cache::{Interest, Stored, TypeUrl, Version};
use xdstp_client::federation::{Dialed, Scope};
use xdstp_uri::ResourceName;

use self::fresh::{Fresh, Heard, Said};
use crate::api::{Drift, DriftQuery, Drifts, MOST_SCOPES, PAGE, ScopeDrift, is_type};
use crate::lock::lock;
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

/// A scope, and what its origin says of it on a stream of its own.
struct Asked {
    scope: Arc<Scope>,
    asks: BTreeSet<(TypeUrl, Interest)>,
    heard: Arc<Mutex<Heard>>,
    _stream: Option<Box<dyn Dialed>>,
}

/// Names with what is served and what the origin has, where that is not the same.
type Found = BTreeMap<(TypeUrl, ResourceName), (Option<Version>, Option<Version>)>;

/// What came of comparing both.
#[derive(Default)]
struct Compared {
    same: usize,
    unanswered: usize,
    found: Found,
}

impl RelayCore {
    /// Asks an origin once more for what clients want of it now, on streams that know of nothing before. None if there is no such
    /// origin, or it has no streams.
    pub fn check_drift(self: &Arc<Self>, query: &DriftQuery, now: Instant) -> Option<DriftCheck> {
        let (at, _, kind) = self.origins().into_iter().find(|(_, name, _)| *name == query.origin)?;
        if kind.is_authoritative() {
            return None;
        }
        let is_meant = |scope: &Arc<Scope>| {
            scope.origin() == at && query.scope.as_ref().is_none_or(|label| scope.key.to_string() == *label)
        };
        let mut scopes: Vec<_> = self.all_scopes().into_iter().filter(is_meant).collect();
        scopes.retain(|scope| scope.supply().is_some());
        let more_scopes = scopes.len().saturating_sub(MOST_SCOPES);
        scopes.truncate(MOST_SCOPES);
        let asked = |scope| Asked::new(scope, query.type_url.as_deref());
        let scopes = scopes.into_iter().map(asked).collect();
        Some(DriftCheck {
            core: self.clone(),
            origin: query.origin.clone(),
            scopes,
            more_scopes,
            began: now,
            found: None,
        })
    }
}

impl DriftCheck {
    /// What came of it, once that is known: to be called a few times a second.
    pub fn poll(&mut self, now: Instant) -> Option<Drifts> {
        let compare = |scopes: &[Asked]| scopes.iter().map(Asked::compare).collect::<Vec<_>>();
        let Some((at, before)) = &self.found else {
            if self.scopes.iter().all(|asked| asked.is_over(now, self.began)) {
                self.found = Some((now, compare(&self.scopes)));
            }
            return None;
        };
        let has_found = before.iter().any(|compared| !compared.found.is_empty());
        if has_found && now.saturating_duration_since(*at) < STANDS {
            return None;
        }
        let mut compared = compare(&self.scopes);
        for (now, before) in compared.iter_mut().zip(before) {
            now.found.retain(|name, versions| before.found.get(name) == Some(versions));
        }
        let scopes = self.scopes.iter().zip(compared).map(|(asked, compared)| asked.told(compared)).collect();
        Some(Drifts {
            origin: self.origin.clone(),
            scopes,
            more_scopes: self.more_scopes,
            clients: self.core.client_counts(now),
        })
    }
}

impl Asked {
    fn new(scope: Arc<Scope>, type_url: Option<&str>) -> Self {
        let is_meant = |of: &TypeUrl| type_url.is_none_or(|end| is_type(of.as_str(), end));
        let asks: BTreeSet<_> = scope.subscriptions().into_iter().filter(|(of, _)| is_meant(of)).collect();
        let selector = scope.key.selector().map(|selector| (**selector).clone()).unwrap_or_default();
        let (fresh, heard) = Fresh::new(asks.iter().cloned().collect(), selector);
        let supply = scope.supply().filter(|_| !asks.is_empty());
        let stream = supply.and_then(|supply| supply.dial_beside(Box::new(fresh)));
        stream.iter().for_each(|stream| stream.nudge());
        Self { scope, asks, heard, _stream: stream }
    }

    /// Whether there is no more to be waited for.
    fn is_over(&self, now: Instant, began: Instant) -> bool {
        let heard = lock(&self.heard);
        let since = |at: Instant| now.saturating_duration_since(at);
        let is_said = |(type_url, interest): &(TypeUrl, Interest)| match interest {
            Interest::Name(name) if !name.is_glob() => heard.said(type_url, name).is_some(),
            _ => heard.complete.contains(&(type_url.clone(), interest.clone())),
        };
        since(began) >= LONGEST || heard.at.is_some_and(|at| since(at) >= QUIET) || self.asks.iter().all(is_said)
    }

    fn compare(&self) -> Compared {
        let heard = lock(&self.heard);
        let mut compared = Compared::default();
        let mut stored = BTreeSet::new();
        // The scope is locked while one is picked, and a digest takes time: it is taken behind that.
        let picked =
            |stored: Stored<'_, Frame>| (stored.type_url.clone(), stored.name.clone(), stored.resource.cloned());
        self.scope.visit_stored(picked, |(type_url, name, served)| {
            let Some(covered_by) = self.covering(&type_url, &name) else { return };
            let served = served.map(|resource| (resource.value.digest(), resource.version));
            // None where nothing is known of what it has: silence is no answer.
            let at_origin = match heard.said(&type_url, &name) {
                Some(Said::There { version, digest }) => Some(Some((*digest, version.clone()))),
                Some(Said::Gone) => Some(None),
                Some(Said::Failed) => served.is_none().then_some(None),
                None => (served.is_some() && covered_by.iter().any(|ask| heard.complete.contains(ask))).then_some(None),
            };
            let key = (type_url, name);
            stored.insert(key.clone());
            let digest = |of: &Option<(u128, Version)>| of.as_ref().map(|(digest, _)| *digest);
            match at_origin {
                None => compared.unanswered += usize::from(served.is_some()),
                Some(at_origin) if digest(&served) == digest(&at_origin) => compared.same += 1,
                Some(at_origin) => {
                    let versions = [served, at_origin].map(|of| of.map(|(_, version)| version)).into();
                    compared.found.insert(key, versions);
                }
            }
        });
        for (type_url, names) in &heard.names {
            for (name, said) in names {
                let key = (type_url.clone(), name.clone());
                if let Said::There { version, .. } = said
                    && !stored.contains(&key)
                {
                    compared.found.insert(key, (None, Some(version.clone())));
                }
            }
        }
        compared
    }

    /// As what a name is asked for, if it is.
    fn covering(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<Vec<(TypeUrl, Interest)>> {
        let named = [Some(name.clone()), name.glob_parent()].into_iter().flatten().map(Interest::Name);
        let asks = named.chain([Interest::Wildcard]).map(|interest| (type_url.clone(), interest));
        let covering: Vec<_> = asks.filter(|ask| self.asks.contains(ask)).collect();
        (!covering.is_empty()).then_some(covering)
    }

    fn told(&self, Compared { same, unanswered, found }: Compared) -> ScopeDrift {
        let more_drifts = found.len().saturating_sub(PAGE);
        let told = |((type_url, name), (served, at_origin)): ((TypeUrl, ResourceName), _)| {
            let [served, at_origin] =
                [served, at_origin].map(|version: Option<Version>| version.map(|v| v.to_string()));
            Drift { type_url: type_url.to_string(), name: name.to_string(), served, at_origin }
        };
        ScopeDrift {
            scope: self.scope.key.to_string(),
            same,
            unanswered,
            trouble: lock(&self.heard).trouble.clone(),
            drifts: found.into_iter().take(PAGE).map(told).collect(),
            more_drifts,
        }
    }
}

impl Heard {
    fn said(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<&Said> {
        self.names.get(type_url)?.get(name)
    }
}
