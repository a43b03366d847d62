//! What a user of the machine tells it.

use std::sync::Arc;

use xdstp_cache::{Interest, Resource, TypeUrl};

use xdstp_uri::ResourceName;

use crate::client::intern::Intern;
use crate::client::update::UpdateId;
use crate::frame::Frame;
use crate::response::Rejected;

/// What is asked of a [`Stream`](crate::client::Stream).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Command {
    /// Ask for something: a name, which has no directives (rule 104: a locator's
    /// [`to_name`](xdstp_uri::Locator::to_name) leaves them out), a glob, or everything. Asking again for what is
    /// wanted already changes nothing.
    Subscribe(TypeUrl, Interest),
    /// Stop asking. What this interest alone covered is forgotten, its versions too (rule 54), and so is what an
    /// unfinished update brought of it: who takes updates up late leaves it out, even if it is wanted again by then.
    Unsubscribe(TypeUrl, Interest),
    /// Others hold these names, on whose behalf this stream asks: the first request of the type on a stream names them
    /// without a version, so that the origin sends each one or says that it is gone (rules 84, 151). On a stream that asked
    /// already, this says nothing; SotW has no way to ask.
    Undecided(TypeUrl, Vec<ResourceName>),
    /// These are held from before there was any stream, from this origin, and are in use: they count as what a stream
    /// brought. Of what was subscribed, before this. These collections were answered; more may be in them. Where a response
    /// is a full state (SotW), it says nothing on a stream that asked already: what is on its way may be older, and once that is
    /// not so, [`Update::lacking`](crate::client::Update::lacking) says what is not there.
    Hold(TypeUrl, Vec<(ResourceName, Resource<Frame>)>, Vec<Interest>),
    /// What is in use of a type is not what this origin gave last: another one in its place did since. Over SotW the next
    /// stream names no version of it, so that everything is sent; over delta it names none of any resource that is held, and
    /// what is unsubscribed is not.
    Forget(TypeUrl),
    /// Of these something was refused, and so what came before of them is not in use any more: the next stream names no version
    /// of it, so that it is sent again where it still counts.
    Drop(TypeUrl, Vec<ResourceName>),
    /// What comes from now on is passed through this first.
    Intern(Arc<dyn Intern>),
    /// The update was handled: the response may be acknowledged. Finish updates in the order they came.
    Finish(UpdateId, Verdict),
}

/// What the user of the machine thinks of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All of it can be used.
    Accept,
    /// Some of it cannot: each reason names a resource that is not used. The others are (rule 29).
    Reject {
        /// Every resource that is refused, and why (rule 32).
        reasons: Vec<Rejected>,
    },
}
