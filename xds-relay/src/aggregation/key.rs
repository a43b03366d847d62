//! What requests share, and why one has no key.

use std::fmt::{self, Write as _};

use super::model::Action;

/// What a request has in common with those that it may share with: equal keys, and only these, share.
///
/// A key is what each fragment came to, piece by piece, and a piece that was put together (`and_result`, `locality_action`)
/// is equal to another only if each part of it is. Its [`label`](Self::label) runs the pieces together, so that two
/// keys may have the same one; displayed, they differ.
///
/// ```
/// # use xds_relay::aggregation::{Reading, Request, Rules};
/// # use xds_transport::wire::Node;
/// let rules = Rules::parse("rules.yaml", "
///     fragments:
///     - rules: [{match: {any_match: true}, result: {request_node_fragment: {id_action: {exact: true}}}}]
///     - rules: [{match: {any_match: true}, result: {request_node_fragment: {cluster_action: {exact: true}}}}]
/// ", Reading::Documented)?;
/// let key = |id: &str, cluster: &str| {
///     let node = Node { id: id.into(), cluster: cluster.into(), ..Node::default() };
///     rules.key(&Request { node: &node, type_url: "type.googleapis.com/envoy.config.cluster.v3.Cluster", resource_names: &[] })
/// };
/// let (one, other) = (key("a_b", "c")?, key("a", "b_c")?);
/// assert_eq!(one.label(), other.label());
/// assert_ne!(one, other);
/// assert_eq!(one.to_string(), r#""a_b" "c""#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// For each fragment, in order, what the rules that matched came to: none, one, or several where all of them count.
    fragments: Vec<Vec<Piece>>,
}

/// What one rule came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Piece {
    text: String,
    /// Where its parts end in the text: the results that it was put together from.
    ends: Vec<usize>,
    /// Which of these stand for whatever is made of a resource name, and how that is made, in words that differ where it is.
    names: Vec<(usize, String)>,
}

impl Piece {
    pub(super) fn part(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// A part that differs by resource name: its text says how it is made of that, with pattern and replacement as the file has them.
    pub(super) fn name(&mut self, index: usize, action: &Action) {
        let (text, exactly) = match action {
            Action::Exact => (format!("(name {index})"), format!("(name {index})")),
            Action::Replace(pattern, template) => {
                let (pattern, replace) = (pattern.source(), template.source());
                (
                    format!("(name {index}, {pattern} as {replace})"),
                    format!("(name {index}, {pattern:?} as {replace:?})"),
                )
            }
        };
        self.names.push((self.ends.len(), exactly));
        self.part(&text);
    }

    /// Belongs to the part that comes next.
    pub(super) fn separator(&mut self, separator: char) {
        self.text.push(separator);
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| self.text.get(begin..end).unwrap_or_default())
    }
}

impl Key {
    pub(super) fn begin_fragment(&mut self) {
        self.fragments.push(Vec::new());
    }

    pub(super) fn add(&mut self, piece: Piece) {
        if let Some(fragment) = self.fragments.last_mut() {
            fragment.push(piece);
        }
    }

