//! Taking releases, and going on with them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use xdstp_cache::TypeUrl;
use xdstp_client::federation::Held;
use xdstp_uri::ResourceName;

use super::{Releases, State};
use crate::lock::lock;
use crate::releases::{Act, By, Difference, Item, Manifest, Order, Publisher, StoredError};

impl Releases {
    /// Takes what has settled, goes on to the next stage, and halts: to be called every second or so. `now` and `wall` are the
    /// same moment.
    pub(crate) fn tick(&self, now: Instant, wall: SystemTime) {
        let scope = self.rollout.scope();
        {
            let state = &mut *lock(&self.state);
            if let Err(error) = self.publish(state, now, wall) {
                tracing::error!(scope, "no release is taken: {error}");
            }
            if let Err(error) = self.proceed(state, wall) {
                tracing::warn!(scope, "the release stays as it is: {error}");
            }
        }
        self.show(now);
    }

    /// What the origin has is a release, once it has settled.
    fn publish(&self, state: &mut State, now: Instant, wall: SystemTime) -> Result<(), StoredError> {
        let Some(content) = self.origin.content().filter(|_| self.origin.ready().is_ok()) else { return Ok(()) };
        if state.seen.as_ref().is_none_or(|seen| !Arc::ptr_eq(seen, &content)) {
            state.settling.changed(now);
            state.seen = Some(content.clone());
        }
        if !state.settling.handle_timeout(now) {
            return Ok(());
        }
        let taken = self.take(state, &content, wall);
        if taken.is_err() {
            // It is as new the next time.
            state.settling.changed(now);
        }
        taken
    }

    fn take(&self, state: &mut State, content: &[Held], wall: SystemTime) -> Result<(), StoredError> {
        let is_own = |name: &ResourceName| name.authority() == self.rollout.authority.as_deref();
        let held = content.iter().filter(|(_, name, _)| is_own(name));
        let of_release = held.filter_map(|held| Some((Item::of(&held.0, &held.1, &held.2, self.rollout.types)?, held)));
        let (items, held): (Vec<_>, Vec<_>) = of_release.map(|(item, held)| (item, held.clone())).unzip();
        let bodies: HashMap<_, _> =
            items.iter().zip(&held).map(|(item, held)| (item.body, held.2.value.any())).collect();
        let manifest = Manifest::new(items.iter().cloned());
        let release = manifest.release();
        let publisher = self.publisher(state, wall)?;
        let removes_much = match state.stored.control().stable() {
            Some(stable) if stable != release => {
                Difference::between(&state.stored.manifest(stable)?, &manifest).removes_much()
            }
            _ => false,
        };
        let body = |item: &Item| bodies.get(&item.body).map(|body| (*body).clone());
        state.stored.save(&manifest, publisher, self.origin.kind(), wall, &body)?;
        state.contents.insert(release, held);
        let act = Act::Publish { release, removes_much };
        let why = "the origin has this";
        let done = state.stored.apply(&Order::new(act, By::Publisher(publisher), why, wall), &self.rollout.stages)?;
        tracing::info!(scope = self.rollout.scope(), %release, "{}", done.transition);
        Ok(())
    }

    /// This relay, as the one that publishes.
    fn publisher(&self, state: &mut State, wall: SystemTime) -> Result<Publisher, StoredError> {
        if let Some(publisher) = state.stored.control().publisher().filter(|of| of.instance == self.instance) {
            return Ok(publisher);
        }
        let order = Order::new(Act::TakeOver, By::Instance(self.instance), "it started", wall);
        state.stored.apply(&order, &self.rollout.stages)?;
        let publisher = state.stored.control().publisher();
        publisher.ok_or_else(|| crate::releases::ControlError::NotThePublisher.into())
    }

    /// The candidate halts, or is in the next stage if it is time.
    fn proceed(&self, state: &mut State, wall: SystemTime) -> Result<(), StoredError> {
        state.stored.flush(&self.rollout.stages)?;
        let control = state.stored.control();
        let Some(release) = control.candidate().map(|candidate| candidate.release) else { return Ok(()) };
        let rejected = lock(&self.served).rejected.clone();
        let has_many = self.rollout.halt.rejected.is_reached(rejected.len(), rejected.len());
        let is_due = control.due(&self.rollout.stages).is_some_and(|due| due <= wall);
        let (act, why) = match (has_many, is_due) {
            (true, _) => (Act::Halt { release, then: self.rollout.on_halt }, refused(&rejected)),
            (false, true) => (Act::Advance { release }, "all is well".to_owned()),
            (false, false) => return Ok(()),
        };
        let by = By::Publisher(self.publisher(state, wall)?);
        let done = state.stored.apply(&Order::new(act, by, why.as_str(), wall), &self.rollout.stages)?;
        tracing::info!(scope = self.rollout.scope(), %release, "{}: {why}", done.transition);
        Ok(())
    }
}

/// What was refused, in words.
fn refused(rejected: &BTreeSet<(u64, TypeUrl, Option<ResourceName>)>) -> String {
    let first = rejected.first().map_or_else(String::new, |(_, type_url, name)| match name {
        Some(name) => format!(", such as {name} ({type_url})"),
        None => format!(", such as something of {type_url}"),
    });
    format!("clients refused {}{first}", rejected.len())
}
