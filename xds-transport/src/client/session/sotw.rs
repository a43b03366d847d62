//! One type on one SotW stream, the client's side.

mod requests;
mod responses;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::ResourceName;

use crate::client::command::Verdict;
use crate::client::selecting::Selecting;
use crate::client::session::absence::Silence;
use crate::client::session::common::Common;
use crate::client::update::{Update, UpdateId};
use crate::types::TypeRule;
use crate::wire::Status;

/// What is SotW's own of a session.
#[derive(Debug)]
pub(crate) struct Sotw {
    pub(crate) common: Common,
    full_state: bool,
    /// Of a full state: what was seen, and is not held because it could not be used.
    refused: BTreeSet<ResourceName>,
    /// Of a full state: what this stream's origin cannot send for now. It says so once (rule 118), and is missing from
    /// what comes after.
    failing: BTreeSet<ResourceName>,
    /// The last accepted version. It survives the stream (rule 15).
    version: String,
    /// That version does not say what is held: something else is wanted, or less is held.
    outgrown: bool,
    /// Of what it says is held something is not in use any more.
    dropped: bool,
    /// The newest nonce of this stream (rule 14).
    nonce: String,
    named: Named,
    /// What came of these last was refused, or another server gave it: that they come as they are held is news.
    doubted: BTreeSet<ResourceName>,
    /// What left in requests that the server may have dropped: until it has surely read that, or sent the resource.
    left: BTreeSet<Interest>,
    /// The names of the last request, encoded.
    names: Bytes,
    /// Something was asked for since the last response.
    asked: bool,
    /// Of a full state: what was asked for on this stream, and of which no response surely held all there is; and whether the next
    /// one surely does, because what asked for it is read by then.
    incomplete: BTreeMap<Interest, bool>,
    /// A response came on this stream.
    heard: bool,
    /// The last request that asked for something may not have been read when the next response is written.
    crossable: bool,
    /// The newest response waits to be answered: with an error, if there is one.
    answer: Option<Option<Status>>,
}

/// Whether names were sent on this stream: an empty list asks for everything until the server has read some (rule 40).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Never,
    Sent,
    /// They were, and a response crossed them: a server drops what does not answer its newest response (rule 16).
    Crossed,
    /// They were, in a request that no response can cross.
    Read,
}

impl Sotw {
    pub(crate) fn new(
        type_url: TypeUrl,
        rule: &TypeRule,
        keep_deleted: bool,
        silence: Silence,
        selecting: Option<Arc<Selecting>>,
    ) -> Self {
        Self {
            common: Common::new(type_url, rule, keep_deleted, silence, selecting),
            full_state: rule.full_state_in_sotw,
            refused: BTreeSet::new(),
            failing: BTreeSet::new(),
            version: String::new(),
            outgrown: false,
            dropped: false,
            nonce: String::new(),
            named: Named::Never,
            doubted: BTreeSet::new(),
            left: BTreeSet::new(),
            names: Bytes::new(),
            asked: false,
            incomplete: BTreeMap::new(),
            heard: false,
            crossable: false,
            answer: None,
        }
    }

    /// Whether a request with so much room for names may name this too.
    pub(crate) fn has_room(&self, interest: &Interest, room: usize) -> bool {
        self.common.wanted.wish(interest).is_some()
            || self.common.wanted.size() + self.common.wanted.size_of(interest) <= room
    }

    pub(crate) fn has_answer(&self) -> bool {
        self.answer.is_some()
    }

    pub(crate) fn disconnected(&mut self) {
        self.common.disconnected();
        self.named = Named::Never;
        self.left.clear();
        self.asked = false;
        self.incomplete.clear();
        self.heard = false;
        self.nonce.clear();
        self.answer = None;
        self.failing.clear();
    }

    pub(crate) fn subscribe(&mut self, interest: Interest) {
        if interest == Interest::Wildcard && self.common.wanted.wish(&interest).is_none() {
            // It is of what was wanted so far: whoever asks for everything at a version may be sent nothing (rule 87).
            self.outgrown = true;
            self.common.unfinished.outgrow();
        }
        self.common.wanted.subscribe(interest);
    }

