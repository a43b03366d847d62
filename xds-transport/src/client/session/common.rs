//! What a client keeps of one type, whichever protocol it comes by.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Instant;

use xdstp_cache::{Interest, Resource, ResourceError, TypeUrl};
use xdstp_uri::ResourceName;

use crate::client::command::Verdict;
use crate::client::failure;
use crate::client::selecting::{Selecting, Variants};
use crate::client::session::absence::{Absences, Silence};
use crate::client::session::held::{Held, Received};
use crate::client::session::verdict::{Answer, Pending, Unfinished};
use crate::client::session::wanted::Wanted;
use crate::client::update::{Update, UpdateId};
use crate::frame::Frame;
use crate::response::Rejected;
use crate::types::TypeRule;

/// Of how many names it is known that they were left. Of one more, what comes is taken for something of its collection.
const MAX_LEFT: usize = 4096;

#[derive(Debug)]
pub(crate) struct Common {
    type_url: TypeUrl,
    pub(crate) legacy_wildcard: bool,
    keep_deleted: bool,
    pub(crate) silence: Silence,
    pub(crate) selecting: Option<Arc<Selecting>>,
    pub(crate) variants: Variants,
    pub(crate) wanted: Wanted,
    pub(crate) held: Held,
    /// What has an error that was told, and is not over.
    pub(crate) failed: BTreeSet<ResourceName>,
    /// Some of it, or the wildcard, has one that no response said: the next stream is asked so that it says something.
    pub(crate) failed_unsaid: bool,
    /// The wildcard and globs that this stream's origin does not send, and what said so: what it sends without them says nothing
    /// of them.
    withheld: BTreeMap<Interest, UpdateId>,
    /// Names that were left on this stream beside such: what comes of them may be an answer still, or to who leaves.
    left: BTreeSet<ResourceName>,
    pub(crate) unfinished: Unfinished,
    pub(crate) absences: Absences,
    /// The first request of this stream was sent.
    pub(crate) opened: bool,
}

impl Common {
    pub(crate) fn new(
        type_url: TypeUrl,
        rule: &TypeRule,
        keep_deleted: bool,
        silence: Silence,
        selecting: Option<Arc<Selecting>>,
    ) -> Self {
        Self {
            type_url,
            legacy_wildcard: rule.legacy_wildcard,
            keep_deleted,
            silence,
            variants: Variants::default(),
            wanted: Wanted::beside(selecting.as_ref().map_or(0, |selecting| selecting.size())),
            selecting,
            held: Held::default(),
            failed: BTreeSet::new(),
            failed_unsaid: false,
            withheld: BTreeMap::new(),
            left: BTreeSet::new(),
            unfinished: Unfinished::default(),
            absences: Absences::new(silence),
            opened: false,
        }
    }

    /// The stream is gone: what is held stays, what was said and asked does not.
    pub(crate) fn disconnected(&mut self) {
        self.opened = false;
        self.withheld.clear();
        self.left.clear();
        self.variants.forget_stream();
        self.absences.clear();
        self.wanted.forget_stream();
        self.unfinished.forget_stream();
    }

    /// What was held before there was any stream is as if one had brought it. What is wanted of it, is returned.
    pub(crate) fn hold(&mut self, resources: Vec<(ResourceName, Resource<Frame>)>) -> Vec<ResourceName> {
        let mut held = Vec::new();
        for (name, resource) in resources {
            // What a stream said counts.
            if self.held.get(&name).is_some() || self.unfinished.awaits_verdict(&name) {
                continue;
            }
            let aliases: Vec<_> = resource.value.aliases().filter(|alias| !self.wanted.is_alias(alias)).collect();
            self.wanted.claim(&name, aliases.into_iter());
            if !self.wanted.covers(&name) {
                continue;
            }
            let Received { entry, expires } = Received::new(&resource, 0);
            self.held.insert(name.clone(), entry.accepted(true), expires);
            held.push(name);
        }
        held
    }

    /// The type URL as a request names it.
    pub(crate) fn type_url(&self) -> String {
        self.type_url.as_str().into()
    }

    /// What a response says, or else time.
    pub(crate) fn update(&self, id: UpdateId) -> Update {
        Update::new(id, self.type_url.clone())
    }

    /// These errors came: what they withhold has no answer, and silence about it means nothing.
    pub(crate) fn withhold(&mut self, by: UpdateId, errors: &[(ResourceName, ResourceError)]) {
        for (name, error) in errors {
            let Some(collection) = failure::withheld(name, error) else {
                self.withheld.remove(&Interest::from(name.clone()));
                continue;
            };
            // What is not asked for yet, something that was given up was refused for.
            if self.wanted.is_asked(&collection) {
                self.wanted.take_back_answer(&collection);
                self.withheld.insert(collection, by);
            }
        }
    }

    pub(crate) fn is_withheld(&self, collection: &Interest) -> bool {
        self.withheld.contains_key(collection)
    }

