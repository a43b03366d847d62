//! What comes from an origin, on its way into a scope.

use std::collections::BTreeSet;
use std::time::Instant;

use xds_transport::Frame;
use xds_transport::client::Changed;
use xdstp_cache::{Cause, Edit, Interest, TypeUrl, Woken};
use xdstp_uri::ResourceName;

use super::stub::{may_be_held, stub};
use super::{BATCH, Scope, State};
use crate::federation::changes::Changes;
use crate::federation::demand::Demand;
use crate::federation::markers::is_marker;

impl Scope {
    /// Stores what came from upstream, and wakes who is interested.
    pub(crate) fn store(&self, type_url: &TypeUrl, changes: Changes, now: Instant) {
        self.recall_deleted(type_url, &changes, now);
        let Some(changes) = self.heeded(type_url, changes) else { return };
        let Changes {
            server,
            changed,
            by_alias,
            removed,
            missing,
            unsaid: _,
            errors,
            refreshed,
            begun,
            complete,
            version,
            system_version,
        } = self.decide(type_url, changes);
        let silent = self.gone_by_silence(type_url, &missing);
        let watched = self.is_watched();
        // What watches are told is gone by a word, and then what is by a silence.
        let said = removed.into_iter().map(|name| (name, watched));
        let removed: Vec<_> = said.chain(silent.into_iter().map(|name| (name, false))).collect();
        let (mut changed, mut removed) = (changed.into_iter(), removed.into_iter());
        let (mut errors, mut refreshed) = (errors.into_iter(), refreshed.into_iter());
        // What lost an alias: it may be all that it was wanted by. So may be what came as it was given up.
        let mut bereft = BTreeSet::new();
        let mut over = false;
        while !over {
            self.change(|state| {
                if !(state.heeds(server) || watched && state.waits_for(server)) {
                    over = true;
                    return Woken::default();
                }
                let State { cache, demand, system_versions, several, said_gone, .. } = state;
                let mut edit = cache.edit(now);
                // Who asked for just this may have left, and decides how much of it there is.
                let is_asked =
                    |name: &ResourceName| demand.as_ref().is_some_and(|demand| demand.asks_for_itself(type_url, name));
                let gives_up = demand.as_ref().is_some_and(|demand| demand.gives_up(type_url));
                for Changed { name, resource, touched, .. } in changed.by_ref().take(BATCH) {
                    let aliases: Vec<_> = resource.value.aliases().filter(|_| by_alias).collect();
                    let resource = if self.shared && resource.value.do_not_cache() {
                        stub(&resource, edit.resource(type_url, &name).is_some_and(may_be_held))
                    } else {
                        resource
                    };
                    let (ttl, expires) = (resource.value.ttl(), resource.value.expires());
                    let owners = aliases.iter().filter_map(|alias| edit.canonical(type_url, alias));
                    bereft.extend(owners.filter(|owner| **owner != name).cloned());
                    if gives_up {
                        bereft.insert(name.clone());
                    }
                    aliases.iter().chain([&name]).for_each(|name| said_gone.came(type_url, name));
                    edit.put_with_aliases(type_url, &name, aliases, resource);
                    // What another server gave may be equal, and live for another time.
                    if (touched || several.is_some())
                        && let Some(held) = edit.value_mut(type_url, &name)
                    {
                        held.refresh(ttl, expires);
                    }
                    if touched {
                        edit.touch(type_url, &name);
                    }
                }
                if changed.len() == 0 {
                    for (name, said) in removed.by_ref().take(BATCH) {
                        bereft.extend(edit.canonical(type_url, &name).cloned());
                        if is_asked(&name) {
                            edit.deny(type_url, &name);
                        } else {
                            edit.remove(type_url, &name);
                        }
                        if said {
                            said_gone.went(&edit, type_url, name);
                        }
                    }
                }
                // What an error is about may be removed too, and a removal ends an error.
                if changed.len() == 0 && removed.len() == 0 {
                    for (name, error) in errors.by_ref().take(BATCH) {
                        let said = watched && error.cause == Cause::Said && !error.is_transient();
                        // Its server has spoken of what is used on.
                        if watched && error.cause == Cause::Deleted {
                            edit.confirm(type_url, &Interest::Name(name.clone()));
                        }
                        match is_asked(&name) {
                            true if watched => edit.fail_beside(type_url, &name, error),
                            true => edit.fail_by_name(type_url, &name, error),
                            false => edit.fail(type_url, &name, error),
                        }
                        if said {
                            said_gone.went(&edit, type_url, name);
                        }
                    }
                }
                for (name, ttl) in refreshed.by_ref().take(BATCH) {
                    if let Some(held) = edit.value_mut(type_url, &name) {
                        held.refresh(Some(ttl), now.checked_add(ttl));
                    }
                }
                over = changed.len() + removed.len() + errors.len() + refreshed.len() == 0;
                if over {
                    for name in std::mem::take(&mut bereft) {
                        forget_unwanted(&mut edit, demand.as_ref(), type_url, name);
                    }
                    // An answer may come in as it is given up: nothing would end what is known then.
                    let is_wanted = |collection: &&Interest| {
                        demand.as_ref().is_none_or(|demand| demand.wants(type_url, collection))
                    };
                    begun.iter().filter(is_wanted).for_each(|collection| edit.begun(type_url, collection));
                    for collection in complete.iter().filter(is_wanted) {
                        edit.answered(type_url, collection);
                        edit.confirm(type_url, collection);
                    }
                    // With the last of what it is the version of: nobody must see it beside older content.
                    if demand.as_ref().is_some_and(|demand| demand.wants_type(type_url)) {
                        if version.is_some() {
                            edit.set_type_version(type_url, version.clone());
                        }
                        if let Some(version) = &system_version {
                            system_versions.insert(type_url.clone(), version.clone());
                        }
                    }
                }
                edit.finish()
            });
        }
    }

    /// What of that counts, which this server says; none if none does.
    fn heeded(&self, type_url: &TypeUrl, mut changes: Changes) -> Option<Changes> {
        let state = &mut self.lock();
        if !state.heeds(changes.server) {
            if !self.is_watched() || !state.waits_for(changes.server) {
                return None;
            }
            // Another's word counts, and its own will once it says any: of it a program is told that it is silent.
            let missing = std::mem::take(&mut changes.missing);
            changes = Changes { missing, ..Changes::of(changes.server) };
        }
        state.forsake(type_url, &mut changes);
        if self.is_watched() {
            state.keep_versions(type_url, &mut changes);
        }
        state.part(type_url, &changes);
        let Changes { changed, removed, errors, .. } = &changes;
        let names = changed.iter().map(|changed| &changed.name).chain(removed);
        state.hears(type_url, names.chain(errors.iter().map(|(name, _)| name)));
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

/// Forgets a resource that nothing asks for by any of its names.
fn forget_unwanted(edit: &mut Edit<'_, Frame>, demand: Option<&Demand>, type_url: &TypeUrl, name: ResourceName) {
    let (Some(demand), Some(resource)) = (demand, edit.resource(type_url, &name)) else { return };
    let aliases = resource.value.aliases().filter(|alias| edit.canonical(type_url, alias) == Some(&name));
    if !aliases.chain([name.clone()]).any(|name| demand.wants_by(type_url, &name)) {
        edit.evict(type_url, &Interest::Name(name));
    }
}
