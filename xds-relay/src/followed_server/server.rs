//! A control plane that is followed: without I/O, and by a clock that is an argument.

mod asking;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds_transport::server::{NodeError, Source as _};
use xdstp_cache::{Interest, SubscriberId, TypeUrl};
use xdstp_client::federation::{self, Authorities, Client, Federation, NodeGroup, OverLimit, Routes};

use super::gathered::Gathered;
use super::judge::{Judge, Judging, encoded};
use super::streams::Streams;
use crate::config::{Config, Origin};
use crate::error::Error;
use crate::etcd_origin::Reader;
use crate::file_origin::{Served, descriptors_of};
use crate::keyed_origin::{
    Contents, Followed, Follower, GRACE, HELD, Keeper, Next, READ_LOOKED, READ_WITHIN, Relayed, Teller, shown,
    shown_name,
};
use crate::lock::lock;
use crate::relay_core::{LimitError, RelayCore};

/// As people call it.
const KEEPER: &str = "the control plane";
/// All that it has is one part.
const ALL: &str = "";
/// How long what is asked for may have no answer before that is said, and before what there is beside it is served. It is longer than
/// the silence that ends an answer.
const LATE: Duration = Duration::from_secs(20);
/// How often it is looked how the control plane is.
const LOOKED: Duration = Duration::from_secs(1);
/// For how long one that has too much is asked for nothing.
const RESTS: Duration = Duration::from_secs(60);

/// An origin that is a control plane, of which the relay holds all that there is.
pub struct FollowedServer {
    core: Arc<RelayCore>,
    federation: Arc<Federation>,
    /// Who it is, encoded.
    node: Bytes,
    waker: Waker,
    routes: Routes,
    /// Why it may not be asked for all that is wanted.
    refused: Arc<Mutex<Option<String>>>,
    /// What it was not asked for, for that.
    unasked: BTreeSet<(TypeUrl, Interest)>,
    subscribers: BTreeMap<TypeUrl, SubscriberId>,
    gathered: Gathered,
    judge: Arc<Judge>,
    streams: Arc<Streams>,
    /// Why it does not send collections of a type, as it said last.
    withheld: BTreeMap<TypeUrl, String>,
    followed: Arc<Mutex<Followed<Reader, Relayed>>>,
    reader: Reader,
    keeper: Option<Keeper>,
    wants: Vec<(TypeUrl, Interest)>,
    stage: Stage,
    has_remembered: bool,
    /// What removes much is looked at again then.
    again_at: Option<Instant>,
    /// What counts was otherwise at the last look than before.
    has_changed: bool,
    /// What it had not said by then.
    late: Option<String>,
    /// Since when something has no answer.
    waits_since: Option<Instant>,
    /// When what was known before a restart is served.
    grace_at: Option<Instant>,
    looks_at: Option<Instant>,
}

/// How far it is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not at all.
    Idle,
    /// What was known before a restart is read, until then at the latest.
    Reads { until: Instant },
    /// It was asked, and has not said all.
    Asks,
    /// It has too much, and is asked anew then.
    Rests { until: Instant },
    /// It said all there is, and what changes since.
    Follows,
}

/// The relay, as the one client.
struct Itself(Arc<Mutex<Option<String>>>);

impl Client for Itself {
    fn identify(&self, _: &Bytes) -> Result<NodeGroup, NodeError> {
        Ok(NodeGroup::new(Vec::new(), "follow".to_owned()))
    }

    fn refused(&self, error: &OverLimit) -> String {
        let words = LimitError::from(error.clone()).to_string();
        *lock(&self.0) = Some(words.clone());
        words
    }
}

