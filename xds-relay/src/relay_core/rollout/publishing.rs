//! Taking releases, and going on with them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use xdstp_client::federation::Held;
use xdstp_uri::ResourceName;

use super::health::Look;
use super::served_content::Content;
use super::tally::Tally;
use super::{Named, Releases, State};
use crate::lock::lock;
use crate::releases::{
    Act, By, Candidate, Difference, Item, MAY_LACK, Manifest, OnHalt, Order, Progress, Publisher, REMOVES_MUCH,
    Release, Stored, StoredError, Taken, Transition,
};

/// Why a candidate goes on.
const WELL: &str = "all is well";
/// For how long it cannot be read what is stable before it is given up for what a store says that was put back to an earlier state.
const LOST: Duration = Duration::from_secs(15);

/// What is known of what is to be put back into a store.
enum Found {
    /// All that is served of it.
    All,
    /// It cannot be read now.
    NotYet,
    /// It is nowhere.
    Lost,
}

impl Releases {
    /// Takes what has settled, goes on to the next stage, and halts: to be called every second or so. `look` is how the streams
    /// are; `now` and `wall` are the same moment.
    pub(crate) fn tick(&self, look: Option<&Look>, now: Instant, wall: SystemTime) {
        let scope = self.rollout.scope();
        {
            let state = &mut *lock(&self.state);
            let heard = std::mem::take(&mut lock(&self.served).heard);
            state.health.hear(heard, now);
            state.health.look(look, now);
            // A store that does not answer takes its time each time it is asked, and orders wait for that.
            if !state.turn.is_resting(now) {
                match self.go_on(state, now, wall) {
                    Ok(()) => {
                        // What could not be taken is taken later.
                        let waits = state.turn.is_taken() && state.settling.poll_timeout().is_some();
                        state.is_unwritten &= waits;
                        if !waits && state.stays.take().is_some() {
                            tracing::info!(scope, "the release goes on: nothing is wrong any more");
                        }
                    }
                    Err(error) => {
                        // A store that is away is so in other words each time.
                        let why = if error.is_of_store() { String::new() } else { error.to_string() };
                        if state.stays.as_ref() != Some(&why) {
                            tracing::warn!(scope, "the release stays as it is: {error}");
                        }
                        state.stays = Some(why);
                        state.is_unwritten |= error.is_of_store();
                        if self.turns.are_shared() {
                            state.turn.rests(&error, now);
                        }
                    }
                }
            }
        }
        self.show(now);
        self.keep_copy(now, wall);
    }

    fn go_on(&self, state: &mut State, now: Instant, wall: SystemTime) -> Result<(), StoredError> {
        let _ = self.awaits_newer(state, now);
        if !state.stored.went_back() {
            state.unshown_since = None;
        } else if !self.put_back(state, now, wall)? {
            return Ok(());
        }
        if self.awaits_newer(state, now) {
            return Ok(());
        }
        let is_publisher = self.has_turn(state, now, wall)?;
        let published = self.publish(state, is_publisher, now, wall);
        self.proceed(state, is_publisher, now, wall)?;
        published
    }

    /// What the origin has is a release, once it has settled.
    fn publish(
        &self,
        state: &mut State,
        is_publisher: bool,
        now: Instant,
        wall: SystemTime,
    ) -> Result<(), StoredError> {
        let Some(content) = self.origin.content().filter(|_| self.origin.ready().is_ok()) else { return Ok(()) };
        let unreadable = self.origin.unreadable();
        if self.origin.content().is_none_or(|since| !Arc::ptr_eq(&since, &content)) {
            // It changed just now: one may be of the content before, or after.
            return Ok(());
        }
        if state.seen.as_ref().is_none_or(|seen| !Arc::ptr_eq(seen, &content)) {
            let may_lack = self.followed.as_ref().is_some_and(|followed| followed.may_lack(&content));
            let is_as_good = std::mem::replace(&mut state.may_lack, may_lack) == may_lack;
            // What is in no release changes all the time.
            let leaves_the_same = self.leaves_the_same(&state.unreadable, &unreadable);
            if !(is_as_good
                && leaves_the_same
                && state.seen.as_ref().is_some_and(|seen| self.releases_the_same(seen, &content)))
            {
                state.settling.changed(now);
                state.turn.is_inherited = false;
                state.named = named(&state.stored);
            }
            (state.seen, state.unreadable) = (Some(content.clone()), unreadable);
        }
        // Who has the turn later takes what is there then, and has been for long.
        if !is_publisher || !state.settling.handle_timeout(now) {
            return Ok(());
        }
        let unreadable = state.unreadable.clone();
        let completed = self.completed(state, &content, &unreadable);
        let taken = completed.and_then(|content| self.take(state, &content, now, wall));
        if taken.is_err() {
            // It is as new the next time.
            state.settling.changed(now);
        }
        taken
    }