    /// It is sent.
    pub(crate) fn end_withholding(&mut self, collection: &Interest) {
        self.withheld.remove(collection);
        if !self.withholds() {
            self.left.clear();
        }
    }

    /// It is not wanted any more.
    pub(crate) fn leave(&mut self, interest: &Interest) {
        self.end_withholding(interest);
        if let Interest::Name(name) = interest
            && self.wanted.leaving().contains(interest)
            && self.is_of_withheld(name)
        {
            if self.left.len() >= MAX_LEFT {
                self.left.pop_first();
            }
            self.left.insert(name.clone());
        }
    }

    /// Whether nothing but what is withheld covers a name: that it is missing says nothing, and that it comes, all.
    pub(crate) fn is_of_withheld(&self, name: &ResourceName) -> bool {
        !self.withheld.is_empty() && !self.wanted.covers_without(name, |of| self.withheld.contains_key(of))
    }

    pub(crate) fn withholds(&self) -> bool {
        !self.withheld.is_empty()
    }

    /// A resource came with a response: the collection that this answers, if that is news on this stream.
    pub(crate) fn answer_by(&mut self, name: &ResourceName, by: UpdateId, is_news: bool) -> Option<Interest> {
        if !self.withholds() {
            return self.wanted.answer_parent(name);
        }
        let is_news = is_news && !self.left.remove(name);
        if self.is_of_withheld(name) {
            let glob = name.glob_parent().map(Interest::Name).filter(|glob| self.is_withheld(glob));
            let collection = glob.unwrap_or(Interest::Wildcard);
            // The error is later than what stands beside it.
            let ends = is_news && self.withheld.get(&collection).is_some_and(|refused_by| *refused_by != by);
            if ends {
                self.end_withholding(&collection);
            }
            return (ends && self.wanted.answer(&collection)).then_some(collection);
        }
        if self.is_in_withheld_glob(name) { None } else { self.wanted.answer_parent(name) }
    }

    /// The error of the glob that a resource is a member of is over, if it came for the glob. Whether there was one.
    pub(crate) fn end_glob_error(&mut self, name: &ResourceName) -> bool {
        if self.failed.is_empty() || self.is_in_withheld_glob(name) {
            return false;
        }
        name.glob_parent().is_some_and(|glob| self.failed.remove(&glob))
    }

    fn is_in_withheld_glob(&self, name: &ResourceName) -> bool {
        self.withholds() && name.glob_parent().is_some_and(|glob| self.is_withheld(&Interest::Name(glob)))
    }

    /// What is not wanted any more has no variant.
    pub(crate) fn forget_variants(&mut self) {
        let wanted = &self.wanted;
        self.variants.retain(|name| wanted.covers(name));
    }

    /// The names of what could not be read. That is an answer, too (rule 75).
    pub(crate) fn answer_refused(&mut self, rejected: &[Rejected]) -> HashSet<String> {
        let refused: HashSet<_> = rejected.iter().map(|rejected| rejected.name.clone()).collect();
        for name in refused.iter().filter_map(|name| ResourceName::parse(name).ok()) {
            self.wanted.answer(&name.into());
        }
        refused
    }

    /// A response was read: what it says is gone is not held, and what it brought is once there is a verdict.
    pub(crate) fn conclude(&mut self, update: &mut Update, pending: Pending) {
        if self.withholds() {
            update.refused = self.withheld_of(update);
        }
        self.failed_unsaid &= !self.failed.is_empty();
        self.held.delete(self.keep_deleted, &mut update.removed, &mut update.kept);
        self.unfinished.forget(&update.removed);
        self.unfinished.insert(update.id, Pending { rejected: update.rejected.clone(), ..pending });
    }

    /// What is withheld of the collections that something came of: there may be many others.
    fn withheld_of(&self, update: &Update) -> BTreeSet<Interest> {
        let came = update.changed.iter().chain(&update.repeated);
        let globs = came.filter_map(|changed| changed.name.glob_parent()).map(Interest::Name);
        globs.chain([Interest::Wildcard]).filter(|collection| self.is_withheld(collection)).collect()
    }

    /// There is a verdict on an update, and with it an answer.
    pub(crate) fn finish(&mut self, id: UpdateId, verdict: Verdict) -> Option<Answer> {
        let answer = self.unfinished.finish(id, verdict, &self.wanted, &mut self.held);
        self.held.resume_expiries();
        answer
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        [self.absences.next(), self.held.next_expiry()].into_iter().flatten().min()
    }

    /// Forgets the resources whose time ran out.
    pub(crate) fn expire(&mut self, now: Instant, update: &mut Update) {
        let Self { held, unfinished, .. } = self;
        let over = || held.pop_expired(now, |name| unfinished.awaits_verdict(name));
        update.removed.extend(std::iter::from_fn(over));
    }
}
