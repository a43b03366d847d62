//! How releases are written down.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;

use crate::releases::act::{Instance, Publisher, Said, millis_of, time_of};
use crate::releases::candidate::{Candidate, Progress};
use crate::releases::control::{Control, NotTaken};
use crate::releases::manifest::{BodyHash, Item, millis};
use crate::releases::release::Release;

/// Which form this is. What has a later one is left as it is.
pub(crate) const FORMAT: u32 = 1;

/// How far a control value got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// How many changes there were.
    pub(crate) changes: u64,
    /// Whose they are, and all that come after them.
    pub(crate) begun_by: u64,
}

impl Count {
    /// Whether this was, before the other one came. What is only `recalled` was known before a restart: meanwhile a store may have been
    /// begun anew, and counts then.
    pub(crate) fn is_before(self, other: Self, recalled: bool) -> bool {
        let is_same = self.begun_by == other.begun_by && self.begun_by != 0;
        (is_same || !recalled) && self.changes < other.changes
    }
}

/// The control value, and what counts its changes.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ControlRecord {
    #[prost(uint32, tag = "1")]
    pub(crate) format: u32,
    /// For people, and against two scopes under one key.
    #[prost(string, tag = "2")]
    pub(crate) scope: String,
    /// How many changes there were.
    #[prost(uint64, tag = "3")]
    pub(crate) changes: u64,
    #[prost(bytes = "vec", optional, tag = "4")]
    stable: Option<Vec<u8>>,
    #[prost(message, optional, tag = "5")]
    candidate: Option<CandidateRecord>,
    #[prost(message, optional, tag = "6")]
    frozen: Option<SaidRecord>,
    #[prost(bytes = "vec", repeated, tag = "7")]
    refused: Vec<Vec<u8>>,
    #[prost(message, optional, tag = "8")]
    publisher: Option<PublisherRecord>,
    /// Who published first: values that another one began are no earlier or later state of this. 0 if that is not known.
    #[prost(fixed64, tag = "9")]
    pub(crate) begun_by: u64,
    #[prost(message, optional, tag = "10")]
    not_taken: Option<NotTakenRecord>,
    /// By which stages whoever wrote this goes on, where several relays may: their [print](crate::releases::Stages::print), 0 if that is
    /// not known.
    #[prost(fixed64, tag = "11")]
    pub(crate) stages: u64,
    /// A relay put this back into a store that had an earlier state, and nothing was done since: another relay may know more.
    #[prost(bool, tag = "12")]
    pub(crate) is_put_back: bool,
    /// What people ordered last: the [prints](crate::releases::ordered::Ordered) of that, of which there is always one where any version wrote it that
    /// knows of them.
    #[prost(fixed64, repeated, tag = "13")]
    pub(crate) ordered: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct NotTakenRecord {
    #[prost(bytes = "vec", tag = "1")]
    release: Vec<u8>,
    /// In milliseconds since 1970.
    #[prost(uint64, tag = "2")]
    at: u64,
}

#[derive(Clone, PartialEq, Message)]
struct CandidateRecord {
    #[prost(bytes = "vec", tag = "1")]
    release: Vec<u8>,
    #[prost(uint64, tag = "2")]
    stage: u64,
    /// In milliseconds since 1970.
    #[prost(uint64, tag = "3")]
    since: u64,
    #[prost(message, optional, tag = "4")]
    held: Option<SaidRecord>,
    #[prost(message, optional, tag = "5")]
    halted: Option<SaidRecord>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SaidRecord {
    #[prost(string, tag = "1")]
    by: String,
    #[prost(string, tag = "2")]
    why: String,
    /// In milliseconds since 1970.
    #[prost(uint64, tag = "3")]
    at: u64,
}

#[derive(Clone, PartialEq, Message)]
struct PublisherRecord {
    #[prost(fixed64, tag = "1")]
    instance: u64,
    #[prost(uint64, tag = "2")]
    term: u64,
}

/// What is kept of a release beside its parts.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReleaseRecord {
    #[prost(uint32, tag = "1")]
    pub(crate) format: u32,
    /// When it was taken, in milliseconds since 1970.
    #[prost(uint64, tag = "2")]
    pub(crate) at: u64,
    /// From where, for people.
    #[prost(string, tag = "3")]
    pub(crate) from: String,
    /// Which of all it is, in their order: clocks go back.
    #[prost(uint64, tag = "4")]
    pub(crate) number: u64,
    /// Whether all of its parts and bodies are there.
    #[prost(bool, tag = "5")]
    pub(crate) complete: bool,
    /// The hashes of its parts.
    #[prost(bytes = "vec", repeated, tag = "6")]
    pub(crate) parts: Vec<Vec<u8>>,
    /// How many resources are in it.
    #[prost(uint64, tag = "7")]
    pub(crate) resources: u64,
}

