//! What was known of a scope before a restart.
//!
//! It stands aside while the origin may be about to answer: what an origin says is newer. Only when that cannot be reached, or says
//! nothing more for a moment, clients are served from it; it is stale then until the origin has said something of it. It says that
//! something is there, and never that something is not.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::time::{Duration, Instant};

use xds_transport::Frame;
use xdstp_cache::{Cache, Edit, Interest, Known, Resource, TypeUrl, Version};
use xdstp_uri::ResourceName;

use super::other_names::OtherNames;
use crate::federation::demand::{Demand, Wish};

/// How long an origin may say nothing before clients are served what it said before the restart.
const GRACE: Duration = Duration::from_millis(500);
/// How long one that is there may say nothing more before they are served the rest.
const SETTLES: Duration = Duration::from_secs(2);
/// How long it may go on without that rest: less than clients take for an absence (rule 138).
const GOES_ON: Duration = Duration::from_secs(10);
/// How long what nobody wants is kept at hand, once an origin is there.
const AT_HAND: Duration = Duration::from_secs(30);

/// What was known before, until the origin had the time to say what of it counts.
#[derive(Default)]
pub(super) struct Recall {
    /// What nobody is served yet, the next one last.
    pub(super) aside: Vec<Known<Frame>>,
    /// What else that may be asked for by.
    other_names: OtherNames,
    /// What of that was passed over, because the origin is there and nobody wants it.
    passed: Vec<Known<Frame>>,
    /// All that stands aside was.
    rests: bool,
    /// Of what the origin spoke meanwhile.
    pub(super) said: HashSet<(TypeUrl, ResourceName)>,
    /// It spoke since that was looked at last.
    spoke: bool,
    /// Until when it may answer.
    waits_until: Option<Instant>,
    /// Since when it is there.
    there_since: Option<Instant>,
    /// What is served, and the origin was not told that we hold it: nobody wanted it.
    pub(super) untold: HashMap<TypeUrl, Untold>,
    /// What of all that is wanted is to be looked up there: all after this.
    pub(super) looks_after: Option<Bound<Wish>>,
    pub(super) confirms: Confirms,
    /// It is what another server said.
    is_of_another: bool,
    /// What of that is served, since that was taken.
    pub(super) of_another: Vec<(TypeUrl, ResourceName)>,
}

/// What has it that what is held is as it was.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Confirms {
    /// A word of each: it is told that we hold it without a version, and says that it is there, or gone.
    #[default]
    Word,
    /// Its silence, too: over delta it need say nothing of what it was told the version of. So a relay that begins anew does
    /// not have it send everything, and cannot tell whether it hangs.
    Silence,
}

#[derive(Default)]
pub(super) struct Untold {
    by_glob: HashMap<Option<ResourceName>, BTreeSet<ResourceName>>,
    /// Collections that were answered.
    collections: BTreeSet<Interest>,
}

/// What is to be done with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// Clients are to be served from it.
    Serve,
    /// It is over.
    End,
}

/// What a program made of resources, one by one: nothing of those that it has no use for any more.
pub(super) type Made = VecDeque<(Frame, Option<Frame>)>;

/// What the origin is told that we hold, by type.
pub(super) type Held = BTreeMap<TypeUrl, (Vec<(ResourceName, Resource<Frame>)>, Vec<Interest>)>;

impl Recall {
    pub(super) fn new(known: Vec<Known<Frame>>, confirms: Confirms, is_of_another: bool) -> Self {
        let mut other_names = OtherNames::default();
        other_names.add(&known);
        Self { aside: known.into_iter().rev().collect(), other_names, confirms, is_of_another, ..Self::default() }
    }

    /// Another server speaks in the place of the one that said it: no version is that of this one.
    pub(super) fn is_of_another(&mut self) {
        for known in [&mut self.aside, &mut self.passed] {
            known.retain(|known| !matches!(known, Known::TypeVersion { .. }));
        }
        (self.confirms, self.is_of_another) = (Confirms::Word, true);
    }

    /// This was known before, too, but for what is `gone` since.
    pub(super) fn add(&mut self, known: Vec<Known<Frame>>, gone: HashSet<(TypeUrl, ResourceName)>) {
        self.other_names.add(&known);
        // It is served behind what there is.
        self.aside.splice(0..0, known.into_iter().rev());
        self.said.extend(gone);
        self.rests = false;
    }

    /// Something is wanted: it may be of what stands aside.
    pub(super) fn is_wanted(&mut self) {
        if std::mem::take(&mut self.rests) {
            self.waits_until = None;
        }
    }