    /// Whether a release of one would be that of the other, as far as that can be told without hashing all of it.
    fn releases_the_same(&self, one: &[Held], other: &[Held]) -> bool {
        let is_of_it = |(type_url, name, resource): &&Held| {
            let types = self.rollout.types;
            name.authority() == self.rollout.authority.as_deref()
                && types.contains(type_url)
                && !resource.value.do_not_cache()
        };
        let is_as = |(one, other): (&Held, &Held)| {
            let (of, like) = (&one.2.value, &other.2.value);
            (&one.0, &one.1, &one.2.version) == (&other.0, &other.1, &other.2.version)
                && (of.any(), of.wrapper(), of.ttl(), of.variant())
                    == (like.any(), like.wrapper(), like.ttl(), like.variant())
        };
        let (mut of_one, mut of_other) = (one.iter().filter(is_of_it), other.iter().filter(is_of_it));
        loop {
            match (of_one.next(), of_other.next()) {
                (None, None) => return true,
                (Some(one), Some(other)) if is_as((one, other)) => {}
                _ => return false,
            }
        }
    }

    fn take(&self, state: &mut State, content: &[Held], now: Instant, wall: SystemTime) -> Result<(), StoredError> {
        let is_own = |name: &ResourceName| name.authority() == self.rollout.authority.as_deref();
        let held = content.iter().filter(|(_, name, _)| is_own(name));
        let of_release = held.filter_map(|held| Some((Item::of(&held.0, &held.1, &held.2, self.rollout.types)?, held)));
        let (items, held): (Vec<_>, Vec<_>) = of_release.map(|(item, held)| (item, held.clone())).unzip();
        let bodies: HashMap<_, _> =
            items.iter().zip(&held).map(|(item, held)| (item.body, held.2.value.any())).collect();
        let manifest = Manifest::new(items.iter().cloned());
        let release = manifest.release();
        // Older than what another relay took since this one's origin changed: its files are late, and no news.
        let is_late = state.named != named(&state.stored) && state.stored.is_older(release);
        if state.turn.is_inherited && is_late {
            tracing::warn!(scope = self.rollout.scope(), %release, "what the origin has was released before what is, and is not again");
            return Ok(());
        }
        let publisher = self.publisher(state, wall)?;
        let is_first = state.stored.control().stable().is_none();
        let removes_much = match state.stored.control().stable() {
            Some(stable) if stable != release => {
                let before = match state.contents.get(&stable) {
                    Some(content) => content.manifest.clone(),
                    None => state.stored.manifest(stable)?,
                };
                Difference::between(&before, &manifest).removes_much()
            }
            Some(_) => false,
            None => state.may_lack,
        };
        let body = |item: &Item| bodies.get(&item.body).map(|body| (*body).clone());
        let order = |act, why| Order::new(act, By::Publisher(publisher), why, wall);
        let publish = order(Act::Publish { release, removes_much }, "the origin has this");
        let advance = self.passes_at_once(state, release, now).then(|| order(Act::Advance { release }, WELL));
        let taken = Taken { manifest: &manifest, from: self.origin.kind(), body: &body };
        let done = state.stored.publish(&taken, &publish, advance.as_ref(), &self.rollout.stages)?;
        state.contents.insert(release, Arc::new(Content { manifest, held }));
        let scope = self.rollout.scope();
        for done in done {
            match done {
                Transition::RemovesMuch => {
                    let why = if is_first { MAY_LACK } else { REMOVES_MUCH };
                    tracing::warn!(scope, %release, "{why}: it waits for somebody to say that it goes on");
                }
                _ => tracing::info!(scope, %release, "{done}"),
            }
        }
        Ok(())
    }

