//! The message types that files may use.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::GzDecoder;
use prost_reflect::{DescriptorPool, MessageDescriptor};

use super::validate::{Options, Validator};

/// Made by `cargo xtask descriptor`.
const BUILT_IN: &[u8] = include_bytes!("../../descriptors/envoy-types-0.7.7.binpb.gz");
/// A descriptor set larger than this, uncompressed, is not one: Envoy's own with all comments is 10 MiB.
const MAX_BYTES: u64 = 64 << 20;
pub(super) const ANY: &str = "google.protobuf.Any";

/// The descriptors of the message types that files may use.
///
/// Decoded they take about 18 MB, so make them only when there are files to read. Cloning is cheap.
#[derive(Clone)]
pub struct Descriptors {
    pub(super) pool: DescriptorPool,
    pub(super) any: MessageDescriptor,
    options: Arc<Options>,
    /// There is one if the rules in the options are applied.
    pub(super) validator: Option<Arc<Validator>>,
}

/// A descriptor set cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptorsError {
    /// The file cannot be read.
    #[error("{}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The bytes are not a descriptor set that is complete.
    #[error("{file}: not a usable descriptor set")]
    Invalid {
        /// The file, or a name for the built-in set.
        file: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Descriptors {
    /// Envoy's configuration types, as of the `envoy-types` release that the relay was built with.
    ///
    /// # Errors
    /// None in a sound build: the set is part of the program.
    pub fn built_in() -> Result<Self, DescriptorsError> {
        Self::decode(BUILT_IN).map_err(|source| DescriptorsError::Invalid { file: "built-in types".into(), source })
    }

    /// Types from a file: a serialized `FileDescriptorSet` with its imports (`protoc --include_imports
    /// --descriptor_set_out`), plain or compressed with gzip.
    ///
    /// # Errors
    /// The file cannot be read, or is not such a set, or lacks `google.protobuf.Any`.
    pub fn load(file: &Path) -> Result<Self, DescriptorsError> {
        let bytes =
            std::fs::read(file).map_err(|source| DescriptorsError::Unreadable { file: file.to_owned(), source })?;
        Self::decode(&bytes).map_err(|source| DescriptorsError::Invalid { file: file.display().to_string(), source })
    }

    /// The same types, whose resources must keep the rules of `validate.proto` that are options in the set, as Envoy has it:
    /// what breaks one is an error of [`load`](super::load()) and of all else that reads texts. Without this they are not looked
    /// at.
    ///
    /// ```
    /// use xds_relay::file_origin::{Descriptors, load_embedded};
    ///
    /// let descriptors = Descriptors::built_in()?.with_validation();
    /// let text = r#"resources: [{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: ""}]"#;
    /// let error = load_embedded(&[("a.yaml", text)], &descriptors).unwrap_err();
    /// assert_eq!(error.path, "resources[0].name");
    /// assert_eq!(error.reason, "expected at least 1 character, found none; in a Cluster without a name");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_validation(self) -> Self {
        Self { validator: Some(Arc::new(Validator::new(self.options.clone()))), ..self }
    }

    /// The same types, whose rules are not looked at.
    pub(crate) fn without_validation(&self) -> Self {
        Self { validator: None, ..self.clone() }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let mut set = Vec::new();
        if bytes.starts_with(&[0x1f, 0x8b]) {
            GzDecoder::new(bytes).take(MAX_BYTES + 1).read_to_end(&mut set)?;
        } else {
            set.extend_from_slice(bytes);
        }
        if set.len() as u64 > MAX_BYTES {
            return Err(format!("more than {MAX_BYTES} bytes").into());
        }
        let pool = DescriptorPool::decode(set.as_slice())?;
        let any = pool.get_message_by_name(ANY).ok_or_else(|| format!("{ANY} is missing"))?;
        let options = Arc::new(Options::read(&set)?);
        Ok(Self { pool, any, options, validator: None })
    }
}

impl fmt::Debug for Descriptors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Descriptors").field("files", &self.pool.files().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_set_knows_what_a_mesh_uses() {
        let pool = Descriptors::built_in().unwrap().pool;
        for name in [
            "envoy.config.listener.v3.Listener",
            "envoy.config.listener.v3.ListenerCollection",
            "envoy.config.endpoint.v3.LbEndpoint",
            "envoy.service.discovery.v3.Resource",
            "envoy.service.runtime.v3.Runtime",
            "envoy.extensions.transport_sockets.tls.v3.Secret",
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
            "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
            "xds.type.matcher.v3.Matcher",
            "google.protobuf.Struct",
        ] {
            assert!(pool.get_message_by_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_set_in_a_file_may_be_compressed_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("set");
        let mut plain = Vec::new();
        GzDecoder::new(BUILT_IN).read_to_end(&mut plain).unwrap();
        for bytes in [BUILT_IN, &plain] {
            std::fs::write(&file, bytes).unwrap();
            let messages = Descriptors::load(&file).unwrap().pool.all_messages().count();
            assert_eq!(messages, Descriptors::built_in().unwrap().pool.all_messages().count());
        }
    }

    #[test]
    fn a_file_that_is_no_descriptor_set_is_refused() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(matches!(Descriptors::load(&file), Err(DescriptorsError::Invalid { .. })));
        assert!(matches!(Descriptors::load(&file.join("absent")), Err(DescriptorsError::Unreadable { .. })));
    }
}
