//! What the relay was told last of each name, on which stream of an origin: it can be held to no more than that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use xds_transport::client::Update;
use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::ResourceName;

use crate::world::{Body, Of, Place, World, covers, origin_of};

/// Shared by the feeds of a relay and the books of its clients.
pub(crate) type Heard = Arc<Mutex<Words>>;

pub(crate) struct Words {
    urls: Vec<TypeUrl>,
    full_state: Vec<bool>,
    words: BTreeMap<(Place, Of), BTreeMap<ResourceName, Word>>,
    asked: BTreeMap<(Place, Of), BTreeSet<Interest>>,
}

/// That something is there, or is gone, and since when the relay knows.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) body: Option<Body>,
    pub(crate) at: Instant,
}

impl Words {
    pub(crate) fn new(world: &World) -> Self {
        let kinds = world.kinds.iter();
        let (urls, full_state) = kinds.map(|kind| (kind.url.clone(), kind.full_state)).unzip();
        Self { urls, full_state, words: BTreeMap::new(), asked: BTreeMap::new() }
    }

    pub(crate) fn word(&self, place: Place, of: Of, name: &ResourceName) -> Option<&Word> {
        self.words.get(&(place, of))?.get(name)
    }

    /// An update arrives, before anything is made of it. What is not this origin's to say was not said (rule 153).
    pub(crate) fn update(&mut self, place: Place, now: Instant, update: &Update) {
        let Some(of) = self.of(&update.type_url) else { return };
        let words = self.words.entry((place, of)).or_default();
        let put = |words: &mut BTreeMap<_, _>, name: &ResourceName, body: Option<Body>| {
            let serial = |body: &Option<Body>| body.as_ref().map(|body| body.serial);
            let known = words.get(name).is_some_and(|word: &Word| serial(&word.body) == serial(&body));
            if origin_of(name) == place.origin && !known {
                words.insert(name.clone(), Word { body, at: now });
            }
        };
        for changed in update.changed.iter().chain(&update.repeated) {
            put(words, &changed.name, Some(Body::of_any(changed.resource.value.any())));
        }
        update.removed.iter().for_each(|name| put(words, name, None));
        for name in &update.missing {
            if self.full_state[of] {
                put(words, name, None);
            } else {
                // Whether a relay takes that for an answer depends on who brought it along.
                words.remove(name);
            }
        }
    }

    /// The relay asks for something.
    pub(crate) fn subscribe(&mut self, place: Place, type_url: &TypeUrl, interest: &Interest) {
        let Some(of) = self.of(type_url) else { return };
        self.asked.entry((place, of)).or_default().insert(interest.clone());
    }

    /// The relay gives something up, and forgets it, unless it asks for it otherwise.
    pub(crate) fn unsubscribe(&mut self, place: Place, type_url: &TypeUrl, interest: &Interest) {
        let Some(of) = self.of(type_url) else { return };
        let asked = self.asked.entry((place, of)).or_default();
        asked.remove(interest);
        if let Some(words) = self.words.get_mut(&(place, of)) {
            words.retain(|name, _| asked.iter().any(|asked| covers(asked, name)));
        }
    }

    /// The relay has no stream there any more.
    pub(crate) fn forget(&mut self, place: Place) {
        self.words.retain(|(at, _), _| *at != place);
        self.asked.retain(|(at, _), _| *at != place);
    }

    fn of(&self, type_url: &TypeUrl) -> Option<Of> {
        self.urls.iter().position(|url| url == type_url)
    }
}