    /// Whether a candidate of now is stable before anybody is served it: its stages last for nothing, and nothing says that all is not
    /// well.
    fn passes_at_once(&self, state: &mut State, release: Release, now: Instant) -> bool {
        let lasts = self.rollout.stages.iter().any(|stage| !stage.hold.is_zero());
        if lasts || self.checked(release, now) != Ok(true) {
            return false;
        }
        let tally = self.tally(state, release, now).unwrap_or_else(|| Tally::of(release));
        state.tallies.halts(&tally, release, &self.rollout.halt, now).is_none()
    }

    /// How the clients of a candidate are, as far as this relay knows: nothing is known of one that was not shown yet.
    fn tally(&self, state: &mut State, release: Release, now: Instant) -> Option<Tally> {
        state.health.are_elsewhere(&state.tallies.here(release));
        let missed = self.turns.are_shared().then(|| state.tallies.missed(release));
        state.health.tally(release, missed.as_ref(), now)
    }

    /// The store was put back to what it was: what is served is there again, and what was ordered holds. Whether that is done, one way or
    /// the other.
    fn put_back(&self, state: &mut State, now: Instant, wall: SystemTime) -> Result<bool, StoredError> {
        match self.finds(state, now)? {
            Found::All => {}
            Found::NotYet => return Ok(false),
            Found::Lost => {
                // The copy says which release is stable, and has it no more.
                tracing::error!(
                    scope = self.rollout.scope(),
                    "what was stable is lost, and what the store says counts"
                );
                state.stored.give_in(&self.rollout.stages)?;
                return Ok(true);
            }
        }
        let contents: Vec<_> = state.contents.values().cloned().collect();
        for content in contents {
            let bodies: HashMap<_, _> = content.bodies().collect();
            let body = |item: &Item| bodies.get(&item.body).cloned();
            match state.stored.put_back(&content.manifest, self.origin.kind(), wall, &body) {
                // Something of it was left out here: others may have all of it.
                Err(error @ StoredError::NoBody { .. }) => tracing::error!("a release is not put back: {error}"),
                put_back => put_back?,
            }
        }
        let ordered = state.stored.put_control_back(&self.rollout.stages)?;
        ordered.iter().for_each(|(order, became)| became.tell(&self.rollout.scope().to_string(), order));
        // Others see only now what they may know better.
        if self.turns.are_shared() {
            state.turn.await_newer(now);
        }
        tracing::warn!(
            scope = self.rollout.scope(),
            "the store was put back to what it was, and has again what is served"
        );
        Ok(true)
    }

    /// Looks for what the control value names that is to be put back, whatever is served by what waits. That it cannot be read now may
    /// pass, and it is lost only if it stays so; a store that does not answer says nothing of it.
    fn finds(&self, state: &mut State, now: Instant) -> Result<Found, StoredError> {
        let (mut is_gone, mut is_unread) = (false, false);
        let named = state.stored.base().named().filter(|release| !state.contents.contains_key(release));
        let missing: Vec<_> = named.collect();
        if !missing.is_empty()
            && let Err(error) = state.stored.refresh(&self.rollout.stages)
        {
            state.unshown_since = None;
            return Err(error);
        }
        if !state.stored.went_back() {
            // Others were faster.
            return Ok(Found::NotYet);
        }
        for release in missing {
            if let Err(error @ StoredError::Store(_)) = state.stored.content(release, &|_| None) {
                state.unshown_since = None;
                return Err(error);
            }
            match self.read(state, release) {
                Ok(content) => _ = state.contents.insert(release, Arc::new(content)),
                Err(StoredError::NotKept(_)) if !self.may_have_copied(release) => {
                    is_gone |= state.stored.base().stable() == Some(release);
                }
                Err(error) => {
                    tracing::error!(scope = self.rollout.scope(), %release, "the store has an earlier state, and this cannot be put back yet: {error}");
                    is_unread = true;
                }
            }
        }
        let since = *state.unshown_since.get_or_insert(now);
        let is_over = now.saturating_duration_since(since) >= LOST;
        let has_stable = state.stored.base().stable().is_none_or(|stable| state.contents.contains_key(&stable));
        Ok(match (is_gone, is_unread && !is_over, has_stable) {
            (true, ..) => Found::Lost,
            (_, true, _) => Found::NotYet,
            // A candidate of which nothing is known is none that anybody is served.
            (.., true) => Found::All,
            (.., false) => Found::Lost,
        })
    }

