//! The releases of one scope: taken as its origin settles, and served by stages.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use xds_transport::TypeRules;
use xds_transport::wire::Node;
use xdstp_cache::TypeUrl;
use xdstp_client::federation::{Held, Origin, Scope, Unreadable};
use xdstp_client::state::Store;
use xdstp_uri::ResourceName;

use crate::config::Rollout;
use crate::lock::lock;
use crate::metrics::Counter;
use crate::relay_core::followed_origin::FollowedOrigin;
use crate::relay_core::rollout::checking::LastChecked;
use crate::relay_core::rollout::copy::Copy;
use crate::relay_core::rollout::health::{Health, Heard};
use crate::relay_core::rollout::served_content::Content;
use crate::relay_core::rollout::served_types::ServedTypes;
use crate::relay_core::rollout::tally::Tallies;
use crate::relay_core::rollout::turn::MyTurn;
use crate::relay_core::rollout_error::RolloutError;
use crate::relay_core::track::Track;
use crate::releases::{
    Act, Alone, Applied, Control, Damage, Instance, Kept, Order, Reader, Release, Settling, Stored, StoredError, Turns,
};

mod checking;
mod copy;
mod following;
mod health;
mod looking;
mod publishing;
mod served_content;
mod served_types;
mod showing;
mod tally;
mod turn;
mod unreadable;

pub use checking::Checked;
pub(crate) use health::ClientName;

/// The releases of a scope, as they are served.
pub(crate) struct Releases {
    pub(crate) rollout: Rollout,
    types: ServedTypes,
    /// Which of the relay's origins it is.
    position: usize,
    origin: Arc<dyn Origin>,
    /// The same, if it is a control plane that is followed.
    followed: Option<Arc<FollowedOrigin>>,
    rules: Arc<TypeRules>,
    slice: usize,
    instance: Instance,
    turns: Arc<dyn Turns>,
    /// It is held while a store is at work: no client waits for it.
    state: Mutex<State>,
    /// What is kept of them where this relay has them with others.
    copy: Option<Copy>,
    served: Mutex<Served>,
    /// What is shown to everybody who is shown no candidate.
    stable: Arc<Track>,
    /// How often it was asked for what the control value says to be shown, since that was done.
    shows: AtomicUsize,
    /// Whether some may be served another release since it was looked at who is.
    has_changed: AtomicBool,
    /// What others do was not heard when it was to be last.
    is_unheard: AtomicBool,
    /// Candidates that this relay halted.
    halts: Counter,
}

/// What is stable, and the candidate.
type Named = (Option<Release>, Option<Release>);

struct State {
    stored: Stored,
    settling: Settling,
    /// What the origin had when it was looked at last.
    seen: Option<Arc<Vec<Held>>>,
    /// What could not be read beside that.
    unreadable: Arc<[Unreadable]>,
    /// Something may be lacking in that.
    may_lack: bool,
    /// What was served when that changed.
    named: Named,
    /// What is on the stable track.
    shown: Option<Release>,
    /// What is in the releases that are served, or were taken last.
    contents: BTreeMap<Release, Arc<Content>>,
    /// What could not be read, and until when that is not tried again.
    unread: BTreeMap<Release, Instant>,
    /// Since when the store has an earlier state, and it cannot be read what is to be put back.
    unshown_since: Option<Instant>,
    health: Health,
    turn: MyTurn,
    /// What other relays say of their clients.
    tallies: Tallies,
    /// Something was to be written that could not be.
    is_unwritten: bool,
    /// What was said last to keep the release as it is.
    stays: Option<String>,
}

/// What clients go by.
#[derive(Default)]
struct Served {
    control: Control,
    /// A track of its own for each candidate: who had the one before must not have the next one for that.
    candidate: Option<(Release, Arc<Track>)>,
    /// What clients did since it was looked at how they are.
    heard: Heard,
    checked: Option<LastChecked>,
    told: Told,
    reader: Option<Reader>,
}