    pub(crate) fn unsubscribe(&mut self, interest: &Interest) {
        if !self.common.wanted.unsubscribe(interest) {
            return;
        }
        self.common.leave(interest);
        self.common.unfinished.forget_unwanted(&self.common.wanted);
        self.common.unfinished.outgrow();
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                if self.common.wanted.covers(name) {
                    // Where the wildcard ends, only the origin knows: it may not cover this.
                    self.outgrown = true;
                } else {
                    self.common.held.remove(name);
                }
            }
            _ => {
                self.common.held.retain(|name| self.common.wanted.covers(name));
                // Whoever asks for everything at a version it has may be sent nothing (rule 87).
                self.outgrown = true;
            }
        }
        self.common.forget_variants();
        self.refused.retain(|name| self.common.wanted.covers(name));
        self.doubted.retain(|name| self.common.wanted.covers(name));
        self.failing.retain(|name| self.common.wanted.covers(name));
        self.common.failed.retain(|name| self.common.wanted.keeps_error(name));
        if self.common.wanted.is_empty() {
            self.version.clear();
        }
    }

    /// Whether what is held from before can be told from what a response on its way does not have.
    pub(crate) fn may_hold(&self) -> bool {
        !self.full_state || !self.common.opened
    }

    pub(crate) fn forget(&mut self) {
        self.version.clear();
    }

    /// That something comes as it is held is news: nobody that is asked has said so yet.
    pub(crate) fn doubt_held(&mut self) {
        self.doubted.extend(self.common.held.iter().map(|(name, _)| name.clone()));
    }

    /// These are not in use any more.
    pub(crate) fn drop_held(&mut self, names: &[ResourceName]) {
        self.dropped |= names.iter().any(|name| self.common.held.get(name).is_some());
    }

    pub(crate) fn finish(&mut self, id: UpdateId, verdict: Verdict) {
        if let Verdict::Reject { reasons } = &verdict {
            let names = reasons.iter().filter_map(|rejected| ResourceName::parse(&rejected.name).ok());
            let names = names.filter(|name| self.common.wanted.covers(name));
            self.doubted.extend(names.clone());
            if self.full_state {
                self.refused.extend(names);
            }
        }
        let Some(answer) = self.common.finish(id, verdict) else { return };
        // A NACK goes with the version before (rule 26).
        if let Some(version) = answer.version {
            self.version = version;
            (self.outgrown, self.dropped) = (answer.outgrown, false);
        }
        // An older nonce is stale: the server waits for the newest only (rule 16).
        if answer.nonce.is_some_and(|nonce| nonce == self.nonce) {
            self.answer = Some(answer.error);
        }
    }

    /// Resources whose time ran out, and names and globs that were not answered in time: told once, and a late answer
    /// counts (rule 138). Of types whose responses are no full state an empty glob has no other sign (rule 102).
    pub(crate) fn handle_timeout(&mut self, now: Instant, id: UpdateId) -> Option<Update> {
        let mut update = self.common.update(id);
        self.common.expire(now, &mut update);
        // A server that is told this version may think that we have it (rule 87).
        self.outgrown |= !update.removed.is_empty();
        let some_due = self.common.absences.next().is_some_and(|due| due <= now);
        let waiting: HashSet<_> = self.common.unfinished.names().filter(|_| some_due).cloned().collect();
        while let Some(interest) = self.common.absences.pop(now, &self.common.wanted) {
            if self.is_cached(&interest)
                || matches!(&interest, Interest::Name(name) if waiting.contains(name))
                || !self.common.wanted.answer(&interest)
            {
                continue;
            }
            match interest {
                Interest::Name(name) if !name.is_glob() => update.missing.push(name),
                collection => update.answered.push(collection),
            }
        }
        let news = !update.removed.is_empty() || !update.missing.is_empty() || !update.answered.is_empty();
        news.then_some(update)
    }

    /// Silence says nothing of what came before.
    fn is_cached(&self, interest: &Interest) -> bool {
        match interest {
            Interest::Name(name) if !name.is_glob() => self.common.held.get(name).is_some(),
            collection => self.common.wanted.wish(collection).is_some_and(|wish| wish.known),
        }
    }
}
