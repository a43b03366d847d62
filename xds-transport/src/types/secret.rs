//! Types whose resources are nobody's to see.

/// Whether the resources of a type are secrets: those of Envoy (SDS), those of anybody who calls them so, and lists of them
/// (TP1). They are not shown, and not written down in clear text.
///
/// ```
/// use xds_transport::is_secret;
///
/// assert!(is_secret("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"));
/// assert!(is_secret("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.SecretCollection"));
/// assert!(!is_secret("type.googleapis.com/envoy.config.cluster.v3.Cluster"));
/// ```
pub fn is_secret(type_url: &str) -> bool {
    // Of whatever host and package the type is said to be.
    let name = type_url.rsplit(['/', '.']).next().unwrap_or_default();
    matches!(name, "Secret" | "SecretCollection")
}