    /// This relay, as the one that publishes.
    pub(super) fn publisher(&self, state: &mut State, wall: SystemTime) -> Result<Publisher, StoredError> {
        if let Some(publisher) = state.stored.control().publisher().filter(|of| of.instance == self.instance) {
            return Ok(publisher);
        }
        let why = if self.turns.are_shared() { "it is its turn" } else { "it started" };
        let order = Order::new(Act::TakeOver, By::Instance(self.instance), why, wall);
        state.stored.apply(&order, &self.rollout.stages)?;
        let publisher = state.stored.control().publisher();
        publisher.ok_or_else(|| crate::releases::ControlError::NotThePublisher.into())
    }

    /// The candidate halts, or is in the next stage if it is time.
    fn proceed(
        &self,
        state: &mut State,
        is_publisher: bool,
        now: Instant,
        wall: SystemTime,
    ) -> Result<(), StoredError> {
        let candidate = state.stored.control().candidate().map(|candidate| candidate.release);
        let tally = candidate.and_then(|release| self.tally(state, release, now));
        state.turn.look(state.stored.control(), now);
        self.tell_others(state, tally.as_ref(), now)?;
        state.stored.flush(&self.rollout.stages)?;
        if !is_publisher {
            return Ok(());
        }
        self.forget_told(state, now)?;
        let Some(Candidate { release, progress, .. }) = state.stored.control().candidate().cloned() else {
            return Ok(());
        };
        // Nobody is served the first, whatever is said of it.
        if state.stored.control().stable().is_none() {
            return Ok(());
        }
        // It is halted for the first reason there was.
        if matches!(progress, Progress::Halted(_)) && self.rollout.on_halt == OnHalt::Hold {
            return Ok(());
        }
        // The stage begins anew with a relay that publishes since: what others, or it before a restart, saw of clients it does not know.
        let by = By::Publisher(self.publisher(state, wall)?);
        let control = state.stored.control().clone();
        let checked = self.checked(release, now);
        // What was told to the store just now may have changed which it is.
        let tally = tally.filter(|tally| tally.is_of(release)).unwrap_or_else(|| Tally::of(release));
        let halts = state.tallies.halts(&tally, release, &self.rollout.halt, now);
        let halts = halts.or_else(|| checked.clone().err());
        // The clock of another relay may have begun the stage.
        state.turn.look(&control, now);
        let may_go_on = self.followed.as_ref().is_none_or(|followed| followed.may_go_on());
        let is_due = may_go_on && checked == Ok(true) && state.turn.has_held(&self.rollout.stages, now);
        let due = control.due(&self.rollout.stages).filter(|_| is_due);
        let (act, why, at) = match (halts, due) {
            (Some(why), _) => (Act::Halt { release, then: self.rollout.on_halt }, why, wall),
            // It was there for that long, whatever the clock says of whoever began it, or this one's since it was set.
            (None, Some(due)) => (Act::Advance { release }, WELL.to_owned(), wall.max(due)),
            (None, None) => return Ok(()),
        };
        let done = state.stored.apply(&Order::new(act, by, why.as_str(), at), &self.rollout.stages)?;
        let (scope, done) = (self.rollout.scope(), done.transition);
        match done {
            Transition::Halted | Transition::RolledBack => {
                self.halts.inc();
                tracing::warn!(scope, %release, "{done}: {why}");
            }
            _ => tracing::info!(scope, %release, "{done}: {why}"),
        }
        Ok(())
    }
}

/// What was served when the origin changed last: what is published later by another relay is newer.
fn named(stored: &Stored) -> Named {
    let control = stored.control();
    (control.stable(), control.candidate().map(|candidate| candidate.release))
}
