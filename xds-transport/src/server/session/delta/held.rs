//! What a client says that it holds: `initial_resource_versions`.

use crate::wire::DeltaDiscoveryRequest;
use crate::wire::walk::text_at;

/// Each name, as the client writes it, and the version it is held at.
pub(crate) fn entries(request: &DeltaDiscoveryRequest) -> impl Iterator<Item = (&str, &str)> {
    let entries = request.initial_resource_versions.iter();
    entries.filter_map(|entry| Some((text_at(entry, &[1])?, text_at(entry, &[2]).unwrap_or_default())))
}

/// The versions alone.
pub(crate) fn versions(request: &DeltaDiscoveryRequest) -> impl Iterator<Item = &str> {
    entries(request).map(|(_, version)| version)
}
