//! Why something is denied: for counters, and for the lines that are written of it.

use super::Metrics;

/// The target of these lines.
pub(crate) const AUDIT: &str = "audit";

/// Why something is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// No rule is for the client.
    Client,
    /// It may not be the node that it says it is.
    Node,
    /// It may not ask for the type.
    Type,
    /// It may not ask for the name.
    Name,
    /// It may not ask for all of a type.
    Wildcard,
    /// It may ask for the name, and not for what that stands for.
    Alias,
    /// No aggregation rule is for what it asks for, and that is not served.
    Aggregation,
    /// It may not ask what all clients have.
    ClientStatus,
    /// It carries no token for an admin page.
    Admin,
}

impl Denial {
    pub(crate) const ALL: [Self; 9] = [
        Self::Client,
        Self::Node,
        Self::Type,
        Self::Name,
        Self::Wildcard,
        Self::Alias,
        Self::Aggregation,
        Self::ClientStatus,
        Self::Admin,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Node => "node",
            Self::Type => "type",
            Self::Name => "name",
            Self::Wildcard => "wildcard",
            Self::Alias => "alias",
            Self::Aggregation => "aggregation",
            Self::ClientStatus => "client_status",
            Self::Admin => "admin",
        }
    }
}

impl Metrics {
    /// Makes denials visible before there are any.
    pub fn declare_denials(&self) {
        Denial::ALL.into_iter().for_each(|reason| _ = self.downstream_denied.with_label_values(&[reason.as_str()]));
    }

    /// Something was denied.
    pub(crate) fn downstream_denied(&self, reason: Denial) {
        self.downstream_denied.with_label_values(&[reason.as_str()]).inc();
    }
}
