//! Who is told of the lives of updates.

use std::sync::Arc;

use xdstp_cache::TypeUrl;
use xdstp_client::federation::Timings;

/// Is told what takes how long with each client, as it happens, and waits for nobody.
pub trait Lives: Send + Sync {
    /// Who is told of a client that opened a session of a type, in the place of `counted`, which is to be told all the same.
    fn of_client(&self, type_url: &TypeUrl, node: &str, counted: Arc<dyn Timings>) -> Arc<dyn Timings>;
}
