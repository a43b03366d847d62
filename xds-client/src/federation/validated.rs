//! What a program makes of a resource, or why it refuses it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What a program made of a resource.
pub type Validated = Arc<dyn Any + Send + Sync>;

/// Why a resource is of no use: for people, and for its server, which is sent it in a NACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(Arc<str>);

impl Reason {
    /// In words.
    pub fn new(words: impl Into<Arc<str>>) -> Self {
        Self(words.into())
    }

    /// The words.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// So that `?` makes one of any error.
impl<E: std::error::Error> From<E> for Reason {
    fn from(error: E) -> Self {
        Self(error.to_string().into())
    }
}
