//! A control plane that is followed: without I/O, and by a clock that is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds_transport::Protocol;
use xdstp_cache::{Interest, SubscriberId, TypeUrl};
use xdstp_client::federation::{self, Authorities, Federation, Routes};

use super::asking::{self, Itself};
use super::gathered::Gathered;
use super::judge::{AllRefused, Judge, Judging};
use super::lacking::{Lacking, Used};
use super::references::References;
use super::standing::{Standing, Teller, Unknown};
use super::streams::Streams;
use crate::config::{Config, OriginKind};
use crate::error::Error;
use crate::etcd_origin::Reader;
use crate::file_origin::{Served, descriptors_of};
use crate::keyed_origin::{Name, shown, shown_name};
use crate::lock::lock;
use crate::relay_core::{RelayCore, ToRelease};

/// For how long names are waited for once all collections are known, before what refers to them is left out that is new: also where they
/// are known from an earlier stream, which may say otherwise by now; and where nothing is served, clients come back meanwhile.
const SETTLE: Duration = Duration::from_secs(5);
/// For how long names are waited for, and what is refused, where nothing is served that could stand in for it.
const FIRST: Duration = Duration::from_secs(60);
/// How often it is looked how the control plane is.
const LOOKED: Duration = Duration::from_secs(1);
/// How often it is looked what stands in for what waits or is refused: others may have released it, or what did is a candidate by now.
const LOOKED_AGAIN: Duration = Duration::from_secs(10);
/// For how long one that has too much is asked for nothing.
const RESTS: Duration = Duration::from_secs(60);

/// An origin that is a control plane, of which the relay knows all that there is of some collections.
pub struct FollowedServer {
    pub(super) core: Arc<RelayCore>,
    position: usize,
    federation: Arc<Federation>,
    /// Who it is, encoded.
    node: Bytes,
    waker: Waker,
    pub(super) routes: Routes,
    /// Why it may not be asked for all that is wanted.
    pub(super) refused: Arc<Mutex<Option<String>>>,
    /// What it was not asked for, for that.
    pub(super) unasked: BTreeSet<(TypeUrl, Interest)>,
    pub(super) subscribers: BTreeMap<TypeUrl, SubscriberId>,
    pub(super) gathered: Gathered,
    pub(super) judge: Arc<Judge>,
    pub(super) all_refused: AllRefused,
    streams: Arc<Streams>,
    /// Why it does not send collections of a type, as it said last.
    pub(super) withheld: BTreeMap<TypeUrl, String>,
    teller: Teller,
    wants: Vec<(TypeUrl, Interest)>,
    pub(super) stage: Stage,
    /// Something was heard that was not looked at.
    is_new: bool,
    /// What it has not said, as it was last.
    unsaid: Vec<String>,
    /// Since when the streams are answered that are.
    since: Option<Instant>,
    /// Since when all collections are known, on these streams.
    whole_since: Option<Instant>,
    /// What clients use that is not there, while nothing is served.
    used: Used,
    /// What there is was given.
    is_given: bool,
    /// Something may be lacking in that, and nothing was served that could have stood in for it.
    may_lack: bool,
    /// Something in it is as the candidate has it alone, and the control plane says something else by now.
    has_candidates: bool,
    /// What waits, as it was last: how many names, and one in words.
    waits: (usize, Option<String>),
    /// When it is looked again what stands in for what waits or is refused.
    again_at: Option<Instant>,
    looks_at: Option<Instant>,
}

