//! What a delta response says of what is wanted.

use std::collections::HashSet;
use std::time::Instant;

use xdstp_cache::{Interest, ResourceError};
use xdstp_uri::ResourceName;

use super::{Ack, Delta};
use crate::client::error::ProtocolError;
use crate::client::failure;
use crate::client::intern::Intern;
use crate::client::session::common::Common;
use crate::client::session::held::Received;
use crate::client::session::incoming::{Arrived, Incoming};
use crate::client::session::verdict::Pending;
use crate::client::update::{Changed, Update, UpdateId};
use crate::frame::Frame;
use crate::response::{self, Response};

/// Responses that wait for room to be acknowledged. More than that only happens with a server that
/// writes without ever reading.
const MAX_ACKS: usize = 4096;

impl Delta {
    /// `None` when nothing is wanted: the response is acknowledged unseen.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        id: UpdateId,
        response: Response,
        intern: Option<&dyn Intern>,
    ) -> Result<Option<Update>, ProtocolError> {
        if self.acks.len() >= MAX_ACKS {
            return Err(ProtocolError::Unread);
        }
        let empty = response.resources.is_empty()
            && response.removed.is_empty()
            && response.errors.is_empty()
            && response.rejected.is_empty();
        let errors = failure::read_all(response.errors);
        // The error of the wildcard is an answer to who asked for it, as an empty response is.
        let refuses = errors.iter().any(|(name, _)| name.as_str() == Interest::Wildcard.as_str());
        if refuses {
            self.wildcards.refused(!response.resources.is_empty());
        }
        let ends_wildcard = empty && self.wildcards.end();
        if self.common.wanted.is_empty() {
            self.acks.push_back(Ack { nonce: response.nonce, error: None });
            return Ok(None);
        }
        self.common.withhold(id, &errors);
        if ends_wildcard {
            self.common.end_withholding(&Interest::Wildcard);
        }
        let mut incoming = Incoming::new(now, id, response.rejected, intern, &mut self.common);
        let update = &mut incoming.update;
        update.version = response.version;
        if !self.common.is_withheld(&Interest::Wildcard) && self.common.wanted.answer(&Interest::Wildcard) {
            self.common.failed_unsaid = false;
            update.answered.push(Interest::Wildcard);
        }
        if ends_wildcard && self.common.wanted.wish(&Interest::Wildcard).is_some() {
            // Rule 86: there is nothing, or nothing but what the origin was told that we have.
            update.complete.push(Interest::Wildcard);
        }
        incoming.received.reserve(response.resources.len());
        for resource in response.resources {
            self.take(resource, &mut incoming);
        }
        incoming.beat(&mut self.common);
        self.remove(response.removed, &errors, &mut incoming);
        self.fail(errors, &incoming.received, &mut incoming.update);
        let pending = Pending { nonce: Some(response.nonce), ..Pending::default() };
        Ok(Some(incoming.conclude(&mut self.common, pending)))
    }

    /// One of its resources.
    fn take(&mut self, resource: response::Received, incoming: &mut Incoming<'_>) {
        let response::Received { name, version, frame, ttl, .. } = resource;
        if incoming.refused.contains(name.as_str()) {
            return;
        }
        if let Some(frame) = &frame {
            self.claim(&name, frame, &mut incoming.update);
        }
        // It was sent for what was left before. A collection that is asked for next is sent anew (rule 48), and says nothing of
        // what is gone by then; a name has an answer in any case (rule 70).
        let Common { wanted, held, unfinished, .. } = &self.common;
        if wanted.is_asked_for_later(&name) && held.get(&name).is_none() && !unfinished.awaits_verdict(&name) {
            return;
        }
        self.common.wanted.answer_name(&name);
        if !self.common.wanted.hears_errors(&name) {
            if self.common.wanted.wish(&Interest::Wildcard).is_none() {
                self.drop_unwanted([name], &mut incoming.update);
                return;
            }
            self.wildcards.answered();
        }
        // What was asked for by itself says nothing of a collection that is refused, nor does that something lives on.
        let is_news = frame.is_some() && !self.asked.contains(&name);
        incoming.update.answered.extend(self.common.answer_by(&name, incoming.update.id, is_news));
        let Some(frame) = frame else {
            match ttl {
                Some(ttl) => incoming.heartbeats.push(name, Some(version.unwrap_or_else(|| "".into())), ttl),
                // An alias that stands for nothing (rule 106).
                None => self.gone(name, &mut incoming.update),
            }
            return;
        };
        self.common.failed.remove(&name);
        self.common.end_glob_error(&name);
        let Arrived { name, resource, seen } = incoming.arrive(name, frame, version, ttl, &self.common);
        let update = &mut incoming.update;
        if let Some(seen) = seen {
            self.common.held.set_seen(&name, incoming.requests);
            if self.common.wanted.asked_since(&name, seen) {
                update.refreshed.extend(ttl.map(|ttl| (name.clone(), ttl)));
                update.repeated.push(Changed { name, resource, touched: false });
                return;
            }
        }
        update.changed.push(Changed { name, resource, touched: seen.is_some() });
    }

    /// What it says is gone. A glob that is named so beside an error is for clients that know no errors (rule 117).
    fn remove(
        &mut self,
        removed: Vec<ResourceName>,
        errors: &[(ResourceName, ResourceError)],
        incoming: &mut Incoming<'_>,
    ) {
        let Incoming { update, received, refused, .. } = incoming;
        if !update.removed.is_empty() {
            // What lost an alias to another resource may be wanted by one that it brought itself.
            let came: HashSet<_> = received.iter().map(|(name, _)| name).collect();
            update.removed.retain(|name| !came.contains(name));
        }
        for name in removed {
            if name.is_glob() {
                let is_withheld =
                    errors.iter().any(|(of, error)| *of == name && failure::withheld(of, error).is_some());
                if !is_withheld {
                    self.empty_glob(name, update);
                }
            } else if !refused.contains(name.as_str()) && self.common.wanted.covers(&name) {
                self.common.wanted.answer_name(&name);
                self.common.failed.remove(&name);
                self.gone(name, update);
            }
        }
    }

    /// Rule 105: a resource is wanted by its aliases too, and an alias is no resource.
    fn claim(&mut self, name: &ResourceName, frame: &Frame, update: &mut Update) {
        let robbed = self.common.wanted.claim(name, frame.aliases());
        self.drop_unwanted(robbed, update);
        for alias in self.common.wanted.aliases(name) {
            if self.common.held.get(alias).is_some() {
                self.common.held.remove(alias);
                update.removed.push(alias.clone());
            }
        }
    }

    fn gone(&mut self, name: ResourceName, update: &mut Update) {
        let stood_for = self.common.wanted.gone(&name);
        update.removed.push(name);
        self.drop_unwanted(stood_for, update);
    }

    /// What is not known by any wanted name any more.
    fn drop_unwanted(&mut self, names: impl IntoIterator<Item = ResourceName>, update: &mut Update) {
        for name in names {
            if self.common.wanted.covers(&name) {
                continue;
            }
            self.common.unfinished.forget_unwanted(&self.common.wanted);
            if self.common.held.get(&name).is_some() {
                self.common.held.remove(&name);
                update.removed.push(name);
            }
        }
    }

    /// TP3. For clients that ignore errors, what has one is named among the removed too (rule 117): the error counts.
    fn fail(
        &mut self,
        errors: Vec<(ResourceName, ResourceError)>,
        received: &[(ResourceName, Received)],
        update: &mut Update,
    ) {
        if errors.is_empty() {
            return;
        }
        let mut said: HashSet<_> = received.iter().map(|(name, _)| name.clone()).collect();
        said.extend(update.removed.iter().cloned());
        for (name, error) in errors {
            let interest = Interest::from(name.clone());
            self.common.wanted.stop_timer(&interest);
            if interest.is_collection() {
                if self.common.wanted.wish(&interest).is_none() {
                    continue;
                }
                if failure::withheld(&name, &error).is_none() {
                    self.empty_glob(name.clone(), update);
                }
            } else if !self.common.wanted.covers(&name) || self.common.wanted.was_left_before(&name, &error) {
                continue;
            } else if error.is_transient() {
                update.removed.retain(|other| *other != name);
            } else if said.insert(name.clone()) {
                update.removed.push(name.clone());
            }
            if interest != Interest::Wildcard {
                self.common.failed.insert(name.clone());
            }
            update.errors.push((name, error));
        }
    }

    /// The glob's own URL among the removed says that it has no members (rule 99).
    fn empty_glob(&mut self, glob: ResourceName, update: &mut Update) {
        let interest = Interest::Name(glob);
        if self.common.wanted.wish(&interest).is_none() {
            return;
        }
        self.common.wanted.answer(&interest);
        let Interest::Name(glob) = &interest else { return };
        self.common.failed.remove(glob);
        self.common.end_withholding(&interest);
        // What the same response sends, as new or as it was, is there whatever it says of the glob.
        let sent = update.changed.iter().chain(&update.repeated).map(|changed| &changed.name);
        let sent: HashSet<_> = sent.chain(update.refreshed.iter().map(|(name, _)| name)).collect();
        let gone =
            self.common.held.iter().map(|(name, _)| name).filter(|name| {
                name.answers(glob) && !sent.contains(name) && !self.common.wanted.covers_otherwise(name)
            });
        let mut gone: Vec<_> = gone.cloned().collect();
        gone.sort_unstable();
        update.removed.extend(gone);
        update.complete.push(interest.clone());
        if !update.answered.contains(&interest) {
            update.answered.push(interest);
        }
    }
}