/// What is told of releases beside the control value.
#[derive(Clone, Default)]
pub(crate) struct Told {
    /// Of that value.
    pub(crate) mark: String,
    pub(crate) kept: Vec<Kept>,
    pub(crate) damaged: Vec<Damage>,
    /// The control value is damaged, or of a later format: among those is that.
    pub(crate) is_control_bad: bool,
    /// A relay wrote the control value that goes on by other stages.
    pub(crate) has_other_stages: bool,
    /// How many orders are not in the store yet.
    pub(crate) unsaved: usize,
    /// The store did not answer yet: it is what this relay knew last.
    pub(crate) is_recalled: bool,
    /// Whether there is a release that everybody is served who is served no candidate.
    pub(crate) is_served: bool,
    /// Something was to be written that could not be.
    pub(crate) is_unwritten: bool,
}

/// Where releases are kept, as one relay has it.
#[derive(Clone)]
pub struct ReleaseStore {
    store: Arc<dyn Store>,
    turns: Arc<dyn Turns>,
    copy: Option<(Arc<dyn Store>, String)>,
    is_away: bool,
}

impl ReleaseStore {
    /// A store that this relay has alone.
    pub fn own(store: Arc<dyn Store>) -> Self {
        Self { turns: Arc::new(Alone(store.clone())), store, copy: None, is_away: false }
    }

    /// One that other relays have, too: one of them publishes, and all serve what that one says.
    pub fn shared(store: Arc<dyn Store>, turns: Arc<dyn Turns>) -> Self {
        Self { store, turns, copy: None, is_away: false }
    }

    /// The same with a store that this relay has alone: what is served is copied there, and served from there while the other one
    /// does not answer as the relay starts. `of` tells the other one from any that there may be another time.
    #[must_use]
    pub fn with_copy(self, copy: Option<Arc<dyn Store>>, of: &str) -> Self {
        Self { copy: copy.map(|copy| (copy, of.to_owned())), ..self }
    }

    /// The same of a store that did not answer just now: it is not asked before it is [read](super::RelayCore::read_releases_anew).
    #[must_use]
    pub fn away(self, is_away: bool) -> Self {
        Self { is_away, ..self }
    }
}

