//! A scope, and what its origin says of it on a stream of its own.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use xds_transport::Frame;
use xdstp_cache::{Interest, Stored, TypeUrl};
use xdstp_client::federation::{Dialed, Scope};

use super::compared::Compared;
use super::fresh::Fresh;
use super::heard::{Ask, Heard, Key, Room, Said, Side, name_of};
use super::{LONGEST, QUIET};
use crate::api::{ScopeDrift, is_type};
use crate::lock::lock;

pub(super) struct Asked {
    scope: Arc<Scope>,
    asks: Arc<BTreeSet<Ask>>,
    heard: Arc<Mutex<Heard>>,
    stream: Option<Box<dyn Dialed>>,
}

impl Asked {
    /// What is kept of what is said has a part of the `room` that it makes larger.
    pub(super) fn new(scope: Arc<Scope>, type_url: Option<&str>, room: &Arc<Room>) -> Self {
        let is_meant = |of: &TypeUrl| type_url.is_none_or(|end| is_type(of.as_str(), end));
        let asks: BTreeSet<_> = scope.subscriptions().into_iter().filter(|(of, _)| is_meant(of)).collect();
        asks.iter().filter_map(name_of).for_each(|(_, name)| room.grow_by(&name, None));
        let picked = |stored: Stored<'_, Frame>| {
            room.grow_by(stored.name, stored.resource.map(|resource| &resource.version));
        };
        scope.visit_stored(picked, |()| {});
        let selector = scope.key.selector().map(|selector| (**selector).clone()).unwrap_or_default();
        let (asks, heard) = (Arc::new(asks), Arc::new(Mutex::new(Heard::new(room.clone()))));
        let supply = scope.supply().filter(|_| !asks.is_empty());
        let fresh = Fresh::new(asks.clone(), selector, heard.clone());
        let stream = supply.and_then(|supply| supply.dial_beside(Box::new(fresh)));
        stream.iter().for_each(|stream| stream.nudge());
        Self { scope, asks, heard, stream }
    }

    /// Whether there is no more to be waited for.
    pub(super) fn is_over(&self, now: Instant, began: Instant) -> bool {
        let heard = lock(&self.heard);
        let since = |at: Instant| now.saturating_duration_since(at);
        self.stream.is_none()
            || heard.is_full()
            || since(began) >= LONGEST
            || heard.at.is_some_and(|at| since(at) >= QUIET)
            || self.asks.iter().all(|ask| heard.is_settled(ask))
    }

    /// What is heard is locked for one name at a time, or a few: the stream goes on.
    pub(super) fn compare(&self) -> Compared {
        let mut compared = Compared::default();
        let by_alias = lock(&self.heard).asked_for_by_alias();
        let mut stored = BTreeSet::new();
        let picked =
            |stored: Stored<'_, Frame>| ((stored.type_url.clone(), stored.name.clone()), stored.resource.map(Side::of));
        self.scope.visit_stored(picked, |(key, served)| {
            stored.insert(key.clone());
            self.compare_one(key, served, &mut compared);
        });
        let mut behind = None;
        loop {
            let (there, last) = lock(&self.heard).there_behind(behind.as_ref());
            if last.is_none() {
                break;
            }
            behind = last;
            for (key, side) in there {
                if !stored.contains(&key) && (self.brings(&key) || by_alias.contains(&key)) {
                    compared.add(key, None, Some(side));
                }
            }
        }
        let heard = lock(&self.heard);
        let is_silent = |ask: &&Ask| {
            let is_found = || name_of(ask).is_some_and(|key| compared.has_found_of(&key));
            !heard.is_known(ask) && !is_found()
        };
        let silent = self.asks.iter().filter(is_silent).count();
        compared.unanswered += silent;
        compared
    }

    /// A name that the relay knows of.
    fn compare_one(&self, key: Key, served: Option<Side>, compared: &mut Compared) {
        let covered_by = self.covering(&key);
        let is_asked_by_name = || self.asks.contains(&(key.0.clone(), Interest::Name(key.1.clone())));
        let heard = lock(&self.heard);
        // None where nothing is known of what the origin has: silence is no answer.
        let at_origin = match heard.said(&key) {
            Some(Said::There(side)) => Some(Some(side.clone())),
            // It is asked for by no name of its own, and by an alias there is no word of what it does not stand for.
            _ if covered_by.is_empty() => return,
            Some(Said::Gone) => Some(None),
            Some(Said::Unclear) => served.is_none().then_some(None),
            None => {
                let is_lacking = served.is_some() && covered_by.iter().any(|ask| heard.is_complete(ask));
                if !is_lacking && is_asked_by_name() {
                    // It is counted as something that is asked for.
                    return;
                }
                is_lacking.then_some(None)
            }
        };
        drop(heard);
        match at_origin {
            None => compared.unanswered += usize::from(served.is_some()),
            Some(at_origin) => compared.add(key, served, at_origin),
        }
    }

    /// Whether a name is asked for, and nothing is known of what the origin has.
    pub(super) fn is_unanswered(&self, key: &Key) -> bool {
        let covered_by = self.covering(key);
        let heard = lock(&self.heard);
        match heard.said(key) {
            Some(Said::There(_) | Said::Gone) => false,
            Some(Said::Unclear) => true,
            None => !covered_by.is_empty() && !covered_by.iter().any(|ask| heard.is_complete(ask)),
        }
    }

    /// As what a name is asked for, if it is.
    fn covering(&self, (type_url, name): &Key) -> Vec<Ask> {
        let named = [Some(name.clone()), name.glob_parent()].into_iter().flatten().map(Interest::Name);
        let asks = named.chain([Interest::Wildcard]).map(|interest| (type_url.clone(), interest));
        asks.filter(|ask| self.asks.contains(ask)).collect()
    }

    /// Whether the scope has what an origin says under a name. With everything an origin may send what is not this scope's.
    fn brings(&self, key: &Key) -> bool {
        self.covering(key).iter().any(|(_, interest)| key.1.is_opaque() || *interest != Interest::Wildcard)
    }

    pub(super) fn told(&self, compared: Compared) -> ScopeDrift {
        let none = "there is no other stream to it than those that there are";
        let trouble = match &self.stream {
            _ if self.asks.is_empty() => None,
            None => Some(none.to_owned()),
            Some(_) => lock(&self.heard).trouble(),
        };
        compared.told(self.scope.key.to_string(), trouble)
    }
}
