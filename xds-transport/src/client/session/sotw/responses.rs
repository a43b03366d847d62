//! What a SotW response says of what is wanted.

use std::collections::HashSet;
use std::time::Instant;

use xdstp_cache::{Interest, ResourceError};
use xdstp_uri::ResourceName;

use super::{Named, Sotw};
use crate::client::failure;
use crate::client::intern::Intern;
use crate::client::session::incoming::{Arrived, Incoming};
use crate::client::session::verdict::Pending;
use crate::client::update::{Changed, Update, UpdateId};
use crate::response::{self, Rejected, Response};

impl Sotw {
    /// `None` when nothing is wanted: the response is acknowledged unseen.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        id: UpdateId,
        response: Response,
        intern: Option<&dyn Intern>,
    ) -> Option<Update> {
        // What fails is told anew after the first response of a stream, and a later full state repeats what is as it was.
        let recovers = !self.full_state || self.nonce.is_empty();
        self.nonce.clone_from(&response.nonce);
        self.heard = true;
        if self.named == Named::Sent {
            self.named = Named::Crossed;
        }
        if self.common.wanted.is_empty() {
            self.answer = Some(None);
            return None;
        }
        if self.full_state {
            // All there is of what is wanted came, however much of it the server saw leave.
            self.left.retain(|interest| self.common.wanted.wish(interest).is_none());
        }
        let errors = failure::read_all(response.errors);
        self.common.withhold(id, &errors);
        let mut incoming = Incoming::new(now, id, response.rejected, intern, &mut self.common);
        let unread = incoming.refused.iter().filter_map(|name| ResourceName::parse(name).ok());
        self.doubted.extend(unread.filter(|name| self.common.wanted.covers(name)));
        // What is missing may be what could not be read.
        let complete = self.full_state && incoming.update.rejected.is_empty();
        if !self.common.is_withheld(&Interest::Wildcard) && self.common.wanted.answer(&Interest::Wildcard) {
            incoming.update.answered.push(Interest::Wildcard);
        }
        // A full state repeats what did not change; other types do so on purpose (rules 66, 67).
        let resent = !self.full_state && !self.asked && response.version == self.version && !self.outgrown;
        self.asked = false;
        let mut present = HashSet::with_capacity(response.resources.len());
        incoming.received.reserve(response.resources.len());
        for resource in response.resources {
            self.take(resource, resent, recovers, &mut present, &mut incoming);
        }
        incoming.beat(&mut self.common);
        let update = &mut incoming.update;
        self.fail(errors, &present, update);
        let mut removes = !update.removed.is_empty();
        if complete {
            removes = self.miss(&present, update);
            self.complete(&present, update);
        }
        update.removed.sort_unstable();
        update.removed.dedup();
        update.version.clone_from(&response.version);
        self.common.absences.heard(now, &mut self.common.wanted);
        // It may be of what was wanted before.
        let lacks = self.crossable || !self.common.wanted.is_told() || self.common.withholds();
        let outgrown = self.full_state && lacks;
        let (nonce, version) = (Some(response.nonce), response.version);
        let pending = Pending { nonce, version, outgrown, removes, ..Pending::default() };
        Some(incoming.conclude(&mut self.common, pending))
    }

    /// One of its resources.
    fn take(
        &mut self,
        resource: response::Received,
        resent: bool,
        recovers: bool,
        present: &mut HashSet<ResourceName>,
        incoming: &mut Incoming<'_>,
    ) {
        let response::Received { name, version, frame, ttl, .. } = resource;
        if !self.common.wanted.covers(&name) || incoming.refused.contains(name.as_str()) {
            return;
        }
        let interest = Interest::Name(name.clone());
        let awaited = self.common.wanted.awaits(&name);
        self.common.wanted.answer(&interest);
        self.left.remove(&interest);
        self.failing.remove(&name);
        let (failed, doubted) = (self.common.failed.remove(&name), self.doubted.remove(&name));
        present.insert(name.clone());
        let by = incoming.update.id;
        let Some(frame) = frame else {
            incoming.update.answered.extend(self.common.answer_by(&name, by, false));
            match ttl {
                Some(ttl) => incoming.heartbeats.push(name, None, ttl),
                None => {
                    let reason = "a resource without content";
                    incoming.update.rejected.push(Rejected::new(name.as_str(), reason));
                }
            }
            return;
        };
        let Arrived { name, resource, seen } = incoming.arrive(name, frame, version, ttl, &self.common);
        let touched = seen.is_some();
        incoming.update.answered.extend(self.common.answer_by(&name, by, recovers || !touched));
        // That it does not fail any more, or lives for ever now, is news.
        let mut over = failed || ttl.is_none() && touched && self.common.held.expires(&name);
        if recovers || !touched {
            over |= self.common.end_glob_error(&name);
        }
        let update = &mut incoming.update;
        if !touched || resent || over {
            update.changed.push(Changed { name, resource, touched });
        } else if awaited || doubted {
            update.refreshed.extend(ttl.map(|ttl| (name.clone(), ttl)));
            update.repeated.push(Changed { name, resource, touched: false });
        } else {
            update.unchanged += 1;
            update.refreshed.extend(ttl.map(|ttl| (name, ttl)));
        }
    }

    /// What a full state lacks is gone. Whether it takes anything that was in use.
    ///
    /// Of other types absence says nothing: what nobody wants is dropped by unsubscribing (rule 68).
    fn miss(&mut self, present: &HashSet<ResourceName>, update: &mut Update) -> bool {
        // Only what was seen before: the response may be older than the request for the rest (rule 76).
        let held = self.common.held.iter().map(|(name, _)| name);
        let seen = held.chain(self.common.unfinished.names()).chain(&self.refused);
        let missing = seen.filter(|name| !present.contains(*name) && !self.failing.contains(*name));
        let missing = missing.filter(|name| !self.common.is_of_withheld(name));
        update.removed.extend(missing.cloned());
        let removes = update.removed.iter().any(|name| !self.refused.contains(name));
        self.refused.clear();
        removes
    }

    /// A full state that was written after something was asked for holds all of it, but for what fails for a time.
    fn complete(&mut self, present: &HashSet<ResourceName>, update: &mut Update) {
        if self.incomplete.is_empty() {
            return;
        }
        let passing = update.errors.iter().filter(|(_, error)| error.is_transient()).map(|(name, _)| name);
        let failing: HashSet<_> = passing.chain(&self.failing).map(ResourceName::as_str).collect();
        let removed: HashSet<_> = update.removed.iter().collect();
        for (interest, is_sure) in std::mem::take(&mut self.incomplete) {
            if self.common.wanted.wish(&interest).is_none() {
                continue;
            }
            let name = match &interest {
                Interest::Name(name) if !name.is_glob() => Some(name),
                _ => None,
            };
            if name.is_some_and(|name| present.contains(name) || removed.contains(name)) {
                continue;
            }
            let fails = failing.contains(interest.as_str()) || self.common.is_withheld(&interest);
            if !fails && name.is_none() && self.common.wanted.answer(&interest) {
                update.answered.push(interest.clone());
            }
            match name {
                _ if fails || !is_sure => _ = self.incomplete.insert(interest, is_sure),
                Some(name) => update.lacking.push(name.clone()),
                None => update.complete.push(interest),
            }
        }
    }

    /// TP3: an error is an answer, so it stops the timer of its name (rule 118).
    fn fail(
        &mut self,
        errors: Vec<(ResourceName, ResourceError)>,
        present: &HashSet<ResourceName>,
        update: &mut Update,
    ) {
        for (name, error) in errors {
            let interest = Interest::from(name.clone());
            let is_answer = !error.is_transient() && !self.common.is_withheld(&interest);
            let news = is_answer && self.common.wanted.answer(&interest);
            self.common.wanted.stop_timer(&interest);
            if interest.is_collection() {
                if self.common.wanted.wish(&interest).is_none() {
                    continue;
                }
                if news {
                    update.answered.push(interest.clone());
                }
            } else if !self.common.wanted.covers(&name)
                || self.common.wanted.was_left_before(&name, &error)
                || present.contains(&name)
            {
                continue;
            } else if !error.is_transient() {
                self.failing.remove(&name);
                update.removed.push(name.clone());
            } else if self.full_state {
                self.failing.insert(name.clone());
            }
            if interest != Interest::Wildcard {
                self.common.failed.insert(name.clone());
            }
            update.errors.push((name, error));
        }
    }
}