/// How far it is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not at all.
    Idle,
    /// It is asked.
    Asks,
    /// It has too much, and is asked anew then.
    Rests { until: Instant },
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
        let reader = Reader::new(descriptors_of(config, origin, None)?, served);
        let judge = Judge::new(reader.of(&origin.name, ""));
        let streams = Arc::<Streams>::default();
        let is_sotw = matches!(origin.kind, OriginKind::Server { protocol: Protocol::Sotw, .. });
        let dial = |dial| Arc::new(Judging { dial, judge: judge.clone(), streams: streams.clone(), is_sotw }) as Arc<_>;
        let Some(origins) = core.origins_up_to(config, position, dial) else { return Ok(None) };
        let limits = core.limits_of_one();
        let federation = Federation::new(federation::Settings {
            origins,
            authorities: Arc::new(Authorities::new([].into(), position)),
            node: core.own_node(config),
            // One that has too much is asked anew on streams that say all anew.
            linger: config.linger.min(RESTS / 2),
            limits: limits.clone(),
            interner: Arc::default(),
            last_known_good: None,
        });
        core.follows(federation.clone(), limits);
        let refused = Arc::<Mutex<_>>::default();
        let node = core.own_node(config);
        let routes = asking::routes(&federation, &node, Itself(refused.clone()), &waker);
        let released = config.rollout.iter().map(|rollout| rollout.authority.clone()).collect();
        let wants = follow.collections.iter().map(|of| (of.type_url().into(), of.interest()));
        let mut teller = Teller::new(core, (position, origin));
        let words = "it has not answered yet".to_owned();
        teller.tell(Standing { unknown: Some(Unknown::Unsaid(words)), ..Standing::default() }, Instant::now());
        Ok(Some(Self {
            core: core.clone(),
            position,
            federation,
            node,
            waker,
            routes,
            refused,
            unasked: BTreeSet::new(),
            subscribers: BTreeMap::new(),
            gathered: Gathered::new(References::new(follow.clone(), released)),
            judge,
            all_refused: AllRefused::default(),
            streams,
            withheld: BTreeMap::new(),
            teller,
            wants: wants.collect(),
            stage: Stage::Idle,
            is_new: false,
            unsaid: Vec::new(),
            since: None,
            whole_since: None,
            used: Used::default(),
            is_given: false,
            may_lack: false,
            has_candidates: false,
            waits: (0, None),
            again_at: None,
            looks_at: None,
        }))
    }

    /// Does what is to be done. Whether anything was.
    pub fn poll(&mut self, now: Instant) -> bool {
        match self.stage {
            Stage::Rests { until } if now < until => return false,
            Stage::Idle | Stage::Rests { .. } => {
                self.gathered.begin_anew();
                for (type_url, interest) in self.wants.clone() {
                    self.subscribe(type_url, interest);
                }
                (self.stage, self.looks_at) = (Stage::Asks, Some(now));
                return true;
            }
            Stage::Asks => {}
        }
        let is_due = self.poll_timeout().is_some_and(|at| at <= now);
        let is_news = self.hear();
        if !is_news && !is_due {
            return false;
        }
        if is_news || !self.unasked.is_empty() {
            self.is_new = true;
            self.ask_all();
        }
        let too_much = self.gathered.too_much();
        match too_much.or_else(|| self.all_refused.is_over.then(|| "too much of what it sends is refused".to_owned())) {
            Some(why) => self.rest(now, why),
            None => self.look(now),
        }
        is_news
    }

    /// When to poll it at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.looks_at
    }

    /// Nobody follows it any more.
    pub(super) fn lost(&mut self, why: &str) {
        self.core.set_gathered(self.position, None);
        self.teller
            .tell(Standing { unknown: Some(Unknown::Unsaid(why.to_owned())), ..Standing::default() }, Instant::now());
    }

    /// It is asked for nothing for a while.
    fn rest(&mut self, now: Instant, why: String) {
        self.routes = asking::routes(&self.federation, &self.node, Itself(self.refused.clone()), &self.waker);
        *lock(&self.refused) = None;
        self.subscribers.clear();
        self.unasked.clear();
        self.withheld.clear();
        let until = now + RESTS;
        (self.stage, self.looks_at) = (Stage::Rests { until }, Some(until));
        self.give_up();
        self.teller.tell(Standing { unknown: Some(Unknown::Unsaid(why)), ..Standing::default() }, now);
    }

    /// It is not known what there is.
    fn give_up(&mut self) {
        (self.whole_since, self.again_at) = (None, None);
        if std::mem::take(&mut self.is_given) {
            self.gathered.forget_released();
            self.core.set_gathered(self.position, None);
        }
    }

    /// Looks how it is, and what there is to release, if anything is otherwise than at the last look.
    fn look(&mut self, now: Instant) {
        self.looks_at = Some(now + LOOKED);
        let since = self.streams.answered_since();
        let is_another = since != self.since;
        if is_another {
            // What was said on those of before may be otherwise by now.
            self.give_up();
        }
        (self.since, self.unsaid) = (since, self.unsaid());
        let unknown = self.unknown();
        if unknown.is_some() {
            self.give_up();
        } else {
            self.give(now);
        }
        let AllRefused { names, first, .. } = &self.all_refused;
        let refused = (names.len(), first.clone());
        self.teller.tell(Standing { unknown, waits: self.waits.clone(), refused }, now);
    }

    /// What there is is released from now on, if it is known by now.
    fn give(&mut self, now: Instant) {
        let since = *self.whole_since.get_or_insert(now);
        let is_due = self.again_at.is_some_and(|at| at <= now);
        if self.is_given && !self.is_new && !is_due {
            return;
        }
        let (core, position) = (&self.core, self.position);
        // Where nothing is served, all clients would lose what is not in it.
        let is_first = !core.serves_releases_of(position);
        let mut lacking = Lacking::default();
        if is_first {
            lacking = Lacking::of((core, position), &self.gathered, &self.all_refused, &mut self.used, now);
        }
        let may_lack = lacking.is_any();
        let settles_at = since + if may_lack { FIRST } else { SETTLE };
        if !self.is_given && now < settles_at {
            self.waits = lacking.in_words();
            self.looks_at = self.looks_at.map(|at| at.min(settles_at));
            return;
        }
        self.is_new = false;
        let whole = self.gathered.whole(self.all_refused.names.iter(), || core.served_of(position));
        let lacks = if whole.lacks { "; nothing is released before it is known what is served" } else { "" };
        self.waits = if is_first { lacking.in_words() } else { in_words(&whole.waits, lacks) };
        let has_candidates = whole.has_candidates;
        let stands_in = self.waits.0 > 0 || whole.lacks || !self.all_refused.names.is_empty();
        self.again_at = stands_in.then(|| now + LOOKED_AGAIN);
        if whole.lacks {
            return;
        }
        let is = (may_lack, has_candidates);
        let is_as_good = is == (self.may_lack, self.has_candidates);
        (self.may_lack, self.has_candidates) = is;
        if self.gathered.release(whole) || !self.is_given || !is_as_good {
            let content = Arc::new(self.gathered.released());
            core.set_gathered(position, Some(ToRelease { content, may_lack, has_candidates }));
        }
        self.is_given = true;
    }

    /// Why it is not known what there is.
    fn unknown(&self) -> Option<Unknown> {
        if let Some(why) = lock(&self.refused).clone() {
            return Some(Unknown::Unsaid(why));
        }
        let states: Vec<_> =
            self.federation.scopes().iter().filter_map(|scope| Some(scope.supply()?.status())).collect();
        // Of each scope, whoever feeds it.
        if self.since.is_none() || states.iter().any(|state| !state.connected) {
            let why = states.into_iter().filter(|state| !state.connected).find_map(|state| state.last_error);
            return Some(Unknown::Away(why.unwrap_or_else(|| "it does not answer".to_owned())));
        }
        (!self.unsaid.is_empty()).then(|| Unknown::Unsaid(self.unsaid.join(", ")))
    }

    /// Of which collections it has not said what there is, on the streams that there are now. Why it does not say so is no answer.
    fn unsaid(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (type_url, id) in &self.subscribers {
            let unanswered = self.routes.unanswered_collections(*id);
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

/// How many names are waited for, and one of them in words.
fn in_words(waits: &BTreeMap<Name, Name>, why: &str) -> (usize, Option<String>) {
    let words = |(name, by)| format!("{}, which {} refers to{why}", shown_name(name), shown_name(by));
    (waits.len(), waits.iter().next().map(words))
}

impl Drop for FollowedServer {
    fn drop(&mut self) {
        self.core.follows_no_more(&self.federation);
    }
}

#[cfg(test)]
pub(super) mod tests;