    /// Whether no fragment came to anything.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces().next().is_none()
    }

    fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.fragments.iter().flatten()
    }

    /// How long all its pieces are together, but for what is made of names.
    pub(super) fn length_without_names(&self) -> usize {
        let of_piece = |piece: &Piece| {
            let is_name = |(index, _): &(usize, &str)| piece.names.iter().any(|(name, _)| name == index);
            let names: usize = piece.parts().enumerate().filter(is_name).map(|(_, part)| part.len()).sum();
            piece.text.len() - names
        };
        self.pieces().map(of_piece).sum()
    }

    /// What the original xds-relay calls this key: all pieces, with `_` between them. For people: what different keys are
    /// called may be the same.
    #[must_use]
    pub fn label(&self) -> String {
        let pieces: Vec<&str> = self.pieces().map(Piece::text).collect();
        pieces.join("_")
    }

    /// What only this key is called: its label, and where that might be another's, too, the key itself beside it.
    #[must_use]
    pub fn unique_label(&self) -> String {
        let label = self.label();
        if self.is_told_by_label() { label } else { format!("{label} ({self})") }
    }

    /// Whether no other key by the same rules has its label, nor a label that looks like it: each fragment has one part, and no `_` of
    /// the label is in one.
    fn is_told_by_label(&self) -> bool {
        self.fragments.iter().all(|fragment| match fragment.as_slice() {
            [piece] => match piece.names.as_slice() {
                [] => piece.ends.len() == 1 && !piece.text.contains(['_', '"', '(']),
                [(_, made)] => piece.ends.len() == 1 && *made == piece.text && !made.contains('"'),
                _ => false,
            },
            _ => false,
        })
    }

    /// The key as bytes: they are equal where keys are, and only there.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let number = |bytes: &mut Vec<u8>, number: usize| bytes.extend_from_slice(&(number as u64).to_be_bytes());
        for fragment in &self.fragments {
            number(&mut bytes, fragment.len());
            for piece in fragment {
                number(&mut bytes, piece.ends.len());
                piece.ends.iter().for_each(|&end| number(&mut bytes, end));
                number(&mut bytes, piece.names.len());
                for (name, made) in &piece.names {
                    number(&mut bytes, *name);
                    number(&mut bytes, made.len());
                    bytes.extend_from_slice(made.as_bytes());
                }
                number(&mut bytes, piece.text.len());
                bytes.extend_from_slice(piece.text.as_bytes());
            }
        }
        bytes
    }
}

/// Each fragment between spaces, each part of it in quotes: `"web-1" "eu"+"|west" - "lds"`. A fragment without a rule that
/// matched is a dash.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fragment) in self.fragments.iter().enumerate() {
            if index > 0 {
                f.write_char(' ')?;
            }
            if fragment.is_empty() {
                f.write_char('-')?;
            }
            for (index, piece) in fragment.iter().enumerate() {
                let separator = if index == 0 { "" } else { "," };
                let part = |(index, part): (usize, &str)| match piece.names.iter().find(|(name, _)| *name == index) {
                    Some((_, made)) => made.clone(),
                    None => format!("{part:?}"),
                };
                let parts: Vec<String> = piece.parts().enumerate().map(part).collect();
                write!(f, "{separator}{}", parts.join("+"))?;
            }
        }
        Ok(())
    }
}

/// Why a request has no key, in the words of the original xds-relay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The request is for no type.
    #[error("typeURL is empty")]
    NoType,
    /// Endpoints are asked for, but of no cluster: Envoy does that while it starts.
    #[error("resource names is empty")]
    NoNames,
    /// No rule matches.
    #[error("Cannot map the input to a key")]
    NoRule,
    /// A rule looks at metadata, and the node has none.
    #[error("Metadata Node field cannot be empty")]
    NoMetadata,
    /// A rule takes a value of the metadata that is not there.
    #[error("Path to key is inexistent")]
    NoSuchMetadata,
    /// A rule takes a resource name that the request does not have.
    #[error("ResourceNamesFragment.Element cannot be negative or larger than length")]
    NoSuchName,
    /// What a rule takes as it is, is empty.
    #[error("RequestNodeFragment exact match resulted in an empty fragment")]
    EmptyExact,
    /// What a rule makes of a value is empty.
    #[error("RequestNodeFragment regex match resulted in an empty fragment")]
    EmptyRegex,
    /// A rule takes nothing of the locality.
    #[error("RequestNodeFragment match resulted in an empty fragment")]
    EmptyLocality,
    /// A rule has a pattern that is none; the words are Go's.
    #[error("{0}")]
    Pattern(String),
    /// The key would be longer than any client needs. The original knows no bound.
    #[error("the key is longer than {max} bytes")]
    TooLong {
        /// How long it may be.
        max: usize,
    },
}
