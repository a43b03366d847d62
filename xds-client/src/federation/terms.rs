//! On which terms a program has what comes from an origin.

use std::sync::Arc;
use std::time::Duration;

use crate::federation::states::Rules;
use crate::federation::validators::{Trust, Validators};

/// What holds where a program itself is served, and not clients of it: who uses it is one node, what is decoded is decoded
/// once, and errors are told as gRFC A88 has them.
#[derive(Clone, Debug)]
pub struct Terms {
    /// By the positions of the origin's servers.
    pub of_servers: Vec<ServerTerms>,
    /// What the program makes of resources.
    pub validators: Arc<Validators>,
}

/// What holds of what one server says.
#[derive(Clone, Debug)]
pub struct ServerTerms {
    /// What it is called.
    pub name: Arc<str>,
    /// What becomes of resources.
    pub rules: Rules,
    /// How long a name may be without an answer, once it is asked for on a stream.
    pub patience: Duration,
    /// `trusted_xds_server` (gRFC A81): it may set what concerns security.
    pub trusted: bool,
}

impl Terms {
    pub(crate) fn of(&self, server: usize) -> ServerTerms {
        self.of_servers.get(server).cloned().unwrap_or_default()
    }

    /// Whether what was made of what came from one server may be used for what comes from another.
    pub(crate) fn trusts_all_alike(&self) -> bool {
        self.of_servers.iter().all(|server| server.trusted) || !self.of_servers.iter().any(|server| server.trusted)
    }

    pub(crate) fn trust(&self, server: usize) -> Trust {
        match self.of_servers.get(server) {
            Some(server) if server.trusted => Trust::Trusted,
            _ => Trust::Untrusted,
        }
    }
}

impl Default for ServerTerms {
    fn default() -> Self {
        Self { name: "".into(), rules: Rules::default(), patience: Duration::ZERO, trusted: false }
    }
}

/// Why no server can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The one, or the last of those that are asked.
    pub server: Arc<str>,
    /// Why, for people.
    pub reason: Arc<str>,
}
