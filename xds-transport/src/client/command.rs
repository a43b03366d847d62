//! What a user of the machine tells it.

use std::fmt;

use xdstp_cache::TypeUrl;
use xdstp_uri::ResourceName;

use super::update::UpdateId;
use crate::response::Rejected;

/// What is asked of a [`Stream`](super::Stream).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Command {
    /// Ask for something. Asking again for what is wanted already changes nothing.
    Subscribe(TypeUrl, Interest),
    /// Stop asking. What this interest alone covered is forgotten, its versions too (rule 54).
    Unsubscribe(TypeUrl, Interest),
    /// The update was handled: the response may be acknowledged. Finish updates in the order they came.
    Finish(UpdateId, Verdict),
}

/// What a subscription names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interest {
    /// All that the origin has for this node.
    Wildcard,
    /// One resource, or the members of a glob collection.
    Name(ResourceName),
}

impl Interest {
    /// How it stands in a request.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Wildcard => "*",
            Self::Name(name) => name.as_str(),
        }
    }
}

impl From<ResourceName> for Interest {
    /// The name `*` is the wildcard.
    fn from(name: ResourceName) -> Self {
        if name.as_str() == "*" { Self::Wildcard } else { Self::Name(name) }
    }
}

impl fmt::Display for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
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