/// Some of the items of a release: as many as change together.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartRecord {
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<ItemRecord>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ItemRecord {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    variant: String,
    #[prost(string, tag = "4")]
    version: String,
    #[prost(bytes = "bytes", tag = "5")]
    wrapper: Bytes,
    /// In milliseconds.
    #[prost(uint64, optional, tag = "6")]
    ttl: Option<u64>,
    #[prost(bytes = "vec", tag = "7")]
    body: Vec<u8>,
}

impl ControlRecord {
    pub(crate) fn of(scope: &str, control: &Control, Count { changes, begun_by }: Count) -> Self {
        let id = |release: &Release| release.as_bytes().to_vec();
        Self {
            format: FORMAT,
            scope: scope.to_owned(),
            changes,
            stable: control.stable.as_ref().map(id),
            candidate: control.candidate.as_ref().map(CandidateRecord::of),
            frozen: control.frozen.as_ref().map(SaidRecord::of),
            refused: control.refused.iter().map(id).collect(),
            publisher: control
                .publisher
                .map(|publisher| PublisherRecord { instance: publisher.instance.0, term: publisher.term }),
            begun_by,
            not_taken: control
                .not_taken
                .map(|of| NotTakenRecord { release: of.release.as_bytes().to_vec(), at: millis_of(of.at) }),
            stages: 0,
            is_put_back: false,
            ordered: Vec::new(),
        }
    }

    pub(crate) fn count(&self) -> Count {
        Count { changes: self.changes, begun_by: self.begun_by }
    }

    /// None if that is no control value.
    pub(crate) fn control(&self) -> Option<Control> {
        let candidate = self.candidate.as_ref().map(CandidateRecord::candidate);
        let publisher = self.publisher.as_ref();
        Some(Control {
            stable: optional(self.stable.as_deref())?,
            candidate: candidate.map_or(Some(None), |candidate| candidate.map(Some))?,
            frozen: self.frozen.as_ref().map(SaidRecord::said),
            refused: self.refused.iter().map(|id| release(id)).collect::<Option<_>>()?,
            publisher: publisher.map(|publisher| Publisher::new(Instance(publisher.instance), publisher.term)),
            // It is told, and nothing goes by it.
            not_taken: self.not_taken.as_ref().and_then(NotTakenRecord::not_taken),
        })
    }
}

impl NotTakenRecord {
    fn not_taken(&self) -> Option<NotTaken> {
        Some(NotTaken { release: release(&self.release)?, at: time_of(self.at) })
    }
}

impl CandidateRecord {
    fn of(candidate: &Candidate) -> Self {
        let (held, halted) = match &candidate.progress {
            Progress::Open => (None, None),
            Progress::Held(said) => (Some(SaidRecord::of(said)), None),
            Progress::Halted(said) => (None, Some(SaidRecord::of(said))),
        };
        Self {
            release: candidate.release.as_bytes().to_vec(),
            stage: candidate.stage as u64,
            since: millis_of(candidate.since),
            held,
            halted,
        }
    }

    fn candidate(&self) -> Option<Candidate> {
        let progress = match (&self.held, &self.halted) {
            (None, None) => Progress::Open,
            (Some(said), None) => Progress::Held(said.said()),
            (_, Some(said)) => Progress::Halted(said.said()),
        };
        let mut candidate = Candidate::new(release(&self.release)?, time_of(self.since));
        candidate.stage = usize::try_from(self.stage).ok()?;
        candidate.progress = progress;
        Some(candidate)
    }
}

impl SaidRecord {
    pub(crate) fn of(said: &Said) -> Self {
        Self { by: said.by.clone(), why: said.why.clone(), at: millis_of(said.at) }
    }

    pub(crate) fn said(&self) -> Said {
        Said { by: self.by.clone(), why: self.why.clone(), at: time_of(self.at) }
    }
}

impl ItemRecord {
    pub(crate) fn of(item: &Item) -> Self {
        Self {
            type_url: item.type_url.to_string(),
            name: item.name.clone(),
            variant: item.variant.clone(),
            version: item.version.to_string(),
            wrapper: item.wrapper.clone(),
            ttl: item.ttl.map(millis),
            body: item.body.0.to_vec(),
        }
    }

    /// None if that is no item.
    pub(crate) fn item(&self) -> Option<Item> {
        Some(Item {
            type_url: self.type_url.as_str().into(),
            name: self.name.clone(),
            variant: self.variant.clone(),
            version: self.version.as_str().into(),
            wrapper: self.wrapper.clone(),
            ttl: self.ttl.map(Duration::from_millis),
            body: hash(&self.body)?,
        })
    }

    pub(crate) fn body(&self) -> Option<BodyHash> {
        hash(&self.body)
    }
}

pub(crate) fn hash(bytes: &[u8]) -> Option<BodyHash> {
    bytes.try_into().ok().map(BodyHash)
}

pub(crate) fn release(bytes: &[u8]) -> Option<Release> {
    bytes.try_into().ok().map(Release::of_bytes)
}

/// None if there is something that is no id.
pub(crate) fn optional(bytes: Option<&[u8]>) -> Option<Option<Release>> {
    bytes.map_or(Some(None), |bytes| release(bytes).map(Some))
}
