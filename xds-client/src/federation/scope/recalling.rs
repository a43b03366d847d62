//! When a scope is served from what was known of it before a restart, and what its origin is told of that.

use std::ops::Bound;
use std::time::Instant;

use xds_transport::Frame;
use xds_transport::client::Command;
use xdstp_cache::{Known, TypeUrl, Woken};
use xdstp_uri::ResourceName;

use super::recall::{Confirms, Due, Held, Made, Recall};
use super::{BATCH, Scope, State};
use crate::federation::changes::Changes;
use crate::federation::last_known_good::Recollection;
use crate::federation::terms::Terms;
use crate::federation::validators::Trust;

impl Scope {
    /// It was known before a restart, and what is known now is noted to be kept.
    pub(crate) fn keeps(mut self, kept: Recollection) -> Self {
        /// Of how many names that is noted; of more all is kept anew.
        const MOST: usize = 1 << 16;
        let confirms = self.confirms(kept.is_of_another);
        self.is_kept = true;
        let state = self.state.get_mut();
        state.cache.note_changes(MOST);
        let (known, is_of_another) = state.heed_whose(kept);
        if !known.is_empty() {
            state.recall = Some(Box::new(Recall::new(known, confirms, is_of_another)));
        }
        self
    }

    /// The same, when that was read later than the scope was made: of what it knows anything of, what is known counts. That is
    /// noted as a whole, for none of it was kept.
    pub fn recall(&self, kept: Recollection, now: Instant) {
        let confirms = self.confirms(kept.is_of_another);
        {
            let state = &mut *self.lock();
            state.cache.note_all();
            let (known, is_of_another) = state.heed_whose(kept);
            if known.is_empty() {
                return;
            }
            let gone = state.cache.snapshot(now).filter_map(|known| match known {
                Known::Gone { type_url, name, .. } => Some((type_url, name)),
                _ => None,
            });
            let gone = gone.collect();
            let new = || Box::new(Recall::new(Vec::new(), confirms, is_of_another));
            let recall = state.recall.get_or_insert_with(new);
            recall.add(known, gone);
            if is_of_another {
                recall.is_of_another();
            }
        }
        self.ask();
    }

    fn confirms(&self, is_of_another: bool) -> Confirms {
        // SotW has no versions of names; those of another server mean nothing to this one.
        let is_sotw = self.room.is_some();
        if self.is_watched() || is_sotw || is_of_another { Confirms::Word } else { Confirms::Silence }
    }

    /// Whether anything of it was known before a restart, and its origin has not had the time to say whether that counts.
    pub fn is_recalled(&self) -> bool {
        self.lock().recall.is_some()
    }

    /// Whether clients may be served before the origin answers, from what was known before.
    pub(crate) fn recalls(&self) -> bool {
        self.lock().recall.as_ref().is_some_and(|recall| !recall.aside.is_empty())
    }

    /// A server cannot be reached: if no other answers, clients are served what the origin said before.
    pub(crate) fn lost(&self, now: Instant) {
        if !self.lock().is_there(false) {
            self.fall_back(now);
        }
    }

    /// The origin cannot be reached: clients are served what it said before.
    pub(crate) fn fall_back(&self, now: Instant) {
        if !self.recalls() {
            return;
        }
        while !self.serve_some(BATCH, now) {}
        self.ask();
    }

    /// What a program uses on though its server says that it is gone, or fails, it does after a restart, too, however soon that
    /// is said: what is kept of that is served before.
    pub(super) fn recall_deleted(&self, type_url: &TypeUrl, changes: &Changes, now: Instant) {
        let Some(terms) = &self.terms else { return };
        let keeps = !terms.of(changes.server).rules.fail_on_data_errors;
        let mut left = {
            let state = &mut *self.lock();
            let heeds = state.heeds(changes.server);
            let State { recall: Some(recall), demand: Some(demand), .. } = state else { return };
            if !heeds {
                return;
            }
            let failed = changes.errors.iter().filter(|(_, error)| keeps || error.is_transient());
            let gone = changes.removed.iter().filter(|_| keeps && !changes.unsaid);
            let names = failed.map(|(name, _)| name).chain(gone);
            recall.bring_forward(type_url, &names.filter(|name| demand.asks_for_itself(type_url, name)).collect())
        };
        while left > 0 {
            let most = left.min(BATCH);
            left -= most;
            self.serve_some(most, now);
        }
    }

    /// Serves so much at most of what stands aside. Whether that was the last.
    fn serve_some(&self, most: usize, now: Instant) -> bool {
        let mut over = true;
        let made = self.terms.as_ref().map(|terms| self.remake(most, terms));
        self.change(None, |state| {
            let State { recall: Some(recall), cache, demand, of_others, .. } = state else { return Woken::default() };
            let mut edit = cache.edit(now);
            over = recall.serve(most, made, demand.as_ref(), &mut edit);
            recall.of_another.drain(..).for_each(|(type_url, name)| of_others.holds(type_url, name));
            edit.finish()
        });
        over
    }

