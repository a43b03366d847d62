//! A scope whose subscribers are the watches of one program.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Waker;

use xds_transport::client::Command;
use xds_transport::{Frame, Rejected};
use xdstp_cache::{
    Cache, Cause, Failed, Interest, Pull, Removals, Resource, ResourceError, Subscribed, SubscriberId, TypeUrl,
};
use xdstp_uri::ResourceName;

use super::hearing::{Heard, News, Shown};
use super::{Scope, State};
use crate::federation::changes::Changes;
#[cfg(test)]
use crate::federation::faults::{Fault, planted, planted_from_the_second};
use crate::federation::states::{Entry, Happens, Hears, Rules};
use crate::federation::terms::{ServerTerms, Trouble};

impl Scope {
    /// Whether what it is for is one program.
    pub(crate) fn is_watched(&self) -> bool {
        self.terms.is_some()
    }

    /// A subscriber of its own for one name or collection.
    pub(crate) fn watch(&self, type_url: &TypeUrl, interest: &Interest) -> SubscriberId {
        let mut state = self.lock();
        state.rests_since = None;
        let id = state.cache.open(type_url);
        let first = state.cache.subscribe(id, interest) == Subscribed::First;
        let nudge = first && state.want((type_url.clone(), interest.clone()));
        drop(state);
        self.nudge(nudge);
        id
    }

    /// The watch is over. Whether it was the last.
    pub(crate) fn unwatch(&self, type_url: &TypeUrl, id: SubscriberId) -> bool {
        self.close(type_url, id);
        self.subscriber_count() == 0
    }

    /// What holds of the server that is waited for.
    pub(crate) fn terms(&self) -> ServerTerms {
        self.terms_in(&self.lock())
    }

    /// What a watch has not heard, as it is now; if nothing, the waker is told when there is.
    pub(crate) fn next(
        &self,
        type_url: &TypeUrl,
        interest: &Interest,
        id: SubscriberId,
        heard: &mut Heard,
        waker: &Waker,
    ) -> Option<News> {
        let mut state = self.lock();
        let rules = self.terms_in(&state).rules;
        let back = state.come_back(type_url, interest, id, heard, rules);
        let news = back.or_else(|| state.pull_one(id, heard));
        let news = news.or_else(|| state.look_around(type_url, interest, heard, rules));
        let before = if news.is_none() { state.wakes(id, waker) } else { None };
        drop(state);
        // Not under the lock: it may be all that a task is held by, which may hold a watch.
        drop(before);
        news
    }

    /// What is known of a name.
    pub(crate) fn entry(&self, type_url: &TypeUrl, name: &ResourceName) -> Entry {
        let state = self.lock();
        entry(&state.cache, type_url, name, self.terms_in(&state).rules)
    }

    /// The resources that something is wrong with.
    pub(crate) fn failing(&self) -> Vec<(TypeUrl, ResourceName)> {
        let state = self.lock();
        state.cache.errors().map(|(type_url, name, _)| (type_url.clone(), name.clone())).collect()
    }

    /// What is known of a name, with all that there is of it.
    pub(crate) fn shown(&self, type_url: &TypeUrl, name: &ResourceName) -> Shown {
        let state = self.lock();
        Shown {
            status: entry(&state.cache, type_url, name, self.terms_in(&state).rules).status,
            resource: state.cache.resource(type_url, name).cloned(),
            error: state.cache.error(type_url, name).cloned(),
            failed_at: state.cache.failed_at(type_url, name),
        }
    }

    /// No server can be reached: all who watch hear of it, once.
    pub(crate) fn tell_unreachable(&self, trouble: &Arc<Trouble>) {
        self.turn(|state| state.reach.lose(trouble.clone()));
    }

    /// The same where there are several servers, if it is so of all of them (gRFC A71).
    pub(super) fn tell_if_all_fail(&self) {
        self.turn(|state| {
            let trouble = state.several.as_ref().and_then(|several| several.trouble());
            trouble.is_some_and(|trouble| state.reach.lose(Arc::new(trouble)))
        });
    }

