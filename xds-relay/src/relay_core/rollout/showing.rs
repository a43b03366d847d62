//! What is on the tracks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use xds_transport::Frame;
use xdstp_cache::Variant;
use xdstp_client::federation::Held;

use super::health::Heard;
use super::served_content::Content;
use super::{Releases, State, Told, served_types, turn};
use crate::lock::lock;
use crate::relay_core::track::Track;
use crate::releases::{Control, Item, Reader, Release, StoredError};

/// A candidate that is new, if there is one.
type Shown = Option<(Release, Arc<Track>)>;

/// What is to be shown by now.
struct Next {
    control: Control,
    told: Told,
    reader: Reader,
    /// The content of what is stable, if that is another.
    stable: Option<Vec<Held>>,
    /// If that is another.
    candidate: Option<Shown>,
}

/// What a candidate leaves that is none any more: what clients did last, and where it was served.
struct Left {
    heard: Heard,
    candidate: Option<(Release, Arc<Track>)>,
}

impl Releases {
    /// Has the tracks show what the control value says.
    pub(in crate::relay_core) fn show(&self, now: Instant) {
        // One at a time, or what is older might be shown last; whoever is at it does it once more.
        if self.shows.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        loop {
            let asked = self.shows.load(Ordering::Acquire);
            self.show_once(now);
            if self.shows.compare_exchange(asked, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
        }
    }

    /// What clients are led to is there before they are: else it would be told to be gone.
    fn show_once(&self, now: Instant) {
        let Next { control, told, reader, stable, candidate } = self.next(now);
        let is_stable = control.stable();
        // Not under the lock: those are woken who watch.
        if let Some(content) = stable {
            let types = served_types::of(&content);
            self.stable.set(content, now);
            self.types.shown(types);
        }
        let left = {
            let state = &mut *lock(&self.state);
            self.serve(control, (told, reader), candidate.as_ref()).map(|Left { heard, candidate: before }| {
                let begins = candidate.as_ref().and_then(|shown| Some(shown.as_ref()?.0));
                state.health.hear(heard, now);
                state.health.begin(begins, is_stable, now);
                before
            })
        };
        drop(left);
    }

    /// A track of a candidate has all of it before anybody is led there.
    fn next(&self, now: Instant) -> Next {
        let (mut stable, mut candidate) = (None, None);
        let state = &mut *lock(&self.state);
        let control = state.stored.control().clone();
        let (is_stable, is_candidate) = (control.stable(), control.candidate().map(|of| of.release));
        if is_stable != state.shown {
            stable = is_stable.and_then(|release| self.content(state, release, now));
            state.shown = stable.as_ref().map_or(state.shown, |_| is_stable);
        }
        let is_shown = lock(&self.served).candidate.as_ref().map(|(release, _)| *release);
        if is_candidate != is_shown {
            let content = is_candidate.and_then(|release| Some((release, self.content(state, release, now)?)));
            candidate = Some(content.map(|(release, content)| {
                let track = Arc::new(Track::new(self.rules.clone(), self.slice));
                track.set(content, now);
                (release, track)
            }));
        }
        if let Some(stable) = &stable {
            self.types.begin(stable);
        }
        let shown = state.shown;
        let told = Told {
            mark: state.stored.mark(),
            kept: state.stored.releases(),
            damaged: state.stored.damaged().iter().chain(state.stored.bad_control()).cloned().collect(),
            is_control_bad: state.stored.bad_control().is_some(),
            has_other_stages: state.stored.has_other_stages(),
            unsaved: state.stored.unsaved(),
            is_recalled: state.stored.is_recalled(),
            is_served: shown.is_some(),
            is_unwritten: state.is_unwritten,
        };
        let reader = state.stored.reader();
        let is_named = |release: &Release| [is_stable, is_candidate, shown].contains(&Some(*release));
        state.contents.retain(|release, _| is_named(release));
        state.unread.retain(|release, _| is_named(release));
        Next { control, told, reader, stable, candidate }
    }

    /// Clients go by this from now on; if there is another candidate, or none any more, what clients did before is returned, and what
    /// was served.
    fn serve(&self, control: Control, (told, reader): (Told, Reader), candidate: Option<&Shown>) -> Option<Left> {
        let served = &mut *lock(&self.served);
        if told.has_other_stages && !served.told.has_other_stages {
            tracing::warn!(
                scope = self.rollout.scope(),
                "another relay releases it by other `stages` than this one: they are to be the same, or a stage is of whoever is asked"
            );
        }
        (served.told, served.reader) = (told, Some(reader));
        if served.control != control {
            served.control = control;
            self.has_changed.store(true, Ordering::Release);
        }
        let candidate = candidate?.clone();
        self.has_changed.store(true, Ordering::Release);
        let heard = std::mem::take(&mut served.heard);
        Some(Left { heard, candidate: std::mem::replace(&mut served.candidate, candidate) })
    }

    /// What is in a release that is kept; who cannot be shown that goes on with what there was.
    fn content(&self, state: &mut State, release: Release, now: Instant) -> Option<Vec<Held>> {
        if let Some(content) = state.contents.get(&release) {
            return Some(content.held.clone());
        }
        if state.unread.get(&release).is_some_and(|until| now < *until) {
            return None;
        }
        let read = self.read(state, release);
        if let Err(error) = &read {
            tracing::error!(scope = self.rollout.scope(), %release, "it cannot be served: {error}");
            // It is left alone, unless it is heard that something was done.
            state.unread.insert(release, turn::after(now));
        }
        let content = read.ok()?;
        let held = content.held.clone();
        state.unread.remove(&release);
        state.contents.insert(release, Arc::new(content));
        Some(held)
    }

    pub(super) fn read(&self, state: &mut State, release: Release) -> Result<Content, StoredError> {
        let has: HashMap<_, _> = state.contents.values().flat_map(|content| content.bodies()).collect();
        let has = |hash| has.get(&hash).cloned();
        let is_recalled = state.stored.is_recalled();
        let read = match (&self.copy, if is_recalled { None } else { Some(state.stored.content(release, &has)) }) {
            (Some(copy), None) => lock(&copy.copied).stored()?.content(release, &has),
            // It does not answer, or was put back to what it was before there was this release.
            (Some(copy), Some(Err(error @ (StoredError::Store(_) | StoredError::NotKept(_))))) => {
                // It is what its hashes say, wherever it is read.
                let copied = &mut *lock(&copy.copied);
                let Some(copied) = copied.stored().ok().filter(|copied| copied.has(release)) else { return Err(error) };
                tracing::warn!(%release, "it is read from the copy of this relay: {error}");
                copied.content(release, &has)
            }
            (_, read) => read.unwrap_or(Err(StoredError::NotKept(release))),
        };
        let (manifest, bodies) = read?;
        let mut held = Vec::with_capacity(bodies.len());
        for (item, body) in manifest.items().iter().zip(bodies) {
            match self.held(item, body) {
                Some(one) => held.push(one),
                // What a variant is for is kept as text, which not every one is read from: the origin of this relay is to say it, too.
                None if state.shown.is_some() && self.turns.are_shared() => {
                    return Err(StoredError::NoBody { type_url: item.type_url.to_string(), name: item.name.clone() });
                }
                None => tracing::warn!(%release, name = item.name, variant = item.variant, "it is left out"),
            }
        }
        Ok(Content { manifest, held })
    }

    fn held(&self, item: &Item, any: Bytes) -> Option<Held> {
        let name = item.name.parse().ok()?;
        let variant = match &*item.variant {
            "" => None,
            text => Some(self.variant(item, text)?),
        };
        let frame = Frame::new(any).with_wrapper(item.wrapper.clone(), item.ttl, false).of_variant(variant);
        Some((item.type_url.clone(), name, frame.into_resource(Some(item.version.clone()))))
    }

    /// The variant of that text: as the origin has it, if it has it still, and else as such texts are read.
    fn variant(&self, item: &Item, text: &str) -> Option<Variant> {
        let content = self.origin.content().unwrap_or_default();
        let mut of_name =
            content.iter().filter(|(type_url, name, _)| *type_url == item.type_url && name.as_str() == item.name);
        let of_origin = of_name.find_map(|(.., resource)| {
            resource.value.variant().filter(|variant| variant.to_string() == text).map(|variant| (**variant).clone())
        });
        of_origin.or_else(|| text.parse().ok().map(Variant::Constraints))
    }
}
