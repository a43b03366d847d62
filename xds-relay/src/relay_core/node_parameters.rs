//! Which dynamic parameters a client has by its node.

use std::collections::BTreeMap;
use std::fmt;

use xds_transport::wire::Node;
use xdstp_cache::Selector;

use crate::config::NodeField;
use crate::node_text::text_of;

/// Which parts of a node are dynamic parameters, by their keys (`node_parameters`).
#[derive(Default)]
pub(crate) struct NodeParameters(BTreeMap<String, NodeField>);

/// A parameter that a node says nothing of: it is not sent, as if it were not configured.
pub(crate) struct Lacking {
    key: String,
    field: NodeField,
}

impl NodeParameters {
    pub(crate) fn new(parameters: BTreeMap<String, NodeField>) -> Self {
        Self(parameters)
    }

    /// By what a node selects.
    pub(crate) fn selector(&self, node: &Node) -> Selector {
        let selector = Selector::Parameters(
            self.0.iter().filter_map(|(key, field)| Some((&**key, text_of(node, field)?))).collect(),
        );
        if selector.is_default() { Selector::default() } else { selector }
    }

    /// What it has none of.
    pub(crate) fn lacking(&self, node: &Node) -> Vec<Lacking> {
        let lacking = self.0.iter().filter(|(_, field)| text_of(node, field).is_none());
        lacking.map(|(key, field)| Lacking { key: key.clone(), field: field.clone() }).collect()
    }
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.key, self.field)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use xds_transport::wire::Locality;

    use super::*;
    use crate::struct_json::to_struct;

    fn parameters(fields: &[&str]) -> NodeParameters {
        NodeParameters(fields.iter().map(|field| ((*field).to_owned(), field.parse().unwrap())).collect())
    }

    #[test]
    fn every_part_with_a_value_is_a_parameter_and_every_other_is_lacking() {
        let metadata = json!({ "text": "v1", "empty": "", "yes": true, "three": 3, "half": 0.5, "null": null, "list": ["a"],
            "inner": { "text": "in" } });
        let node = Node {
            id: "i".into(),
            cluster: "c".into(),
            locality: Some(Locality { region: "r".into(), zone: "z".into(), sub_zone: "s".into() }),
            metadata: metadata.as_object().map(to_struct),
            ..Node::default()
        };
        for (field, expected) in [
            ("id", Some("i")),
            ("cluster", Some("c")),
            ("locality.region", Some("r")),
            ("locality.zone", Some("z")),
            ("locality.sub_zone", Some("s")),
            ("metadata.text", Some("v1")),
            ("metadata.empty", Some("")),
            ("metadata.yes", Some("true")),
            ("metadata.three", Some("3")),
            ("metadata.half", Some("0.5")),
            ("metadata.inner.text", Some("in")),
            ("metadata.null", None),
            ("metadata.list", None),
            ("metadata.inner", None),
            ("metadata.other", None),
            ("metadata.text.other", None),
        ] {
            let own = parameters(&[field]);
            let selected = Selector::Parameters(expected.into_iter().map(|value| (field, value)).collect());
            assert_eq!(own.selector(&node).to_string(), selected.to_string(), "{field}");
            assert_eq!(own.selector(&node).is_default(), expected.is_none(), "{field}");
            assert_eq!(own.lacking(&node).is_empty(), expected.is_some(), "{field}");
        }
        let nobody = parameters(&["id", "locality.zone", "metadata.text"]);
        let lacking: Vec<_> = nobody.lacking(&Node::default()).iter().map(ToString::to_string).collect();
        assert_eq!(lacking, ["id (id)", "locality.zone (locality.zone)", "metadata.text (metadata.text)"]);
        assert!(nobody.selector(&Node::default()).is_default());
    }
}
