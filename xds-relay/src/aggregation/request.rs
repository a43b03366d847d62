//! What a key is computed from.

use serde::Deserialize;
use xds_transport::wire::{Locality, Node};

use crate::struct_json::to_struct;

/// A request, as far as rules look at it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Who asks; a request without a node is one with an empty node.
    pub node: &'a Node,
    /// What for.
    pub type_url: &'a str,
    /// The names asked for, in the order of the request.
    pub resource_names: &'a [String],
}

/// A request as `DiscoveryRequest` in JSON, of which the node (`id`, `cluster`, `locality`, `metadata`), the type URL and the
/// resource names count. What is left out is empty; other fields are passed over.
///
/// ```
/// use xds_relay::aggregation::RequestJson;
///
/// let request: RequestJson = serde_json::from_str(r#"{"typeUrl": "a", "node": {"locality": {"subZone": "b"}}}"#)?;
/// assert_eq!(request.as_request().node.locality.as_ref().unwrap().sub_zone, "b");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Written")]
pub struct RequestJson {
    node: Node,
    type_url: String,
    resource_names: Vec<String>,
}

impl RequestJson {
    /// What it says.
    #[must_use]
    pub fn as_request(&self) -> Request<'_> {
        Request { node: &self.node, type_url: &self.type_url, resource_names: &self.resource_names }
    }
}

// `null` is as good as nothing, everywhere.
#[derive(Deserialize)]
struct Written {
    node: Option<WrittenNode>,
    #[serde(alias = "typeUrl")]
    type_url: Option<String>,
    #[serde(alias = "resourceNames")]
    resource_names: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct WrittenNode {
    id: Option<String>,
    cluster: Option<String>,
    locality: Option<WrittenLocality>,
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

#[derive(Deserialize)]
struct WrittenLocality {
    region: Option<String>,
    zone: Option<String>,
    #[serde(alias = "subZone")]
    sub_zone: Option<String>,
}

impl From<Written> for RequestJson {
    fn from(written: Written) -> Self {
        Self {
            node: written.node.map(Node::from).unwrap_or_default(),
            type_url: written.type_url.unwrap_or_default(),
            resource_names: written.resource_names.unwrap_or_default(),
        }
    }
}

impl From<WrittenNode> for Node {
    fn from(written: WrittenNode) -> Self {
        Self {
            id: written.id.unwrap_or_default(),
            cluster: written.cluster.unwrap_or_default(),
            locality: written.locality.map(|locality| Locality {
                region: locality.region.unwrap_or_default(),
                zone: locality.zone.unwrap_or_default(),
                sub_zone: locality.sub_zone.unwrap_or_default(),
            }),
            metadata: written.metadata.as_ref().map(to_struct),
            ..Self::default()
        }
    }
}
