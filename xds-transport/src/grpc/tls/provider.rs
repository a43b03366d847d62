//! Whose cryptography it is.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// The cryptography that everything here is made with: *ring*, or AWS-LC by the feature `tls-aws-lc`.
///
/// ```
/// let config = rustls::ServerConfig::builder_with_provider(xds_transport::grpc::tls::provider())
///     .with_safe_default_protocol_versions()?;
/// # Ok::<(), rustls::Error>(())
/// ```
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    #[cfg(feature = "tls-aws-lc")]
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    #[cfg(not(feature = "tls-aws-lc"))]
    let provider = rustls::crypto::ring::default_provider();
    Arc::new(provider)
}