    /// What a program makes of what is served next. What it made of it before, the program of before knew.
    fn remake(&self, most: usize, terms: &Terms) -> Made {
        let next = self.lock().recall.as_ref().map(|recall| recall.next(most)).unwrap_or_default();
        // Whichever server it came from.
        let trust = if terms.trusts_all_alike() { terms.trust(0) } else { Trust::Untrusted };
        // Not under the lock: it is the program's own code.
        let make = |(type_url, frame): (TypeUrl, Frame)| {
            let read = match terms.validators.read(&type_url, &frame, trust) {
                None => Some(frame.clone()),
                Some(Ok(value)) => Some(frame.clone().with_decoded(value)),
                Some(Err(reason)) => {
                    tracing::warn!(%type_url, "a resource that was kept is of no use any more, and left out: {reason}");
                    None
                }
            };
            (frame, read)
        };
        next.into_iter().map(make).collect()
    }

    /// Looks whether anything is to be done with what was known before, now that the origin is there or not. Whether more is.
    pub(super) fn look_back(&self, now: Instant, there: bool) -> bool {
        let due = self.lock().recall.as_mut().map_or(Due::Nothing, |recall| recall.due(now, there));
        match due {
            Due::Nothing => {}
            Due::Serve => self.fall_back(now),
            Due::End => {
                let mut over = false;
                self.change(None, |state| {
                    let woken;
                    (over, woken) = state.end_recall(now);
                    woken
                });
                return !over;
            }
        }
        false
    }
}

impl State {
    /// What is kept of a scope, as far as it is of use: what another server said is served, and no version of a type is that of this one.
    fn heed_whose(&mut self, Recollection { mut known, is_of_another }: Recollection) -> (Vec<Known<Frame>>, bool) {
        if is_of_another {
            known.retain(|known| !matches!(known, Known::TypeVersion { .. }));
            self.of_others.turns += 1;
        }
        (known, is_of_another)
    }

    /// The origin spoke of these: nothing older counts.
    pub(super) fn hears<'a>(&mut self, type_url: &TypeUrl, names: impl IntoIterator<Item = &'a ResourceName>) {
        if let Some(recall) = &mut self.recall {
            recall.hears(type_url, names);
        }
    }

    /// The origin said that these names are gone, or those of others: what stands aside is not to be had by them.
    pub(super) fn part(&mut self, type_url: &TypeUrl, changes: &Changes) {
        let Self { recall: Some(recall), demand, .. } = self else { return };
        for name in changes.removed.iter().filter(|_| !changes.unsaid) {
            recall.part(type_url, name, demand.as_ref());
        }
        for changed in changes.changed.iter().filter(|_| changes.by_alias) {
            changed.resource.value.aliases().for_each(|alias| recall.part(type_url, &alias, demand.as_ref()));
        }
    }

    /// Adds to what the origin is told what we hold of what it was asked for. Whether there may be more.
    pub(super) fn hold(&mut self, most: usize, commands: &mut Vec<Command>) -> bool {
        let Self { recall: Some(recall), cache, demand: Some(demand), .. } = self else { return false };
        if recall.untold.is_empty() {
            recall.looks_after = None;
            return false;
        }
        let mut held = Held::new();
        for command in &*commands {
            if let Command::Subscribe(type_url, interest) = command {
                recall.hold(cache, &(type_url.clone(), interest.clone()), &mut held);
            }
        }
        if let Some(after) = recall.looks_after.take() {
            let wanted: Vec<_> = demand.wanted().range((after, Bound::Unbounded)).take(most).collect();
            wanted.iter().filter(|wish| !demand.is_untold(wish)).for_each(|wish| recall.hold(cache, wish, &mut held));
            recall.looks_after =
                wanted.last().filter(|_| wanted.len() == most).map(|last| Bound::Excluded((*last).clone()));
        }
        commands.extend(held.into_iter().map(|(type_url, (names, all))| Command::Hold(type_url, names, all)));
        recall.looks_after.is_some()
    }

    /// The origin had its time: what it did not speak of stays stale, unless its silence says that it is as it was, and
    /// what nobody wants of it is forgotten. Whether that is over.
    fn end_recall(&mut self, now: Instant) -> (bool, Woken) {
        let Self { recall: Some(recall), cache, demand, .. } = self else { return (true, Woken::default()) };
        let mut edit = cache.edit(now);
        for (type_url, interest) in recall.take_untold(BATCH) {
            let keeps = |name: &_| demand.as_ref().is_some_and(|demand| demand.wants_by(&type_url, name));
            if !demand.as_ref().is_some_and(|demand| demand.wants(&type_url, &interest)) {
                edit.evict_unless(&type_url, &interest, &keeps);
            }
        }
        let over = recall.untold.is_empty();
        if over {
            if recall.confirms == Confirms::Silence {
                edit.confirm_all();
            }
            // What is kept has what was not taken from it.
            edit.note_all();
            self.recall = None;
        }
        (over, edit.finish())
    }
}
