//! What a subscriber wants of one type.

use std::fmt;

use xdstp_uri::ResourceName;

/// One thing a subscriber asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interest {
    /// Every resource of the type: `*`, or no names at all where that means the same.
    Wildcard,
    /// One resource, or the members of a glob.
    Name(ResourceName),
}

impl Interest {
    /// The name as the wire carries it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Wildcard => "*",
            Self::Name(name) => name.as_str(),
        }
    }

    /// Whether it can match more than one resource.
    pub fn is_collection(&self) -> bool {
        match self {
            Self::Wildcard => true,
            Self::Name(name) => name.is_glob(),
        }
    }
}

impl fmt::Display for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<ResourceName> for Interest {
    fn from(name: ResourceName) -> Self {
        if name.as_str() == "*" { Self::Wildcard } else { Self::Name(name) }
    }
}