impl Releases {
    /// What is kept of them.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn open(
        rollout: Rollout,
        (position, origin, followed): (usize, Arc<dyn Origin>, Option<Arc<FollowedOrigin>>),
        (rules, slice): (Arc<TypeRules>, usize),
        (instance, halts): (Instance, Counter),
        store: ReleaseStore,
    ) -> Result<Self, StoredError> {
        let ReleaseStore { store, turns, copy, is_away } = store;
        let scope = rollout.scope();
        let copy = copy.and_then(|(copy, of)| Copy::open(copy, &format!("{scope} of {of}")));
        let (copy, waiting) = copy.unzip();
        let mut stored = match turns.are_shared() {
            true => copy::read(store, (&scope, &rollout.stages), copy.as_ref(), waiting.unwrap_or_default(), is_away)?,
            false => Stored::open(store, &scope)?,
        };
        if turns.are_shared() {
            stored.share(&rollout.stages);
        }
        let types = ServedTypes::new(rollout.types, stored.control().stable().is_some() || stored.is_recalled());
        let settling = Settling::new(rollout.settle);
        let state = State {
            stored,
            settling,
            seen: None,
            unreadable: Arc::default(),
            may_lack: false,
            named: (None, None),
            shown: None,
            contents: BTreeMap::new(),
            unread: BTreeMap::new(),
            unshown_since: None,
            health: Health::default(),
            turn: MyTurn::default(),
            tallies: Tallies::default(),
            is_unwritten: false,
            stays: None,
        };
        let stable = Arc::new(Track::new(rules.clone(), slice));
        let (state, served, shows, has_changed) =
            (Mutex::new(state), Mutex::default(), AtomicUsize::new(0), AtomicBool::new(false));
        Ok(Self {
            rollout,
            types,
            position,
            origin,
            followed,
            rules,
            slice,
            instance,
            turns,
            state,
            copy,
            served,
            stable,
            shows,
            has_changed,
            is_unheard: AtomicBool::new(false),
            halts,
        })
    }

    /// Whether what a scope has of a type is in releases.
    pub(crate) fn have(&self, type_url: &TypeUrl, scope: &Scope) -> bool {
        let is_own = scope.origin() == self.position && scope.key.authority() == self.rollout.authority.as_deref();
        is_own && self.types.contain(type_url)
    }

    /// Where somebody is served what would be from a scope, who is served that release.
    pub(crate) fn scope(&self, of: &Scope, serves: Option<Release>) -> Arc<Scope> {
        let served = lock(&self.served);
        let candidate = served.candidate.as_ref().filter(|(release, _)| Some(*release) == serves);
        let track = candidate.map_or(&self.stable, |(_, track)| track).clone();
        drop(served);
        track.scope(of)
    }

    /// Which release a node is served, whose stream was served the other one last.
    pub(crate) fn serves(&self, node: &Node, has: Option<Release>) -> Option<Release> {
        let served = lock(&self.served);
        let serves = served.control.release_for(&self.rollout.stages, node, has);
        // What is not shown yet is served to nobody, whatever the control value says.
        let is_shown = served.candidate.as_ref().map(|(release, _)| *release) == serves;
        if is_shown { serves } else { served.control.stable() }
    }

    pub(crate) fn control(&self) -> Control {
        lock(&self.served).control.clone()
    }

    /// What is in what is stable, and in the candidate.
    ///
    /// # Errors
    /// Why that is not known.
    #[cfg(feature = "file-origin")]
    pub(crate) fn served_content(&self) -> Result<[Option<Arc<Content>>; 2], &'static str> {
        if let Some(why) = self.unknown() {
            return Err(why);
        }
        let state = lock(&self.state);
        let candidate = state.stored.control().candidate().map(|candidate| candidate.release);
        let content = |named: Option<Release>| named.and_then(|release| state.contents.get(&release).cloned());
        Ok([content(state.shown), content(candidate)])
    }

    /// How many names clients ask for that their release does not have, if the origin is followed: it may have them all the same.
    pub(crate) fn denied(&self) -> Option<usize> {
        self.followed.as_ref()?;
        let candidate = lock(&self.served).candidate.as_ref().map(|(_, track)| track.clone());
        Some(candidate.iter().chain([&self.stable]).map(|track| track.denied()).sum())
    }

    /// Which of the relay's origins they are of.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Whether there is a release that everybody is served who is served no candidate.
    pub(crate) fn are_served(&self) -> bool {
        lock(&self.served).told.is_served
    }

    /// Why it is not known what everybody is served, if it is not.
    pub(crate) fn unknown(&self) -> Option<&'static str> {
        let Served { control, told, .. } = &*lock(&self.served);
        match (told.is_served, control.stable(), told.is_recalled) {
            (true, ..) | (false, None, false) => None,
            (false, Some(_), _) => Some("what is stable cannot be read"),
            (false, None, true) => {
                Some("the store of releases did not answer yet, and this relay has no copy of what is served")
            }
        }
    }

    /// Whether what is known is what this relay knew before it began.
    pub(crate) fn are_recalled(&self) -> bool {
        lock(&self.served).told.is_recalled
    }

    /// Whether the store does not answer, or not as it is to.
    pub(crate) fn is_store_away(&self) -> bool {
        let Told { is_recalled, is_unwritten, is_control_bad, .. } = lock(&self.served).told;
        is_recalled || is_unwritten || is_control_bad || self.is_unheard.load(Ordering::Relaxed)
    }

    /// Whether orders that wait for the store are kept over a restart.
    pub(crate) fn keep_unsaved(&self) -> bool {
        self.copy.as_ref().is_some_and(Copy::keeps_waiting)
    }

    /// Whether what others do is heard.
    pub(crate) fn are_heard(&self, are: bool) {
        self.is_unheard.store(!are, Ordering::Relaxed);
    }

    /// What is told of them, all as it was at one moment. A store that is slow is not waited for.
    pub(crate) fn told(&self) -> (Control, Told) {
        let served = lock(&self.served);
        (served.control.clone(), served.told.clone())
    }

    /// What was done, and what is kept, as it was a moment ago: whoever reads it holds nothing up.
    pub(crate) fn reader(&self) -> Option<Reader> {
        lock(&self.served).reader.clone()
    }

    /// Whether other types are served from releases since this was asked last.
    pub(crate) fn have_more_types(&self) -> bool {
        self.types.are_more()
    }

    /// Whether some may be served another release since this was asked last.
    pub(crate) fn have_changed(&self) -> bool {
        self.has_changed.swap(false, Ordering::AcqRel)
    }

    /// A client is served that release.
    pub(crate) fn is_served(&self, client: ClientName, serves: Option<Release>) {
        let Served { control, heard, .. } = &mut *lock(&self.served);
        if serves.is_some() && serves == control.candidate().map(|candidate| candidate.release) {
            heard.served(client);
        }
    }

    /// A client that is served a release refused something of it, with these words.
    pub(crate) fn is_rejected(
        &self,
        (by, words): (&ClientName, &str),
        of: Option<Release>,
        type_url: &TypeUrl,
        names: &[ResourceName],
    ) {
        let Served { control, heard, .. } = &mut *lock(&self.served);
        if of.is_none() || !self.types.contain(type_url) {
            return;
        }
        if of == control.candidate().map(|candidate| candidate.release) {
            heard.refused(by, type_url, names, words);
        } else if of == control.stable() {
            heard.refused_stable(by.clone(), type_url);
        }
    }

    /// Another relay may publish.
    pub(crate) fn give_turn_back(&self) {
        lock(&self.state).turn.give_back();
    }

    /// What is not in the store yet is written, if that can be.
    pub(crate) fn flush(&self) {
        let flushed = lock(&self.state).stored.flush(&self.rollout.stages);
        self.keep_waiting();
        let scope = self.rollout.scope();
        match flushed {
            Err(error) if self.keep_unsaved() => {
                tracing::warn!(scope, "what was ordered last waits for the next start: {error}");
            }
            Err(error) => tracing::error!(scope, "what was ordered last is forgotten as this ends: {error}"),
            Ok(_) => {}
        }
    }

    /// What somebody orders is done, and served: if somebody wants it still as it is its turn, and if all is still as the mark says, where there is one. What the mark is since, is
    /// returned.
    ///
    /// # Errors
    /// Why it is not done.
    pub(crate) fn order(
        &self,
        order: &Order,
        mark: Option<&str>,
        is_wanted: &dyn Fn() -> bool,
        now: Instant,
    ) -> Result<(Applied, String), RolloutError> {
        let done = {
            let state = &mut *lock(&self.state);
            if !is_wanted() {
                return Err(RolloutError::GivenUp);
            }
            // What cannot be read is not what everybody is to have.
            if let Act::Rollback { to: Some(to) } = order.act
                && state.stored.has(to)
                && !state.contents.contains_key(&to)
            {
                let content = self.read(state, to)?;
                state.contents.insert(to, Arc::new(content));
            }
            let _ = self.awaits_newer(state, now);
            // Clients do not wait for a store that hangs.
            let is_left_alone = order.act.takes_back() && self.turns.are_shared() && state.turn.is_resting(now);
            state.stored.leave_alone(is_left_alone);
            let applied = match mark {
                Some(mark) => state.stored.apply_at(order, mark, &self.rollout.stages),
                None => state.stored.apply(order, &self.rollout.stages),
            };
            state.stored.leave_alone(false);
            (applied?, state.stored.mark())
        };
        self.keep_waiting();
        self.show(now);
        Ok(done)
    }
}
