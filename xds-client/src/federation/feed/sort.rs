//! What of an update from an origin belongs to which scope.

use std::sync::atomic::Ordering;

use xds_transport::client::{Overlapping, Update};
use xds_transport::{Protocol, Rejected};
use xdstp_cache::{Interest, ResourceError, TypeUrl};
use xdstp_uri::ResourceName;

use super::Feed;
use crate::federation::places::Places;

/// How much of an origin's words about a resource is kept, and told to every client, in characters.
const MAX_MESSAGE: usize = 1024;

const OF_ANOTHER_ORIGIN: &str = "its authority is another origin's";

impl Feed {
    /// Sorts an update by the scopes it belongs to. What must not come from here, or what nobody can use, is refused.
    pub(super) fn sort(
        &mut self,
        mut update: Update,
        complete: Vec<Interest>,
        places: &mut Places<'_>,
    ) -> Vec<Rejected> {
        let by_alias = self.server.protocol == Protocol::Delta;
        let mut refused = Vec::new();
        let type_url = update.type_url.clone();
        let (changed, repeated) = (std::mem::take(&mut update.changed), std::mem::take(&mut update.repeated));
        self.tell_overlapping(&type_url, &std::mem::take(&mut update.overlapping));
        let never_shared = self.server.rules.of(&type_url).never_shared;
        let server = self.server.clone();
        let origin_of = |name: &ResourceName| server.authorities.origin_of(name.authority());
        for mut changed in changed.into_iter().chain(repeated) {
            // Rule 153: what another origin's names stand for is for that to say. To clients an alias is its last claimant's.
            let origin = origin_of(&changed.name);
            let value = changed.resource.value.with_aliases(|alias| origin_of(alias) == origin);
            changed.resource.value = if never_shared { value.private() } else { value };
            let name = &changed.name;
            // It was led to another origin, and this one is not told so yet.
            if self.scopes.leaves(name.authority()) {
                continue;
            }
            if let Some(reason) = self.must_not_come(&type_url, name, origin) {
                refused.push(Rejected::new(name.as_str(), reason));
                continue;
            }
            let aliases: Vec<_> = changed.resource.value.aliases().filter(|_| by_alias).collect();
            let (mut at, left) = places.of_resource(&type_url, name, &aliases, &mut self.elsewhere);
            for place in left {
                places.put(place, |part| part.removed.push(name.clone()));
            }
            if !aliases.is_empty() {
                let to = at.iter().filter_map(|place| Some((places.of_origin(*place)?, places.scope(*place)?)));
                to.for_each(|(of_origin, scope)| of_origin.mixed.comes(name.authority(), scope));
            }
            let Some(last) = at.pop() else {
                let reason = match places.is_beside_wildcard(name) {
                    true => OF_ANOTHER_ORIGIN,
                    false => "neither it nor an alias of it was asked for",
                };
                refused.push(Rejected::new(name.as_str(), reason));
                continue;
            };
            if self.is_of_others(&changed.name, last, places) {
                // Equal versions of different servers say nothing to clients: only the content does.
                changed.resource = changed.resource.value.into_resource(None);
            }
            if !at.is_empty() {
                places.put(last, |part| _ = part.asked_elsewhere.insert(changed.name.clone()));
            }
            for place in at {
                places.put(place, |part| part.changed.push(changed.clone()));
            }
            places.put(last, |part| part.changed.push(changed));
        }
        self.sort_names(update, complete, places);
        refused
    }

    /// Whether clients may hold versions of a name from other servers: several have it, or had it. All places of a name are of one
    /// origin.
    fn is_of_others(&self, name: &ResourceName, place: usize, places: &Places<'_>) -> bool {
        let of_several = places.of_origin(place).is_some_and(|of_origin| of_origin.has_several);
        let replaces = self.server.replaces.load(Ordering::Relaxed);
        let scope = places.scope(place);
        let of_scope = || scope.is_some_and(|scope| scope.may_hold_of_others());
        let may_be = of_several || replaces || self.server.authorities.has_moved(name.authority()) || of_scope();
        may_be && !scope.is_some_and(|scope| scope.is_watched())
    }

