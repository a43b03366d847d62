//! Where a resource says that others come from.

use prost::Message;
use thiserror::Error;
use xds_transport::wire;
use xds_transport::wire::config_source::ConfigSourceSpecifier;

/// Where a resource of a program says that others come from, or that load is reported: an `envoy.config.core.v3.ConfigSource`, of
/// which gRPC takes two (gRFC A47).
///
/// ```
/// use xdstp_client::ConfigSource;
///
/// // `lrs_server: { self: {} }` of a cluster, as it is encoded.
/// assert_eq!(ConfigSource::parse(b"\x2a\x00")?, ConfigSource::SelfConfigSource);
/// let wrong = ConfigSource::parse(b"\x42\x00").unwrap_err();
/// assert_eq!(wrong.to_string(), "a config source is `ads` or `self`, and this one is `path_config_source`");
/// # Ok::<(), xdstp_client::ConfigSourceError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConfigSource {
    /// `ads`: the servers that the bootstrap has for the name.
    Ads,
    /// `self`: the server that sent the resource.
    SelfConfigSource,
}

/// A [`ConfigSource`] that stands beside a name, with the authorities whose names it has: see
/// [`Client::beside`](crate::Client::beside).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdjacentSource {
    /// Which it is.
    pub source: ConfigSource,
    /// The authorities that it may be used for (TP1), as they are written there.
    pub authorities: Vec<String>,
}

/// Why a config source is of no use.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ConfigSourceError {
    /// It is another one.
    #[error("a config source is `ads` or `self`, and this one is `{field}`")]
    Unsupported {
        /// The field that is set.
        field: &'static str,
    },
    /// It says nothing.
    #[error("a config source is `ads` or `self`, and this one says neither")]
    Missing,
    /// It is no config source.
    #[error("a config source that cannot be read: {0}")]
    Unreadable(#[from] prost::DecodeError),
}

impl ConfigSource {
    /// Reads an encoded one.
    ///
    /// # Errors
    /// When it is neither `ads` nor `self`.
    pub fn parse(message: &[u8]) -> Result<Self, ConfigSourceError> {
        AdjacentSource::parse(message).map(|adjacent| adjacent.source)
    }

    fn of(specifier: Option<ConfigSourceSpecifier>) -> Result<Self, ConfigSourceError> {
        let unsupported = |field| Err(ConfigSourceError::Unsupported { field });
        match specifier {
            Some(ConfigSourceSpecifier::Ads(_)) => Ok(Self::Ads),
            Some(ConfigSourceSpecifier::Self_(_)) => Ok(Self::SelfConfigSource),
            Some(ConfigSourceSpecifier::Path(_)) => unsupported("path"),
            Some(ConfigSourceSpecifier::PathConfigSource(_)) => unsupported("path_config_source"),
            Some(ConfigSourceSpecifier::ApiConfigSource(_)) => unsupported("api_config_source"),
            None => Err(ConfigSourceError::Missing),
        }
    }
}

impl AdjacentSource {
    /// Reads an encoded one.
    ///
    /// # Errors
    /// When it is neither `ads` nor `self`.
    pub fn parse(message: &[u8]) -> Result<Self, ConfigSourceError> {
        let wire::ConfigSource { config_source_specifier, authorities } = wire::ConfigSource::decode(message)?;
        let authorities = authorities.into_iter().map(|authority| authority.name).collect();
        Ok(Self { source: ConfigSource::of(config_source_specifier)?, authorities })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_beside_a_name_lists_authorities() {
        let adjacent = AdjacentSource::parse(b"\x3a\x03\x0a\x01a\x1a\x00\x3a\x03\x0a\x01b").unwrap();
        assert_eq!((adjacent.source, adjacent.authorities), (ConfigSource::Ads, vec!["a".to_owned(), "b".to_owned()]));
        assert!(AdjacentSource::parse(b"\x3a\x03\x0a\x01a").is_err());
    }

    #[test]
    fn r029_a_config_source_is_ads_or_self_and_another_is_named() {
        assert_eq!(ConfigSource::parse(b"\x1a\x00"), Ok(ConfigSource::Ads));
        // With the version and the timeout that Envoy's have, too.
        assert_eq!(ConfigSource::parse(b"\x30\x02\x2a\x00\x22\x00"), Ok(ConfigSource::SelfConfigSource));
        for (message, field) in [
            (&b"\x0a\x01x"[..], "path"),
            (b"\x42\x00", "path_config_source"),
            (b"\x12\x02\x08\x02", "api_config_source"),
            // Of several that are said the last counts.
            (b"\x1a\x00\x12\x00", "api_config_source"),
        ] {
            assert_eq!(ConfigSource::parse(message), Err(ConfigSourceError::Unsupported { field }));
        }
        assert_eq!(ConfigSource::parse(b"\x30\x02"), Err(ConfigSourceError::Missing));
        assert!(matches!(ConfigSource::parse(b"\x2a\x05"), Err(ConfigSourceError::Unreadable(_))));
    }
}
