//! What survives a restart of what scopes know.

use std::sync::Arc;

use xds_transport::Frame;
use xdstp_cache::Known;

use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;

/// What is kept of a scope.
#[derive(Default)]
#[non_exhaustive]
pub struct Recollection {
    /// What was known of it.
    pub known: Vec<Known<Frame>>,
    /// Not all of that is what the servers said that would be asked now: they are asked for all of it, and told no version.
    pub is_of_another: bool,
}

/// Where the last that origins said is kept, to be served before they answer again. What a scope hears is
/// [taken](Scope::take_unsaved) from it by whoever keeps it, in his own time, and newest state only: nothing queues up, and
/// nobody waits for him.
pub trait LastKnownGood: Send + Sync {
    /// What is kept of a scope that is about to be made, of an origin by position; nothing of `None` is to be kept. It is
    /// called while nobody else gets a scope: it returns at once, and asks nothing of the federation.
    fn load(&self, key: &ScopeKey, origin: usize) -> Option<Recollection>;

    /// A scope is not there any more; what is kept of it is not either once that is taken that it noted, which is older than
    /// what the next scope of its key notes. It is called while nobody gets a scope, and returns at once.
    fn dropped(&self, scope: Arc<Scope>);
}
