//! The releases of all scopes of a relay that have any, and who is served which.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use http::Uri;
use xdstp_cache::TypeUrl;
use xdstp_client::federation::{Origin as _, Scope};
use xdstp_client::state::{Event, Store};
use xdstp_uri::ResourceName;

use crate::config::Rollout;
use crate::lock::lock;
use crate::relay_core::core::RelayCore;
use crate::relay_core::rollout::{Checked, ReleaseStore, Releases};
use crate::relay_core::rollout_error::RolloutError;
use crate::relay_core::stream_entry::StreamEntry;
use crate::releases::{Applied, Control, ControlError, Instance, Order, Release, Stages, StoredError, Types};

impl RelayCore {
    /// From now on what the origin of a scope has is released by stages. What the store keeps of that is served at once, whether the
    /// origin has anything or not; before the first release nothing is known of the scope.
    ///
    /// # Errors
    /// Why not.
    pub fn roll_out(&self, rollout: Rollout, store: Arc<dyn Store>, now: Instant) -> Result<(), RolloutError> {
        self.roll_out_on(rollout, ReleaseStore::own(store), now)
    }

    /// The same where several relays may have them.
    ///
    /// # Errors
    /// As [`roll_out`](Self::roll_out).
    pub fn roll_out_on(&self, rollout: Rollout, store: ReleaseStore, now: Instant) -> Result<(), RolloutError> {
        let position = self.federation.origin_of(rollout.authority.as_deref());
        let origin = self.federation.origins().get(position).cloned();
        let followed = self.followed.get(&position);
        let origin = origin.filter(|origin| followed.is_some() || origin.is_authoritative());
        let origin = origin.ok_or_else(|| RolloutError::Asked(rollout.scope()))?;
        let types = followed.map(|of| of.types(rollout.authority.as_deref()));
        let rollout = Rollout { types: types.unwrap_or(rollout.types), ..rollout };
        let is_there = |other: &Arc<Releases>| other.rollout.authority == rollout.authority;
        if lock(&self.releases).iter().any(is_there) {
            return Err(RolloutError::Twice(rollout.scope()));
        }
        let how = (self.settings().rules, self.shared.names_per_turn);
        let of_relay = (Instance(self.relays.own().number()), self.metrics.release_halts(&rollout.scope()));
        let releases = Arc::new(Releases::open(rollout, (position, origin, followed.cloned()), how, of_relay, store)?);
        releases.show(now);
        lock(&self.releases).push(releases);
        self.look_at_tracks(true);
        Ok(())
    }

    /// Whether what a scope has of a type is in releases of an origin that is followed, which has more than these.
    pub(crate) fn is_gathered(&self, type_url: &TypeUrl, scope: &Scope) -> bool {
        let all = lock(&self.releases).clone();
        self.followed.contains_key(&scope.origin()) && all.iter().any(|releases| releases.have(type_url, scope))
    }

    /// Whether anything is released.
    pub(crate) fn has_releases(&self) -> bool {
        !lock(&self.releases).is_empty()
    }

    /// Whether something is released of an origin, and of all that is everybody is served a release.
    pub(crate) fn serves_releases_of(&self, position: usize) -> bool {
        let all = lock(&self.releases).clone();
        let mut of_origin = all.iter().filter(|releases| releases.position() == position).peekable();
        of_origin.peek().is_some() && of_origin.all(|releases| releases.are_served())
    }

    /// The same where all types are in releases, or the others are asked for as clients want them.
    pub(crate) fn serves_all_of(&self, position: usize) -> bool {
        if self.followed.contains_key(&position) {
            return self.serves_releases_of(position);
        }
        let all = lock(&self.releases).clone();
        let mut of_origin = all.iter().filter(|releases| releases.position() == position);
        self.serves_releases_of(position) && of_origin.all(|releases| releases.rollout.types == Types::All)
    }

