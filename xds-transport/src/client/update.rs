//! What the machine tells its user: the same for both protocols.

use std::collections::BTreeSet;
use std::time::Duration;

use xdstp_cache::{Interest, Resource, ResourceError, TypeUrl};
use xdstp_uri::ResourceName;

use crate::client::failure;
use crate::client::selecting::Overlapping;
use crate::frame::Frame;
use crate::response::Rejected;

/// Something that happened on a [`Stream`](crate::client::Stream).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The origin sent something, or a time ran out. Answer with [`Command::Finish`](crate::client::Command::Finish).
    Update(Update),
}

/// Names an [`Update`] until it is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpdateId(pub(crate) u64);

/// What one response changes, or time. Only what is subscribed appears in it (rule 62).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Update {
    /// What to finish it by.
    pub id: UpdateId,
    /// The type of everything in it.
    pub type_url: TypeUrl,
    /// No response said it: what lived until now, was not answered in time, or cannot be asked for.
    pub unsaid: bool,
    /// SotW `version_info`, or delta `system_version_info`, which is for people only (rule 36).
    pub version: String,
    /// New and changed resources, and those sent again unasked.
    pub changed: Vec<Changed>,
    /// Resources that came as they were because they were asked for again, by another name perhaps: who keeps what comes
    /// by what it was asked for has not seen them there (delta). And those that came as they are held after something else was
    /// refused of them, or from another server (SotW).
    pub repeated: Vec<Changed>,
    /// How many resources came beside these as they are held, in a response that says all there is whatever of it is new
    /// (SotW): who counts what comes counts them.
    pub unchanged: usize,
    /// Names that do not exist (any more). It may hold names that were never known (rule 72).
    pub removed: Vec<ResourceName>,
    /// Resources that live on for a time without being sent again (rule 112).
    pub refreshed: Vec<(ResourceName, Duration)>,
    /// The wildcard or globs that are known from now on, even if they are empty: more of them may be on its way, unless
    /// they are [`complete`](Self::complete).
    pub answered: Vec<Interest>,
    /// The wildcard or globs of which all there is has come with this: what is not there is not there. Delta says so of
    /// what is empty only; silence never does (rule 151).
    pub complete: Vec<Interest>,
    /// Names that were asked for, and that no answer brought within the time of rule 74: see
    /// [`Silence`](crate::client::Silence).
    pub missing: Vec<ResourceName>,
    /// Names that were asked for, and are not in a full state that was surely written after that (SotW): said once on a stream.
    /// What this stream brought before is [`removed`](Self::removed). What it never brought may come yet, and is missing when it
    /// does not in time (rule 76); but who has it from elsewhere has it no longer (rule 66).
    pub lacking: Vec<ResourceName>,
    /// What could not be read: it makes the response a NACK whatever the verdict.
    pub rejected: Vec<Rejected>,
    /// Resources that the origin deleted, and that stay in use because their user asked for it: see
    /// [`Stream::keep_deleted`](crate::client::Stream::keep_deleted).
    pub kept: Vec<ResourceName>,
    /// What the origin does not send, and why (TP3): a resource, a glob as a whole, or `*` for all of a type, whose error
    /// takes nothing away (see [`withheld`](Self::withheld)). It is said once, and holds until the resource comes or another error does (rule 118). Of an error that
    /// [passes](ResourceError::is_transient) what is held stays in use; of any other the name is in
    /// [`removed`](Self::removed) too, or in [`kept`](Self::kept).
    pub errors: Vec<(ResourceName, ResourceError)>,
    /// The wildcard, and the globs that something of this is of, that the origin does not send as far as is known with this, whenever
    /// it said so on the stream: mostly none. What comes of one that is not among them says that it is sent.
    ///
    /// The protocols have no word for the end of an error. One that is sent again with nothing but what is asked for by its name, or
    /// is held as it is, stays among them until something else of it comes, or the stream ends: of such a member it cannot be told
    /// whether it comes for the collection or for its name.
    pub refused: BTreeSet<Interest>,
    /// Variants of a name that are for the same parameters, which TP2 forbids: the first is what counts, the second is not
    /// used, or not any more.
    pub overlapping: Vec<Overlapping>,
}

impl Update {
    pub(crate) fn new(id: UpdateId, type_url: TypeUrl) -> Self {
        Self {
            id,
            type_url,
            unsaid: true,
            version: String::new(),
            changed: Vec::new(),
            repeated: Vec::new(),
            unchanged: 0,
            removed: Vec::new(),
            refreshed: Vec::new(),
            answered: Vec::new(),
            complete: Vec::new(),
            missing: Vec::new(),
            lacking: Vec::new(),
            rejected: Vec::new(),
            kept: Vec::new(),
            errors: Vec::new(),
            refused: BTreeSet::new(),
            overlapping: Vec::new(),
        }
    }

    /// The wildcard or globs that the origin does not send, for a reason that says nothing of what is in them: they are not answered
    /// with this, whatever was said before, and nothing is gone for it.
    pub fn withheld(&self) -> impl Iterator<Item = Interest> {
        self.errors.iter().filter_map(|(name, error)| failure::withheld(name, error))
    }
}

/// A resource of an [`Update`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Changed {
    /// Its name.
    pub name: ResourceName,
    /// Its content, at the version the origin gave it or else at the hash of its content.
    pub resource: Resource<Frame>,
    /// It came again as it was, and not because we asked: who depends on it must see it again (rule 124).
    pub touched: bool,
}
