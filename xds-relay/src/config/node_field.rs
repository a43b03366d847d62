use std::{fmt, str::FromStr};

/// A part of a node that nodes must agree in to share old-style resources (`share_by`).
///
/// Written `id`, `cluster`, `locality`, `locality.region`, `locality.zone`, `locality.sub_zone` or `metadata.KEY`, with
/// further keys for nested structs; a key with a dot in it goes between double quotes.
///
/// ```
/// use xds_relay::config::NodeField;
///
/// let field: NodeField = r#"metadata.LABELS."example.com/tier""#.parse()?;
/// assert_eq!(field, NodeField::Metadata(vec!["LABELS".to_owned(), "example.com/tier".to_owned()]));
/// # Ok::<(), xds_relay::config::NodeFieldError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NodeField {
    /// `Node.id`
    Id,
    /// `Node.cluster`
    Cluster,
    /// All of `Node.locality`
    Locality,
    /// `Node.locality.region`
    Region,
    /// `Node.locality.zone`
    Zone,
    /// `Node.locality.sub_zone`
    SubZone,
    /// A value in `Node.metadata`, by the keys that lead to it; at least one.
    Metadata(Vec<String>),
}

/// Not a part of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFieldError(());

impl fmt::Display for NodeFieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected id, cluster, locality, locality.region, locality.zone, locality.sub_zone or metadata.KEY[.KEY…]",
        )
    }
}

impl std::error::Error for NodeFieldError {}

impl FromStr for NodeField {
    type Err = NodeFieldError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "id" => Self::Id,
            "cluster" => Self::Cluster,
            "locality" => Self::Locality,
            "locality.region" => Self::Region,
            "locality.zone" => Self::Zone,
            "locality.sub_zone" => Self::SubZone,
            _ => Self::Metadata(text.strip_prefix("metadata.").and_then(split_keys).ok_or(NodeFieldError(()))?),
        })
    }
}

impl fmt::Display for NodeField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id => f.write_str("id"),
            Self::Cluster => f.write_str("cluster"),
            Self::Locality => f.write_str("locality"),
            Self::Region => f.write_str("locality.region"),
            Self::Zone => f.write_str("locality.zone"),
            Self::SubZone => f.write_str("locality.sub_zone"),
            Self::Metadata(keys) => {
                f.write_str("metadata")?;
                keys.iter().try_for_each(
                    |key| {
                        if key.contains('.') { write!(f, ".\"{key}\"") } else { write!(f, ".{key}") }
                    },
                )
            }
        }
    }
}

/// `a."b.c".d` → `a`, `b.c`, `d`; nothing where a key is empty or a quote is out of place.
fn split_keys(mut text: &str) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    loop {
        let (key, rest) = match text.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => text.split_at(text.find('.').unwrap_or(text.len())),
        };
        if key.is_empty() || key.contains('"') {
            return None;
        }
        keys.push(key.to_owned());
        if rest.is_empty() {
            return Some(keys);
        }
        text = rest.strip_prefix('.')?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_parsed_is_what_is_written() {
        for text in [
            "id",
            "cluster",
            "locality",
            "locality.region",
            "locality.zone",
            "locality.sub_zone",
            "metadata.tier",
            "metadata.LABELS.app",
            r#"metadata.LABELS."example.com/tier".x"#,
        ] {
            assert_eq!(text.parse::<NodeField>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_part_of_a_node_is_refused() {
        for text in [
            "",
            "Id",
            "locality.",
            "locality.country",
            "metadata",
            "metadata.",
            "metadata..a",
            "metadata.a.",
            r#"metadata."a"#,
            r#"metadata."a"b"#,
            r#"metadata.a"b"#,
        ] {
            assert_eq!(text.parse::<NodeField>(), Err(NodeFieldError(())), "{text}");
        }
    }
}