    /// Of which scope it is not known what everybody is served, and why, in words: that there is no release yet is known.
    pub(crate) fn unknown_releases(&self) -> Option<String> {
        let all = lock(&self.releases).clone();
        all.iter()
            .find_map(|releases| Some(format!("releases of {}: {}", releases.rollout.scope(), releases.unknown()?)))
    }

    /// Takes what has settled, and goes on with what is released: to be called every second or so. It may take as long as the stores
    /// take. `now` and `wall` are the same moment.
    pub fn release(&self, now: Instant, wall: SystemTime) {
        let all = lock(&self.releases).clone();
        if self.is_ending.load(Ordering::Acquire) {
            all.iter().for_each(|releases| releases.give_turn_back());
        } else if !all.is_empty() {
            for (at, releases) in all.iter().enumerate() {
                let look = releases.look(at, &self.streams);
                releases.tick(look.as_ref(), now, wall);
            }
            self.look_at_tracks(false);
        }
    }

    /// Other relays did that in the store of releases: clients are served as it says. Whether nobody publishes any more: who
    /// [goes on](Self::release) at once may.
    pub fn hear_releases(&self, events: &[Event], now: Instant) -> bool {
        let all = lock(&self.releases).clone();
        let is_free = all.iter().map(|releases| releases.hear(events, now)).fold(false, |any, one| any | one);
        self.look_at_tracks(false);
        is_free
    }

    /// Reads the releases anew: what others did may not have been heard. Whether the store answered.
    pub fn read_releases_anew(&self, now: Instant) -> bool {
        let all = lock(&self.releases).clone();
        let answered = all.iter().map(|releases| releases.read_anew(now)).fold(true, |all, one| all & one);
        self.look_at_tracks(false);
        answered
    }

    /// Whether what is done in a store that others have, too, is heard.
    pub(crate) fn are_releases_heard(&self, are: bool) {
        lock(&self.releases).clone().iter().for_each(|releases| releases.are_heard(are));
    }

    /// Whether the store of any releases did not answer yet, so that all is to be [read](Self::read_releases_anew).
    pub fn are_releases_recalled(&self) -> bool {
        lock(&self.releases).clone().iter().any(|releases| releases.are_recalled())
    }

    /// Of which candidates is to be asked whether all is well with them, and where; by which of the releases they are.
    pub(crate) fn checks(&self) -> Vec<(usize, Release, Uri)> {
        let all = lock(&self.releases).clone();
        let checks = all.iter().enumerate().filter_map(|(at, releases)| Some((at, releases.to_check()?)));
        checks.map(|(at, (release, uri))| (at, release, uri)).collect()
    }

    /// That was said of a candidate.
    pub fn is_checked(&self, at: usize, release: Release, checked: Checked, now: Instant) {
        if let Some(releases) = lock(&self.releases).get(at).cloned() {
            releases.is_checked(release, checked, now);
        }
    }

    /// What was ordered last is written, if it could not be before: this is to end.
    pub fn flush_releases(&self) {
        for releases in lock(&self.releases).clone() {
            releases.flush();
            releases.give_turn_back();
        }
    }

