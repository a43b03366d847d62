//! Where a name is served from.

/// The scope that a name belongs to, for the one node group that a stream is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// The scope of its authority.
    Authority { authority: &'a str, origin: usize },
    /// The scope of the node's group at an origin.
    Group { origin: usize },
}

impl Place<'_> {
    pub(crate) fn origin(self) -> usize {
        match self {
            Self::Authority { origin, .. } | Self::Group { origin } => origin,
        }
    }
}
