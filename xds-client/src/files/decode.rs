//! From the bytes of a file to resources.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use xds_transport::{Response, TypeRules};
use xdstp_cache::TypeUrl;

use crate::federation::Held;

/// Reads what is in a file. JSON and YAML take the descriptors of all types that may be in them, which a program has that needs
/// them: `xds_relay::file_origin::Descriptors` are such. A closure is one, too.
pub trait Decode: Send + Sync + 'static {
    /// The resources of a file. What is read next comes after: it returns soon.
    ///
    /// # Errors
    /// Why it is of no use, in a sentence: what was there before stays.
    fn decode(&self, file: &Path, content: &[u8]) -> Result<Vec<Held>, String>;
}

impl<F: Fn(&Path, &[u8]) -> Result<Vec<Held>, String> + Send + Sync + 'static> Decode for F {
    fn decode(&self, file: &Path, content: &[u8]) -> Result<Vec<Held>, String> {
        self(file, content)
    }
}

/// Files that are an encoded `DiscoveryResponse` each, as Envoy's `path_config_source` reads files that end in `.pb`: resources of one
/// type, bare or wrapped, or redirects. A file without any says of which type it has none.
#[derive(Clone, Debug)]
pub struct DiscoveryResponse(Arc<TypeRules>);

impl DiscoveryResponse {
    /// By these rules about types, which say where resources have their names.
    pub fn new(rules: Arc<TypeRules>) -> Self {
        Self(rules)
    }
}

/// By those of Envoy.
impl Default for DiscoveryResponse {
    fn default() -> Self {
        Self::new(Arc::new(TypeRules::envoy()))
    }
}

impl Decode for DiscoveryResponse {
    fn decode(&self, _: &Path, content: &[u8]) -> Result<Vec<Held>, String> {
        let response =
            Response::from_sotw(Bytes::copy_from_slice(content), &self.0).map_err(|error| error.to_string())?;
        if let Some(rejected) = response.rejected.first() {
            return Err(format!("{}: {}", rejected.name, rejected.reason));
        }
        let type_url = TypeUrl::from(response.type_url.as_str());
        let all = response.resources.into_iter().chain(response.redirects);
        let held = all.filter_map(|received| {
            Some((type_url.clone(), received.name, received.frame?.into_resource(received.version)))
        });
        Ok(held.collect())
    }
}