    /// From now on releases stay as they are: the streams are being ended, and that clients are gone says nothing of what they were
    /// served.
    pub fn end_releases(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    /// Does what is ordered of the releases of an authority, or of old-style names.
    ///
    /// # Errors
    /// Why it is not done.
    pub fn order_release(&self, authority: Option<&str>, order: &Order, now: Instant) -> Result<Applied, RolloutError> {
        let (applied, _) = self.releases_of(authority)?.order(order, None, &|| true, now)?;
        self.look_at_tracks(false);
        Ok(applied)
    }

    /// The same of a scope as it is called, or the only one; if all is still as a mark says, where there is one. What comes of it, and
    /// the mark since.
    ///
    /// # Errors
    /// Why it is not done.
    pub(crate) fn order_of_scope(
        &self,
        scope: Option<&str>,
        order: impl FnOnce(&Stages) -> Result<Order, ControlError>,
        mark: Option<&str>,
        is_wanted: &dyn Fn() -> bool,
        now: Instant,
    ) -> Result<(String, Applied, String), RolloutError> {
        let releases = self.releases_in(scope)?;
        let order = order(&releases.rollout.stages).map_err(StoredError::from)?;
        let (applied, mark) = releases.order(&order, mark, is_wanted, now)?;
        self.look_at_tracks(false);
        Ok((releases.rollout.scope(), applied, mark))
    }

    /// What holds for the releases of an authority, or of old-style names.
    ///
    /// # Errors
    /// There are none.
    pub fn release_control(&self, authority: Option<&str>) -> Result<Control, RolloutError> {
        Ok(self.releases_of(authority)?.control())
    }

    fn releases_of(&self, authority: Option<&str>) -> Result<Arc<Releases>, RolloutError> {
        let authority = authority.map(crate::config::canonical_authority);
        let found = lock(&self.releases).iter().find(|of| of.rollout.authority == authority).cloned();
        found.ok_or_else(|| RolloutError::NoReleases(authority.unwrap_or_else(|| "old-style names".to_owned())))
    }

    /// Those of a scope as it is called, or of the only one.
    pub(crate) fn releases_in(&self, scope: Option<&str>) -> Result<Arc<Releases>, RolloutError> {
        let all = lock(&self.releases).clone();
        match (scope, all.as_slice()) {
            (None, [only]) => Ok(only.clone()),
            (None, []) => Err(RolloutError::NoReleases("any scope".to_owned())),
            (None, several) => {
                let scopes: Vec<_> = several.iter().map(|releases| releases.rollout.scope()).collect();
                Err(RolloutError::Several(scopes.join(", ")))
            }
            (Some(scope), all) => {
                let found = all.iter().find(|releases| releases.rollout.scope() == scope).cloned();
                found.ok_or_else(|| RolloutError::NoReleases(scope.to_owned()))
            }
        }
    }

    /// Where a client is served what would be from a scope, if that has releases.
    pub(crate) fn track(
        &self,
        (number, entry): (u64, &StreamEntry),
        type_url: &TypeUrl,
        scope: &Scope,
    ) -> Option<Arc<Scope>> {
        let all = lock(&self.releases).clone();
        let node = if all.is_empty() { return None } else { entry.node() };
        let (at, releases) = all.iter().enumerate().find(|(_, releases)| releases.have(type_url, scope))?;
        let serves = {
            // Whoever looks meanwhile who is to move sees this, or it is by what they saw.
            let mut has = lock(&entry.releases);
            let serves = releases.serves(&node, has.get(&at).copied().flatten());
            has.insert(at, serves);
            serves
        };
        releases.is_served(entry.client(number), serves);
        Some(releases.scope(scope, serves))
    }

    /// A client rejected a response, with these words.
    pub(crate) fn rejected(
        &self,
        (number, entry): (u64, &StreamEntry),
        type_url: &TypeUrl,
        names: &[ResourceName],
        words: &str,
    ) {
        let all = lock(&self.releases).clone();
        if all.is_empty() {
            return;
        }
        let client = entry.client(number);
        for (at, releases) in all.iter().enumerate() {
            let has = lock(&entry.releases).get(&at).copied().flatten();
            releases.is_rejected((&client, words), has, type_url, names);
        }
    }

    /// Has clients that are served another release by now move to that, or all look where they are.
    fn look_at_tracks(&self, all: bool) {
        let releases = lock(&self.releases).clone();
        // Of each: it has changed for all who look.
        let changed = releases.iter().filter(|releases| releases.have_changed()).count();
        let all = releases.iter().filter(|releases| releases.have_more_types()).count() > 0 || all;
        if changed == 0 && !all {
            return;
        }
        let streams: Vec<_> = lock(&self.streams).values().cloned().collect();
        for entry in streams {
            let has = lock(&entry.releases).clone();
            let node = entry.node();
            let moves = |(at, has): (&usize, &Option<Release>)| {
                releases.get(*at).is_some_and(|of| of.serves(&node, *has) != *has)
            };
            if all || has.iter().any(moves) {
                entry.view.look_anew();
            }
        }
    }
}