    /// The origin spoke of these.
    pub(super) fn hears<'a>(&mut self, type_url: &TypeUrl, names: impl IntoIterator<Item = &'a ResourceName>) {
        self.spoke = true;
        if !self.aside.is_empty() {
            self.said.extend(names.into_iter().map(|name| (type_url.clone(), name.clone())));
        }
    }

    /// The origin said that a name is gone, or another's. What stands aside is not to be had by it, and what was wanted by it alone
    /// counts no more than if the origin had spoken of that.
    pub(super) fn part(&mut self, type_url: &TypeUrl, alias: &ResourceName, demand: Option<&Demand>) {
        let Some(name) = self.other_names.end(type_url, alias) else { return };
        let wants = |name: &_| demand.is_some_and(|demand| demand.wants_by(type_url, name));
        if !self.other_names.all_of(type_url, &name).any(wants) {
            self.said.insert((type_url.clone(), name));
        }
    }

    /// Has those of these names served next that stand aside: how many do.
    pub(super) fn bring_forward(&mut self, type_url: &TypeUrl, names: &HashSet<&ResourceName>) -> usize {
        if names.is_empty() {
            return 0;
        }
        let is_one = |known: &Known<Frame>| match known {
            Known::Present { type_url: of, name, .. } => of == type_url && names.contains(name),
            _ => false,
        };
        let (mut taken, others): (Vec<_>, _) = std::mem::take(&mut self.aside).into_iter().partition(is_one);
        self.aside = others;
        let (passed, others): (Vec<_>, _) = std::mem::take(&mut self.passed).into_iter().partition(is_one);
        self.passed = others;
        taken.extend(passed);
        let count = taken.len();
        self.aside.append(&mut taken);
        count
    }

    pub(super) fn due(&mut self, now: Instant, there: bool) -> Due {
        if there != self.there_since.is_some() {
            (self.there_since, self.waits_until) = (there.then_some(now), None);
        }
        let spoke = std::mem::take(&mut self.spoke);
        self.rests &= there;
        let until = match (self.there_since, self.aside.is_empty() || self.rests) {
            (None, true) => return Due::Nothing,
            (Some(since), true) => return if now >= since + AT_HAND { Due::End } else { Due::Nothing },
            (None, false) => *self.waits_until.get_or_insert(now + GRACE),
            (Some(since), false) => {
                let settles = (now + SETTLES).min(since + GOES_ON).max(now + GRACE);
                *self.waits_until.insert(self.waits_until.filter(|_| !spoke).unwrap_or(settles))
            }
        };
        if now < until {
            return Due::Nothing;
        }
        if let Some(since) = &mut self.there_since {
            // It is asked for what is served from now on, and owes a word of that.
            (*since, self.confirms) = (now, Confirms::Word);
        }
        Due::Serve
    }

    /// When that is to be looked at.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.waits_until.or(self.there_since.map(|since| since + AT_HAND))
    }

    /// What is known of stands aside still, and the origin has not spoken of.
    pub(super) fn stands_aside(&self) -> HashSet<Wish> {
        let of = |known: &Known<Frame>| match known {
            Known::Present { type_url, name, .. } | Known::Gone { type_url, name, .. } => {
                let of = (type_url.clone(), name.clone());
                (!self.said.contains(&of)).then_some((of.0, Interest::Name(of.1)))
            }
            _ => None,
        };
        self.aside.iter().chain(&self.passed).filter_map(of).collect()
    }

    /// The resources among what is served next, so much at most.
    pub(super) fn next(&self, most: usize) -> Vec<(TypeUrl, Frame)> {
        let resources = self.aside.iter().rev().take(most).filter_map(|known| match known {
            Known::Present { type_url, resource, .. } => Some((type_url.clone(), resource.value.clone())),
            _ => None,
        });
        resources.collect()
    }

    /// Serves some more of what stood aside, so much at most, with what a program made of [those](Self::next) before: while the
    /// origin is there, of what is wanted. Whether that was the last.
    pub(super) fn serve(
        &mut self,
        most: usize,
        mut made: Option<Made>,
        demand: Option<&Demand>,
        edit: &mut Edit<'_, Frame>,
    ) -> bool {
        for _ in 0..most {
            let Some(mut known) = self.aside.pop() else { break };
            if let (Some(made), Known::Present { resource, .. }) = (&mut made, &mut known) {
                match made.pop_front() {
                    Some((frame, read)) if frame == resource.value => match read {
                        Some(read) => resource.value = read,
                        None => continue,
                    },
                    // Somebody else went on meanwhile.
                    _ => {
                        self.aside.push(known);
                        break;
                    }
                }
            }
            if self.there_since.is_some() && !demand.is_some_and(|demand| wants(demand, &known)) {
                self.passed.push(known);
                continue;
            }
            let untold = match &known {
                Known::Present { type_url, name, .. } => Some((type_url.clone(), Interest::Name(name.clone()))),
                Known::Answered { type_url, collection, .. } => Some((type_url.clone(), collection.clone())),
                _ => None,
            };
            if let Known::Present { type_url, name, .. } | Known::Gone { type_url, name, .. } = &known
                && self.said.contains(&(type_url.clone(), name.clone()))
            {
                continue;
            }
            if let Known::Present { type_url, name, aliases, .. } = &mut known {
                aliases.retain(|alias| self.other_names.has(type_url, alias, name));
            }
            let is_there = edit.recall(known);
            if let Some((type_url, Interest::Name(name))) = untold.as_ref().filter(|_| is_there && self.is_of_another) {
                self.of_another.push((type_url.clone(), name.clone()));
            }
            untold.into_iter().for_each(|wish| self.is_untold(wish, is_there));
        }
        let over = self.aside.is_empty();
        if over {
            self.served(edit);
        }
        over
    }

    /// The origin is to be told that we hold this, once it is asked for it.
    fn is_untold(&mut self, (type_url, interest): Wish, is_there: bool) {
        let of = self.untold.entry(type_url).or_default();
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                if is_there {
                    of.by_glob.entry(name.glob_parent()).or_default().insert(name);
                }
            }
            collection => _ = of.collections.insert(collection),
        }
    }

    /// Nothing more of what stood aside is served now: what was passed over still stands there.
    fn served(&mut self, edit: &mut Edit<'_, Frame>) {
        self.aside.extend(self.passed.drain(..).rev());
        self.rests = !self.aside.is_empty();
        self.waits_until = None;
        if !self.rests {
            (self.said, self.other_names) = (HashSet::new(), OtherNames::default());
        }
        self.looks_after = Some(Bound::Unbounded);
        // What was not taken is not kept any longer.
        edit.note_all();
    }

    /// What the origin is told that we hold, as it is asked for something.
    pub(super) fn hold(&mut self, cache: &Cache<Frame>, (type_url, interest): &Wish, held: &mut Held) {
        let confirms = self.confirms;
        let Some(of) = self.untold.get_mut(type_url) else { return };
        let names: Vec<_> = match interest {
            Interest::Name(name) if !name.is_glob() => {
                let name = cache.canonical(type_url, name).unwrap_or(name);
                let glob = name.glob_parent();
                let names = of.by_glob.get_mut(&glob);
                let taken = names.and_then(|names| Some((names.take(name)?, names.is_empty())));
                if taken.as_ref().is_some_and(|(_, was_last)| *was_last) {
                    of.by_glob.remove(&glob);
                }
                taken.map(|(name, _)| name).into_iter().collect()
            }
            Interest::Name(glob) => of.by_glob.remove(&Some(glob.clone())).into_iter().flatten().collect(),
            Interest::Wildcard => {
                let (mut taken, covers_all) = (Vec::new(), cache.wildcard_covers_xdstp());
                of.by_glob.retain(|_, names| {
                    let (mine, others): (BTreeSet<_>, BTreeSet<_>) =
                        std::mem::take(names).into_iter().partition(|name| covers_all || name.is_opaque());
                    taken.extend(mine);
                    *names = others;
                    !names.is_empty()
                });
                taken
            }
        };
        let collection = of.collections.take(interest);
        if of.by_glob.is_empty() && of.collections.is_empty() {
            self.untold.remove(type_url);
        }
        if names.is_empty() && collection.is_none() {
            return;
        }
        let (resources, collections) = held.entry(type_url.clone()).or_default();
        collections.extend(collection);
        // Of what the origin spoke of since, it knows better.
        let stale = names.into_iter().filter(|name| cache.is_stale(type_url, name));
        resources.extend(stale.filter_map(|name| {
            let mut resource = cache.resource(type_url, &name)?.clone();
            if confirms == Confirms::Word {
                resource.version = Version::from("");
            }
            Some((name, resource))
        }));
    }

    /// Takes some of what nobody wanted: collections first, for what is in them stays as long as they do.
    pub(super) fn take_untold(&mut self, most: usize) -> Vec<Wish> {
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(type_url) = self.untold.keys().next().cloned()
        {
            let Some(of) = self.untold.get_mut(&type_url) else { break };
            while taken.len() < most
                && let Some(collection) = of.collections.pop_first()
            {
                taken.push((type_url.clone(), collection));
            }
            while taken.len() < most
                && let Some(glob) = of.by_glob.keys().next().cloned()
            {
                let names = of.by_glob.entry(glob.clone()).or_default();
                while taken.len() < most
                    && let Some(name) = names.pop_first()
                {
                    taken.push((type_url.clone(), Interest::Name(name)));
                }
                if names.is_empty() {
                    of.by_glob.remove(&glob);
                }
            }
            if of.collections.is_empty() && of.by_glob.is_empty() {
                self.untold.remove(&type_url);
            }
        }
        taken
    }
}

fn wants(demand: &Demand, known: &Known<Frame>) -> bool {
    match known {
        Known::Present { type_url, name, aliases, .. } => {
            aliases.iter().chain([name]).any(|name| demand.wants_by(type_url, name))
        }
        Known::Gone { type_url, glob, .. } => demand.wants(type_url, &Interest::Name(glob.clone())),
        Known::Answered { type_url, collection, .. } => demand.wants(type_url, collection),
        Known::TypeVersion { type_url, .. } => demand.wants_type(type_url),
        _ => true,
    }
}