    /// A server answers, or nothing is known of any.
    pub(crate) fn tell_reachable(&self) {
        self.turn(|state| {
            // Of several it may be one that failed since.
            let fails = state.several.as_ref().is_some_and(|several| several.trouble().is_some());
            !fails && state.reach.find()
        });
    }

    /// Another server counts: who wants to hear of that looks.
    pub(super) fn tell_switched(&self) {
        self.turn(|_| true);
    }

    /// A watch begins again: all that there is is news to it, as if it had just come.
    pub(crate) fn watch_again(&self, type_url: &TypeUrl, interest: &Interest, id: SubscriberId) -> SubscriberId {
        // In this order: its server is told nothing of it.
        let again = self.watch(type_url, interest);
        self.unwatch(type_url, id);
        again
    }

    fn turn(&self, turn: impl FnOnce(&mut State) -> bool) {
        if !self.is_watched() {
            return;
        }
        let wakers: Vec<Waker> = {
            let mut state = self.lock();
            if !turn(&mut state) {
                return;
            }
            state.wakers.iter().flatten().cloned().collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// What holds of the server that is waited for.
    fn terms_in(&self, state: &State) -> ServerTerms {
        let current = state.several.as_ref().map_or(0, |several| several.current());
        self.terms.as_ref().map(|terms| terms.of(current)).unwrap_or_default()
    }

    /// Has the program look at what came. What it refuses stays out, and is to be told to the origin.
    pub(crate) fn validate(&self, type_url: &TypeUrl, changes: &mut Changes) -> Vec<Rejected> {
        let (mut refused, errors, server) = (Vec::new(), &mut changes.errors, changes.server);
        changes.changed.retain_mut(|changed| match self.read(type_url, &changed.name, &mut changed.resource, server) {
            Ok(()) => true,
            Err(error) => {
                refused.push(Rejected::new(changed.name.as_str(), &*error.message));
                errors.push((changed.name.clone(), error));
                #[cfg(test)]
                if planted(Fault::YieldRefused) {
                    return true;
                }
                false
            }
        });
        refused
    }

    /// Has the program read a resource that a server sent, unless it is as it was read before: what came of that is the resource's
    /// from then on.
    pub(super) fn read(
        &self,
        type_url: &TypeUrl,
        name: &ResourceName,
        resource: &mut Resource<Frame>,
        server: usize,
    ) -> Result<(), ResourceError> {
        let Some(terms) = &self.terms else { return Ok(()) };
        let known = {
            let state = self.lock();
            let known = state.cache.resource(type_url, name);
            let same = known.filter(|known| known.version == resource.version && known.digest() == resource.digest());
            same.filter(|_| terms.trusts_all_alike()).and_then(|known| known.value.decoded().cloned())
        };
        // Not under the lock: it is the program's own code.
        match known.map(Ok).or_else(|| terms.validators.read(type_url, &resource.value, terms.trust(server))) {
            None => Ok(()),
            Some(Ok(value)) => {
                resource.value = resource.value.clone().with_decoded(value);
                Ok(())
            }
            Some(Err(reason)) => {
                let error = ResourceError::new(ResourceError::INVALID_ARGUMENT, reason.as_str());
                Err(error.found_by(Cause::Refused(resource.version.clone())))
            }
        }
    }

    /// What is not in use any more because something was refused, as is to be told to the stream that brought it.
    pub(crate) fn dropped_by(&self, type_url: &TypeUrl, changes: &Changes) -> Option<Command> {
        let terms = self.terms.as_ref()?.of(changes.server);
        let refused = changes.errors.iter().filter(|(_, error)| matches!(error.cause, Cause::Refused(_)));
        let names: Vec<_> = refused.map(|(name, _)| name.clone()).collect();
        (terms.rules.fail_on_data_errors && !names.is_empty()).then(|| Command::Drop(type_url.clone(), names))
    }

    /// What becomes of what came, by the table of [states](crate::federation::states): what is kept though its origin does not
    /// have it, and what goes because it is of no use any more.
    pub(super) fn decide(&self, type_url: &TypeUrl, mut changes: Changes) -> Changes {
        let Some(terms) = &self.terms else { return changes };
        let rules = terms.of(changes.server).rules;
        let state = self.lock();
        let is_asked =
            |name: &ResourceName| state.demand.as_ref().is_some_and(|demand| demand.asks_for_itself(type_url, name));
        let entry = |name: &ResourceName| entry(&state.cache, type_url, name, rules);
        let mut dropped = Vec::new();
        for (name, error) in &changes.errors {
            let happens = match &error.cause {
                Cause::Refused(_) => Happens::Refused,
                _ => Happens::Failed { transient: error.is_transient() },
            };
            let before = entry(name);
            let after = before.after(happens, rules).0;
            changes.removed.retain(|removed| removed != name);
            if before.held && !after.held || !is_asked(name) && matches!(happens, Happens::Failed { transient: false })
            {
                dropped.push(name.clone());
            }
        }
        let (mut kept, mut newly, mut back) = (Vec::new(), Vec::new(), Vec::new());
        if state.cache.errors().next().is_some() {
            let came = changes.changed.iter().map(|changed| &changed.name);
            back.extend(came.filter(|name| is_deleted(&state.cache, type_url, name)).cloned());
        }
        changes.removed.retain(|name| {
            let before = entry(name);
            // What had its time is not kept: that is what the time is for.
            let keeps = !changes.unsaid && is_asked(name) && before.after(Happens::Gone, rules).0.held;
            if keeps {
                newly.extend((!is_deleted(&state.cache, type_url, name)).then(|| name.clone()));
                let error = ResourceError::new(ResourceError::NOT_FOUND, "its server does not have it any more");
                kept.push((name.clone(), error.found_by(Cause::Deleted)));
            }
            !keeps
        });
        changes.removed.append(&mut dropped);
        changes.errors.append(&mut kept);
        #[cfg(test)]
        changes.errors.retain(|error| !planted_from_the_second(Fault::TellErrorsOnce, format!("{error:?}")));
        for name in std::mem::take(&mut changes.missing) {
            if entry(&name).after(Happens::Silent, rules).1 != Hears::Nothing {
                let error =
                    ResourceError::new(ResourceError::DEADLINE_EXCEEDED, "its server does not say anything of it");
                #[cfg(test)]
                if planted(Fault::TimeoutIsAbsence) {
                    changes.errors.push((name, error.found_by(Cause::Deleted)));
                    continue;
                }
                changes.errors.push((name, error.found_by(Cause::Silence)));
            }
        }
        drop(state);
        // gRFC A53, once for each.
        newly.iter().for_each(|name| tracing::warn!(%type_url, %name, "deleted by its server, and used on"));
        back.iter().for_each(|name| tracing::info!(%type_url, %name, "deleted by its server before, and there again"));
        changes
    }
}

impl State {
    /// This one is told when there is something for a subscriber, in place of the one that is returned.
    fn wakes(&mut self, id: SubscriberId, waker: &Waker) -> Option<Waker> {
        let index = id.index();
        if self.wakers.len() <= index {
            self.wakers.resize(index + 1, None);
        }
        let slot = self.wakers.get_mut(index)?;
        let is_new = !slot.as_ref().is_some_and(|known| known.will_wake(waker));
        if is_new { slot.replace(waker.clone()) } else { None }
    }

    /// What changed, additions first; of errors, what there is beside that.
    fn pull_one(&mut self, id: SubscriberId, heard: &mut Heard) -> Option<News> {
        let mut news = None;
        let mut goes_on = self.cache.has_work(id);
        while goes_on {
            let pulled = self.cache.pull(id, Removals::Include, &mut |pull| {
                news = match pull {
                    Pull::Put { name, resource, .. } => {
                        Some(News::Put { name: name.clone(), resource: resource.clone() })
                    }
                    // That a glob is empty, its answer says.
                    Pull::Removed { name, .. } if !name.is_glob() => Some(News::Gone { name: name.clone() }),
                    _ => None,
                };
                if news.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            heard.answered |= pulled.answered;
            goes_on = pulled.more && news.is_none();
        }
        if news.is_none() {
            self.cache.pull_errors(id, Removals::Include, &mut |Failed { name, error, beside, .. }| {
                news = Some(News::Failed { name: name.clone(), error: error.clone(), held: beside });
                ControlFlow::Break(())
            });
        }
        news.or_else(|| std::mem::take(&mut heard.answered).then_some(News::Answered))
    }

    /// A server can be reached again, and the watch was told that none can. What is wrong with what it watches is told again,
    /// unless there is news of that.
    fn come_back(
        &self,
        type_url: &TypeUrl,
        interest: &Interest,
        id: SubscriberId,
        heard: &mut Heard,
        rules: Rules,
    ) -> Option<News> {
        if !heard.lost || self.reach.trouble.is_some() {
            return None;
        }
        #[cfg(test)]
        if planted(Fault::NeverBack) {
            return None;
        }
        (heard.lost, heard.turns) = (false, self.reach.turns);
        let entry = self.entry(type_url, interest, rules);
        Some(match (entry.after(Happens::Back, rules).1, interest) {
            (hears @ (Hears::Ambient | Hears::Failed), Interest::Name(name)) if !self.cache.has_work(id) => {
                match self.cache.error(type_url, name) {
                    Some(error) => {
                        News::Failed { name: name.clone(), error: error.clone(), held: hears == Hears::Ambient }
                    }
                    None => News::Gone { name: name.clone() },
                }
            }
            _ => News::Back,
        })
    }

    /// No server can be reached, if that is news.
    fn look_around(
        &mut self,
        type_url: &TypeUrl,
        interest: &Interest,
        heard: &mut Heard,
        rules: Rules,
    ) -> Option<News> {
        if heard.turns == self.reach.turns {
            return None;
        }
        let trouble = self.reach.trouble.clone();
        if trouble.is_some() && self.several.as_ref().is_some_and(|several| several.trouble().is_none()) {
            self.reach.withholds = true;
            return None;
        }
        heard.turns = self.reach.turns;
        let trouble = trouble?;
        heard.lost = true;
        let held = self.entry(type_url, interest, rules).after(Happens::Lost, rules).1 == Hears::Ambient;
        #[cfg(test)]
        let held = held && !planted(Fault::LossIsRemoval);
        Some(News::Lost { trouble, held })
    }

    /// Of a name; or of a collection, of which each resource has its own errors.
    fn entry(&self, type_url: &TypeUrl, interest: &Interest, rules: Rules) -> Entry {
        match interest {
            Interest::Name(name) if !name.is_glob() => entry(&self.cache, type_url, name, rules),
            collection => Entry::of(self.cache.holds_any(type_url, collection), None, false, rules),
        }
    }
}

/// Whether it is used on though its server does not have it any more.
fn is_deleted(cache: &Cache<Frame>, type_url: &TypeUrl, name: &ResourceName) -> bool {
    cache.error(type_url, name).is_some_and(|error| error.cause == Cause::Deleted)
}

fn entry(cache: &Cache<Frame>, type_url: &TypeUrl, name: &ResourceName, rules: Rules) -> Entry {
    let held = cache.resource(type_url, name).is_some();
    let answered = cache.is_known(type_url, &Interest::Name(name.clone()));
    Entry::of(held, cache.error(type_url, name), answered, rules)
}