    /// Why a name of an origin must not come from here, if it must not.
    fn must_not_come(&self, type_url: &TypeUrl, name: &ResourceName, origin: usize) -> Option<String> {
        if !self.scopes.feed_any_of(origin) {
            return Some(OF_ANOTHER_ORIGIN.to_owned());
        }
        self.other_type(type_url, name).map(|of| format!("it is the name of a {of}"))
    }

    /// Of which type a name is, if it is of another one. A relay has it as it comes, and its clients say so.
    fn other_type(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<String> {
        let message = type_url.as_str().rsplit('/').next();
        let of = name.resource_type().filter(|of| Some(*of) != message)?;
        self.scopes.all().iter().any(|(_, scope)| scope.is_watched()).then(|| of.to_owned())
    }

    /// The same of what it says of names without a resource, and of collections.
    fn sort_names(&mut self, update: Update, complete: Vec<Interest>, places: &mut Places<'_>) {
        let Update { type_url, removed, missing, lacking, errors, refreshed, unsaid, refused, .. } = update;
        for interest in refused {
            if let Some(place) = places.of_interest(&interest) {
                places.put(place, |part| _ = part.refused.insert(interest.clone()));
            }
        }
        let rules = self.server.rules.of(&type_url);
        // Absence from a full state is an answer, late as it is taken for one; elsewhere it is not (rule 67).
        let (removed_too, missing): (Vec<_>, _) =
            missing.into_iter().partition(|name| rules.full_state_in_sotw && !self.is_watched(&type_url, name, places));
        for name in removed.into_iter().chain(removed_too) {
            for place in places.of_name(&type_url, &name, &self.elsewhere) {
                places.put(place, |part| part.removed.push(name.clone()));
            }
            self.elsewhere.forget(&type_url, &name);
        }
        for name in missing {
            for place in places.of_name(&type_url, &name, &self.elsewhere) {
                places.put(place, |part| part.missing.push(name.clone()));
            }
        }
        for name in lacking {
            for place in places.of_name(&type_url, &name, &self.elsewhere) {
                places.put(place, |part| part.lacking.push(name.clone()));
            }
        }
        for (nth, (name, error)) in errors.into_iter().enumerate() {
            let message: String = error.message.chars().take(MAX_MESSAGE).collect();
            // That all of a type cannot be asked for over SotW, each client's own session says.
            if unsaid && rules.delta_only && name.as_str() == "*" && !self.is_watched(&type_url, &name, places) {
                continue;
            }
            let error = ResourceError::new(error.code, message.as_str()).found_by(error.cause);
            let at = places.of_name(&type_url, &name, &self.elsewhere);
            let knows = |place: &usize| places.scope(*place).is_some_and(|scope| scope.fails(&type_url, &name, &error));
            // It is said again beside what is sent of a collection. Not all of these ask for that.
            // What no response said is one error of all that is wanted: one line.
            if (!unsaid || nth == 0) && !at.iter().any(knows) {
                tracing::warn!(origin = %self.server.origin, stream = %self.label, %name, "not sent: {message}");
            }
            for place in at {
                places.put(place, |part| part.errors.push((name.clone(), error.clone())));
            }
        }
        for (name, ttl) in refreshed {
            for place in places.of_name(&type_url, &name, &self.elsewhere) {
                places.put(place, |part| part.refreshed.push((name.clone(), ttl)));
            }
        }
        for interest in complete {
            if let Some(place) = places.of_interest(&interest) {
                places.put(place, |part| part.complete.push(interest.clone()));
            }
        }
    }

    /// Of a response, one line: as many as there are would be as many as somebody sends.
    fn tell_overlapping(&self, type_url: &TypeUrl, overlapping: &[Overlapping]) {
        let Some((name, served, other)) = overlapping.first() else { return };
        let (origin, names) = (&self.server.origin, overlapping.len() as u64);
        self.server.observer.overlapping(origin, type_url, names);
        tracing::warn!(
            %origin, stream = %self.label, %type_url, %name, %served, %other, names,
            "two variants of a name are for the same parameters"
        );
    }

    pub(super) fn refuse(&self, rejected: &[Rejected]) {
        self.server.observer.refused(&self.server.origin, rejected.len() as u64);
        for Rejected { name, reason, .. } in rejected {
            tracing::warn!(origin = %self.server.origin, stream = %self.label, %name, "refused: {reason}");
        }
    }
}