impl FollowedServer {
    /// That of an origin of a configuration; none if it is not followed. It wakes when there is something to [do](Self::poll).
    ///
    /// # Errors
    /// What its types are read by is not good.
    pub fn new(config: &Config, position: usize, core: &Arc<RelayCore>, waker: Waker) -> Result<Option<Self>, Error> {
        let Some((origin, follow)) = config.origins.get(position).and_then(|of| Some((of, of.follow.as_ref()?))) else {
            return Ok(None);
        };
        let served = Served::by(config, &origin.name);
        let reader = Reader::new(descriptors_of(config, origin, None)?, served.clone());
        let reader = reader.of(&origin.name, "");
        let judge = Judge::new(reader.clone());
        let streams = Arc::<Streams>::default();
        let dial = |dial| Arc::new(Judging { dial, judge: judge.clone(), streams: streams.clone() }) as Arc<_>;
        let Some(origins) = core.origins_up_to(config, position, dial) else { return Ok(None) };
        let limits = core.limits_of_one();
        let federation = Federation::new(federation::Settings {
            origins,
            authorities: Arc::new(Authorities::new([].into(), position)),
            node: core.own_node(config),
            linger: config.linger,
            limits: limits.clone(),
            interner: Arc::default(),
            last_known_good: None,
        });
        core.follows(federation.clone(), limits);
        let refused = Arc::<Mutex<_>>::default();
        let node = core.own_node(config);
        let routes = asking::routes(&federation, &node, Itself(refused.clone()), &waker);
        let relayed = Relayed::new(core.clone(), (position, origin), KEEPER, core.metrics().followed(&origin.name));
        let follower = Follower::new(Contents::new(reader.clone()), [ALL]);
        let keeper = core.state.clone().map(|of| Keeper::new(of, position, &origin.name, identity(config, origin)));
        let wants = follow.collections.iter().filter(|of| of.is_several());
        Ok(Some(Self {
            core: core.clone(),
            federation,
            node,
            waker,
            routes,
            refused,
            unasked: BTreeSet::new(),
            subscribers: BTreeMap::new(),
            gathered: Gathered::new(&follow.collections, served),
            judge,
            streams,
            withheld: BTreeMap::new(),
            followed: Arc::new(Mutex::new(Followed::new(follower, Teller::new(relayed, KEEPER)))),
            reader,
            keeper,
            wants: wants.map(|of| (of.type_url().into(), of.interest())).collect(),
            stage: Stage::Idle,
            has_remembered: false,
            again_at: None,
            has_changed: false,
            late: None,
            waits_since: None,
            grace_at: None,
            looks_at: None,
        }))
    }

    /// What is known of it.
    pub(super) fn followed(&self) -> Arc<Mutex<Followed<Reader, Relayed>>> {
        self.followed.clone()
    }

    /// Does what is to be done. Whether anything was.
    pub fn poll(&mut self, now: Instant) -> bool {
        match self.stage {
            Stage::Idle => {
                if let Some(keeper) = &self.keeper {
                    keeper.keep(&self.followed, &self.reader, (ALL, ""));
                }
                (self.stage, self.looks_at) = (Stage::Reads { until: now + READ_WITHIN }, Some(now));
                return true;
            }
            Stage::Reads { until } if now < until && !lock(&self.followed).follower.was_read() => {
                self.looks_at = Some(now + READ_LOOKED);
                return false;
            }
            Stage::Reads { .. } => {
                self.begin(now);
                return true;
            }
            Stage::Rests { until } if now < until => return false,
            Stage::Rests { .. } => {
                self.gathered.begin_anew();
                self.begin(now);
                return true;
            }
            Stage::Asks | Stage::Follows => {}
        }
        let is_due = self.poll_timeout().is_some_and(|at| at <= now);
        let is_news = self.hear();
        if !is_news && !is_due {
            return false;
        }
        // Each look at all that there is is work in proportion to that.
        let is_quiet = !is_news && !self.has_changed && self.stage == Stage::Follows && self.again_at.is_none();
        let is_quiet = is_quiet && self.unasked.is_empty();
        if !is_quiet {
            self.ask_all();
        }
        match self.gathered.too_much() {
            Some(why) => self.rest(now, why),
            None => self.look(now, is_quiet),
        }
        is_news
    }

    fn ask_all(&mut self) {
        if self.stage == Stage::Asks {
            self.remember();
        }
        while self.ask() && self.hear() {}
        if self.ask_again() && self.hear() {
            while self.ask() && self.hear() {}
        }
    }

    /// It is asked for nothing for a while, and all that counts stays.
    fn rest(&mut self, now: Instant, why: String) {
        self.routes = asking::routes(&self.federation, &self.node, Itself(self.refused.clone()), &self.waker);
        *lock(&self.refused) = None;
        self.subscribers.clear();
        self.unasked.clear();
        self.withheld.clear();
        let until = now + RESTS;
        self.stage = Stage::Rests { until };
        (self.again_at, self.grace_at, self.waits_since, self.looks_at) = (None, None, None, Some(until));
        let mut followed = lock(&self.followed);
        (followed.away, followed.late) = (BTreeMap::new(), Some(why));
        followed.follower.fall_back();
        followed.tell();
    }

