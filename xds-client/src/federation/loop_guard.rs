//! What is said of relays when a stream to an origin is opened (rule 159).

use std::fmt::Display;

use tonic::metadata::MetadataMap;

/// Sees to it that no origin is asked that is, through others, who asks.
pub trait LoopGuard: Send + Sync + 'static {
    /// What this program goes by among those that ask the same origins: no two are called alike.
    fn instance(&self) -> String;

    /// Whether it goes by what it asks for, among other programs: only such asks where an answer in pieces ends.
    fn asks_for_ends(&self) -> bool {
        true
    }

    /// What an origin is told before any request.
    fn say(&self) -> MetadataMap;

    /// What it answers before any response: the relays at the far end, if it is one. They are kept while the stream lasts.
    ///
    /// # Errors
    /// Why it must not be asked.
    fn hear(&self, said: &MetadataMap) -> Result<Option<Box<dyn Behind>>, String>;
}

/// The relays at the far end of a stream; displayed as admin pages show them, which asks nothing of the federation.
pub trait Behind: Display + Send + Sync {}

impl<T: Display + Send + Sync> Behind for T {}
