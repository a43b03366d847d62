//! What comes from an origin, on its way into a scope.

use std::collections::BTreeSet;
use std::time::Instant;

use xdstp_cache::{Cause, TypeUrl, Woken};
use xdstp_uri::ResourceName;

use super::batch::{Batch, Pending};
use super::restated::Restated;
use super::{BATCH, Scope, State};
use crate::federation::changes::Changes;
use crate::federation::markers::is_marker;

impl Scope {
    /// Stores what came from upstream, and wakes who is interested. What of it changed without its version is returned.
    pub(crate) fn store(&self, type_url: &TypeUrl, changes: Changes, now: Instant) -> Restated {
        let (mut restated, mut bereft, mut over) = (Restated::default(), BTreeSet::new(), false);
        self.recall_deleted(type_url, &changes, now);
        let Some(changes) = self.heeded(type_url, changes) else { return restated };
        let Changes {
            server,
            leads,
            changed,
            asked_elsewhere,
            by_alias,
            removed,
            missing,
            lacking: _,
            unsaid: _,
            errors,
            refreshed,
            refused,
            begun,
            complete,
            version,
            system_version,
        } = self.decide(type_url, changes);
        let (watched, silent) = (self.is_watched(), self.gone_by_silence(type_url, &missing));
        let mut pending =
            Pending::new(changed, (removed, self.is_kept || watched, silent), (errors, &complete), refreshed);
        while !over {
            self.change(Some(now), |state| {
                if state.leads() != leads || !(state.heeds(server) || watched && state.waits_for(server)) {
                    over = true;
                    return Woken::default();
                }
                let of_others = state.may_hold_of_others();
                let State { cache, demand, system_versions, said_gone, .. } = state;
                let mut batch = Batch {
                    type_url,
                    edit: cache.edit(now),
                    demand: demand.as_ref(),
                    gives_up: demand.as_ref().is_some_and(|demand| demand.gives_up(type_url)),
                    said_gone,
                    restated: &mut restated,
                    bereft: &mut bereft,
                    refused: &refused,
                    asked_elsewhere: &asked_elsewhere,
                    by_alias,
                    shared: self.shared,
                    of_others,
                    watched,
                };
                batch.doubt_version();
                over = pending.store(&mut batch, now);
                if over {
                    batch.forget_bereft();
                    batch.answer(&begun, &complete, pending.errors_of_answered());
                    batch.set_versions(version.as_ref(), system_version.as_ref(), system_versions);
                }
                batch.edit.finish()
            });
        }
        restated
    }

    /// What of that counts, which this server says; none if none does.
    fn heeded(&self, type_url: &TypeUrl, mut changes: Changes) -> Option<Changes> {
        let state = &mut self.lock();
        // What the origin before says as it is left.
        if state.leads() != changes.leads {
            return None;
        }
        if !state.heeds(changes.server) {
            if !self.is_watched() || !state.waits_for(changes.server) {
                return None;
            }
            // Another's word counts, and its own will once it says any: of it a program is told that it is silent.
            let missing = std::mem::take(&mut changes.missing);
            changes = Changes { missing, ..Changes::of((changes.leads, changes.server)) };
        }
        state.lose_lacking(type_url, &mut changes);
        state.forsake(type_url, &mut changes);
        // To the clients of a relay those of several servers have no versions but their content's.
        if self.is_watched() || state.several.is_none() {
            state.keep_versions(type_url, &mut changes);
        }
        state.part(type_url, &changes);
        let Changes { changed, removed, errors, .. } = &changes;
        // Of what it could not be asked for it said nothing.
        let errors = errors.iter().filter(|(_, error)| error.cause != Cause::Unasked).map(|(name, _)| name);
        let mut names = changed.iter().map(|changed| &changed.name).chain(removed).chain(errors).peekable();
        if !changes.unsaid || names.peek().is_some() {
            state.hears(type_url, names);
        }
        Some(changes)
    }

    /// What the origin was silent of for so long that it counts as gone: not of what clients hold.
    fn gone_by_silence(&self, type_url: &TypeUrl, missing: &[ResourceName]) -> Vec<ResourceName> {
        let mut silent = Vec::new();
        for part in missing.chunks(BATCH) {
            let state = &mut self.lock();
            let cache = &state.cache;
            let is_gone = |name: &&ResourceName| !is_marker(name) && !cache.is_brought_along(type_url, name);
            let gone: Vec<_> = part.iter().filter(is_gone).cloned().collect();
            state.hears(type_url, &gone);
            silent.extend(gone);
        }
        silent
    }
}