    /// When to poll it at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.again_at, self.grace_at, self.looks_at].into_iter().flatten().min()
    }

    fn begin(&mut self, now: Instant) {
        for (type_url, interest) in self.wants.clone() {
            self.subscribe(type_url, interest);
        }
        self.stage = Stage::Asks;
        self.grace_at = self.keeper.as_ref().map(|_| now + GRACE);
        self.looks_at = Some(now);
    }

    /// What was known before a restart counts, once it was read.
    fn remember(&mut self) {
        let followed = lock(&self.followed);
        if self.has_remembered || !followed.follower.was_read() {
            return;
        }
        self.has_remembered = true;
        for (type_url, name, resource) in followed.follower.held() {
            if let Some(value) = encoded(&name, &resource) {
                self.gathered.remember((type_url, name), value, resource.value.any());
            }
        }
    }

    /// Looks how it is, and what of what it said counts, unless nothing is otherwise than at the last look.
    fn look(&mut self, now: Instant, is_quiet: bool) {
        self.looks_at = Some(now + LOOKED);
        let away = self.away(now);
        if !is_quiet {
            self.late = self.late();
        }
        let late = self.late.clone();
        let is_late = late.is_some() && now.saturating_duration_since(*self.waits_since.get_or_insert(now)) >= LATE;
        self.waits_since = self.waits_since.filter(|_| late.is_some());
        // Whoever refuses to ask for all that is wanted lets nothing of it count.
        let stuck = lock(&self.refused).clone();
        if stuck.is_none() && !is_quiet {
            self.has_changed = self.count(now, late.is_some(), is_late);
        }
        let mut followed = lock(&self.followed);
        if self.grace_at.take_if(|at| *at <= now).is_some() {
            followed.fall_back();
        }
        followed.away = away.into_iter().map(|why| (ALL.to_owned(), why)).collect();
        followed.late = stuck.or(late.filter(|_| is_late));
        followed.tell();
    }

    /// Whether anything counts that did not before.
    fn count(&mut self, now: Instant, is_waiting: bool, is_late: bool) -> bool {
        if self.again_at.is_some_and(|at| now < at) {
            return false;
        }
        // At first it is all that there is, or some of it.
        if is_waiting && self.stage == Stage::Asks {
            self.again_at = self.again_at.map(|_| now + LOOKED);
            if is_late && !self.gathered.is_empty() {
                lock(&self.followed).follower.begun(ALL, &self.gathered.begin(), now);
            }
            return true;
        }
        // That it is still so, only the control plane can say.
        if self.again_at.is_some() && !self.is_said_again(now) {
            self.again_at = Some(now + LOOKED);
            return false;
        }
        let mut followed = lock(&self.followed);
        let next = match (self.stage, self.again_at) {
            (Stage::Follows, None) => match self.gathered.changes() {
                changes if changes.is_empty() => return false,
                changes => followed.follower.told(ALL, &changes, now),
            },
            (..) => followed.follower.listed(ALL, self.gathered.all(), now),
        };
        match next {
            Next::List(at) => self.again_at = Some(at),
            Next::Watch => {
                (self.stage, self.again_at) = (Stage::Follows, None);
                self.gathered.count();
            }
        }
        true
    }

    /// Whether all that there is was said, by who answers for as long as a removal is held: on a stream that is only open nobody says
    /// anything, and what one says that is new may not be all.
    fn is_said_again(&mut self, now: Instant) -> bool {
        let since = self.streams.answered_since();
        since.is_some_and(|since| now.saturating_duration_since(since) >= HELD) && self.unsaid().is_empty()
    }

    /// Why it cannot be reached, if that is so for a while.
    fn away(&self, now: Instant) -> Option<String> {
        let since = now.checked_sub(GRACE)?;
        self.federation.scopes().iter().find_map(|scope| scope.supply()?.unreachable_since(since))
    }

    /// What it has not said, if anything.
    fn late(&mut self) -> Option<String> {
        let is_said = self.stage == Stage::Follows && self.again_at.is_none();
        let mut all = if is_said { Vec::new() } else { self.unsaid() };
        let mut names = self.gathered.unanswered();
        all.extend(names.next().map(|name| format!("it has not said what {} is", shown_name(name))));
        let more = names.count();
        all.extend((more > 0).then(|| format!("nor what {more} more are")));
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Of which collections it has not said what there is, on the streams that there are now. Why it does not say so is no answer.
    fn unsaid(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        for (type_url, id) in &self.subscribers {
            let unanswered = self.routes.visit(*id, &mut |_, _| ());
            let message_type = type_url.as_str().rsplit('/').next().unwrap_or_default();
            if unanswered.refused > 0 {
                let why = self.withheld.get(type_url).map(|why| format!(": {}", shown(why))).unwrap_or_default();
                all.push(format!("it refuses to say which of {message_type} there are{why}"));
            }
            if unanswered.collections + unanswered.incomplete > 0 {
                all.push(format!("it has not said which of {message_type} there are"));
            }
        }
        all
    }
}

impl Drop for FollowedServer {
    fn drop(&mut self) {
        self.core.follows_no_more(&self.federation);
    }
}

/// What tells what it said from what others did: another node is told otherwise, and servers that take the place of others go on with
/// what those said.
fn identity(config: &Config, origin: &Origin) -> [String; 3] {
    ["server".to_owned(), origin.name.clone(), format!("{:?}", config.node)]
}

#[cfg(test)]
mod tests;
