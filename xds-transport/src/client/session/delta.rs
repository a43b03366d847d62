//! One type on one delta stream, the client's side.

mod opening;
mod requests;
mod responses;
mod wildcards;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::ResourceName;

use crate::client::command::Verdict;
use crate::client::selecting::Selecting;
use crate::client::session::absence::Silence;
use crate::client::session::common::Common;
use crate::client::session::delta::wildcards::Wildcards;
use crate::client::update::{Update, UpdateId};
use crate::types::TypeRule;
use crate::wire::Status;

/// What is delta's own of a session.
#[derive(Debug)]
pub(crate) struct Delta {
    pub(crate) common: Common,
    /// What others hold, and the first request of a stream asks the fate of.
    undecided: BTreeSet<ResourceName>,
    /// Members of collections that are held and the first request had no room for: asked for by their names, which has
    /// the origin say what became of them. Only a first request may tell versions (rule 85).
    unasked: BTreeSet<ResourceName>,
    /// Those of them that the origin was asked for on this stream.
    asked: BTreeSet<ResourceName>,
    wildcards: Wildcards,
    acks: VecDeque<Ack>,
}

#[derive(Debug)]
struct Ack {
    nonce: String,
    error: Option<Status>,
}

impl Delta {
    pub(crate) fn new(
        type_url: TypeUrl,
        rule: &TypeRule,
        keep_deleted: bool,
        silence: Silence,
        selecting: Option<Arc<Selecting>>,
    ) -> Self {
        Self {
            common: Common::new(type_url, rule, keep_deleted, silence, selecting),
            undecided: BTreeSet::new(),
            unasked: BTreeSet::new(),
            asked: BTreeSet::new(),
            wildcards: Wildcards::default(),
            acks: VecDeque::new(),
        }
    }

    pub(crate) fn has_answer(&self) -> bool {
        !self.acks.is_empty()
    }

    pub(crate) fn disconnected(&mut self) {
        self.common.disconnected();
        self.wildcards = Wildcards::default();
        self.acks.clear();
        self.undecided.clear();
        self.unasked.clear();
        self.asked.clear();
    }

    pub(crate) fn subscribe(&mut self, interest: Interest) {
        self.common.wanted.subscribe(interest);
    }

    /// Others hold these.
    pub(crate) fn undecided(&mut self, names: Vec<ResourceName>) {
        if !self.common.opened {
            self.undecided.extend(names);
        }
    }

    /// These are held, and these collections were answered: the origin may say nothing of them, if it is told their versions.
    /// Where it cannot be any more, it is asked for each; a name that is wanted itself, in any case.
    pub(crate) fn held(&mut self, held: Vec<ResourceName>, collections: &[Interest]) {
        collections.iter().for_each(|collection| self.common.wanted.was_answered(collection));
        held.iter().for_each(|name| self.common.wanted.name_was_answered(name));
        if self.common.opened {
            let is_member = |name: &ResourceName| self.common.wanted.wish(&Interest::Name(name.clone())).is_none();
            self.unasked.extend(held.into_iter().filter(is_member));
        }
    }

    pub(crate) fn unsubscribe(&mut self, interest: &Interest) {
        if !self.common.wanted.unsubscribe(interest) {
            return;
        }
        self.common.leave(interest);
        self.common.failed.retain(|name| self.common.wanted.keeps_error(name));
        self.common.forget_variants();
        self.common.unfinished.forget_unwanted(&self.common.wanted);
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                self.asked.remove(name);
                let stood_for = self.common.wanted.forget_alias(name);
                for name in stood_for.iter().chain([name]) {
                    if !self.common.wanted.covers(name) {
                        self.common.held.remove(name);
                        self.unasked.remove(name);
                        self.common.wanted.leave(self.asked.take(name));
                    }
                }
            }
            _ => {
                self.common.held.retain(|name| self.common.wanted.covers(name));
                self.unasked.retain(|name| self.common.wanted.covers(name));
                let (asked, left): (_, BTreeSet<_>) =
                    std::mem::take(&mut self.asked).into_iter().partition(|name| self.common.wanted.covers(name));
                self.asked = asked;
                self.common.wanted.leave(left);
            }
        }
    }

    pub(crate) fn finish(&mut self, id: UpdateId, verdict: Verdict) {
        let answer = self.common.finish(id, verdict);
        if let Some((nonce, error)) = answer.and_then(|answer| Some((answer.nonce?, answer.error))) {
            self.acks.push_back(Ack { nonce, error });
        }
    }

    /// Resources whose time ran out, and names that were not answered in time: there are servers that say nothing of
    /// names they do not have.
    pub(crate) fn handle_timeout(&mut self, now: Instant, id: UpdateId) -> Option<Update> {
        let mut update = self.common.update(id);
        self.common.expire(now, &mut update);
        while let Some(interest) = self.common.absences.pop(now, &self.common.wanted) {
            if let Interest::Name(name) = interest
                && !self.common.unfinished.awaits_verdict(&name)
                && self.common.wanted.answer(&Interest::Name(name.clone()))
            {
                update.missing.push(name);
            }
        }
        (!update.removed.is_empty() || !update.missing.is_empty()).then_some(update)
    }
}
