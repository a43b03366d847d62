//! Which parts of a node are dynamic parameters (`node_parameters`).

use std::collections::BTreeMap;

use super::{NodeField, rules};
use crate::yaml::{self, Error};

/// The parameters by their keys.
pub(super) fn node_parameters(node: &yaml::Node) -> Result<BTreeMap<String, NodeField>, Error> {
    if node.entries().is_empty() {
        return node.refuse(rules::NO_PARAMETERS);
    }
    let mut parameters = BTreeMap::new();
    for (key, value) in node.entries() {
        let key = key.text.as_str();
        let field = node.field(key, |value| {
            let text = value.text()?;
            let field = text.parse().or_else(|expected| value.refuse(format!("`{text}`: {expected}")))?;
            rules::parameter(key, &field).or_else(|problem| value.refuse(problem))?;
            Ok(field)
        });
        // Where a value is one of several keys, each is looked up by its own: keys are unique.
        let field = field?.map_or_else(|| value.refuse(rules::NO_PARAMETERS), Ok)?;
        parameters.insert(key.to_owned(), field);
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn config(parameters: &str) -> Result<Config, String> {
        let text = format!("origins: [{{ name: a, server: a:1 }}]\nnode_parameters: {parameters}\n");
        Config::parse("relay.yaml", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn parts_are_named_as_for_share_by_and_an_error_says_where() {
        let read = config("{ version: metadata.version, zone: locality.zone, a.b: 'metadata.\"x.y\".z', node: id }");
        let read: Vec<_> = read.unwrap().node_parameters.into_iter().map(|(key, of)| format!("{key}={of}")).collect();
        assert_eq!(read, ["a.b=metadata.\"x.y\".z", "node=id", "version=metadata.version", "zone=locality.zone"]);
        let expected = "expected id, cluster, locality, locality.region";
        for (parameters, problem) in [
            ("{ env: env }", format!("2:25: node_parameters.env: `env`: {expected}")),
            ("{ a: id, a.b: metadata. }", format!("2:32: node_parameters[\"a.b\"]: `metadata.`: {expected}")),
            (
                "{ where: locality }",
                "2:27: node_parameters.where: `locality` is three; expected locality.region".to_owned(),
            ),
            ("{ '': id }", "2:24: node_parameters: a parameter without a key; expected one such as".to_owned()),
            ("{ a: [id] }", "2:23: node_parameters.a: expected a single value".to_owned()),
            ("{ a: }", "2:21: node_parameters.a: empty".to_owned()),
            ("{ a: id, a: cluster }", "2:27: node_parameters: key `a` occurs twice".to_owned()),
            ("{}", "2:18: node_parameters: empty; expected at least one parameter".to_owned()),
            ("[id]", "2:18: node_parameters: empty; expected at least one parameter".to_owned()),
        ] {
            let error = config(parameters).unwrap_err();
            let error = error.strip_prefix("relay.yaml:").unwrap_or(&error);
            assert!(error.starts_with(&problem), "{parameters}: {error}");
        }
    }
}
