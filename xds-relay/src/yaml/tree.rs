//! A document as a tree whose every value knows its place.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};

use super::error::{Error, Position};

/// How deep values may nest. Reading a tree recurses, and protobuf readers stop at 100 messages.
const MAX_DEPTH: usize = 80;
/// How many values aliases may add to a document; without a bound few lines can stand for billions of values.
const MAX_ALIASED: usize = 100_000;
/// How many steps the path of an error in the document's form has: what nests too deep would fill a page.
const MAX_STEPS: usize = 8;

/// A value and where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) position: Position,
    pub(crate) content: Content,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// A scalar written without quotes: its text decides what it is.
    Plain(String),
    /// A string: quoted, a block, or tagged `!!str`.
    Text(String),
    /// A sequence.
    Sequence(Vec<Node>),
    /// A mapping in the order of the text; no key occurs twice.
    Mapping(Vec<(Key, Node)>),
}

/// A key of a mapping, always taken as text.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) position: Position,
    pub(crate) text: String,
}

impl Node {
    /// A mapping without entries.
    pub(crate) fn empty() -> Self {
        Self { position: Position::default(), content: Content::Mapping(Vec::new()) }
    }

    /// The entries of a mapping; none for anything else.
    pub(crate) fn entries(&self) -> &[(Key, Self)] {
        if let Content::Mapping(entries) = &self.content { entries } else { &[] }
    }

    /// Number of values, and the depth of the deepest.
    fn measure(&self) -> (usize, usize) {
        let children: Vec<&Self> = match &self.content {
            Content::Plain(_) | Content::Text(_) => return (1, 1),
            Content::Sequence(items) => items.iter().collect(),
            Content::Mapping(entries) => entries.iter().map(|(_, node)| node).collect(),
        };
        let (count, depth) = children
            .into_iter()
            .map(Self::measure)
            .fold((0, 0), |(count, depth), child| (count + child.0, depth.max(child.1)));
        (count + 1, depth + 1)
    }
}

/// Reads the one document of `text`; `None` is an empty one.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Error> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let accepted = match event {
            Ok((event, span)) => builder.accept(event, position(span.start)),
            Err(error) => Err(builder.unclosed(&error, text).unwrap_or_else(|| syntax(&error, text))),
        };
        accepted.map_err(|error| builder.located(error))?;
    }
    Ok(builder.root)
}

#[derive(Default)]
struct Builder {
    root: Option<Node>,
    /// The collections that are open, outermost first.
    open: Vec<Open>,
    /// What aliases may refer to, by the parser's number.
    anchors: HashMap<usize, Node>,
    aliased: usize,
    documents: usize,
}

struct Open {
    position: Position,
    anchor: usize,
    collection: Collection,
}

enum Collection {
    Sequence(Vec<Node>),
    Mapping { entries: Vec<(Key, Node)>, seen: HashSet<String>, key: Option<Key> },
}

impl Builder {
    fn accept(&mut self, event: Event<'_>, position: Position) -> Result<(), Error> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Error::new(position, "a second document: a file holds one"));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let content = match style {
                    ScalarStyle::Plain if !is_string(tag.as_deref(), position)? => Content::Plain(text.into_owned()),
                    _ => Content::Text(text.into_owned()),
                };
                self.complete(Node { position, content }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.open(position, anchor, tag.as_deref(), Collection::Sequence(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let collection = Collection::Mapping { entries: Vec::new(), seen: HashSet::new(), key: None };
                self.open(position, anchor, tag.as_deref(), collection)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { position, anchor, collection }) = self.open.pop() else { return Ok(()) };
                let content = match collection {
                    Collection::Sequence(items) => Content::Sequence(items),
                    Collection::Mapping { entries, .. } => Content::Mapping(entries),
                };
                self.complete(Node { position, content }, anchor)
            }
            Event::Alias(anchor) => {
                // Not there yet: the anchor is that of a collection which is still open.
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err(Error::new(position, "an alias inside the value it refers to"));
                };
                let (count, depth) = node.measure();
                self.aliased += count;
                if self.aliased > MAX_ALIASED {
                    return Err(Error::new(position, format!("aliases stand for more than {MAX_ALIASED} values")));
                }
                if self.open.len() + depth > MAX_DEPTH {
                    return Err(too_deep(position));
                }
                let node = node.clone();
                self.complete(node, 0)
            }
        }
    }

    fn open(
        &mut self,
        position: Position,
        anchor: usize,
        tag: Option<&Tag>,
        collection: Collection,
    ) -> Result<(), Error> {
        if let Some(tag) = tag {
            return Err(unsupported(tag, position));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(position));
        }
        self.open.push(Open { position, anchor, collection });
        Ok(())
    }

    /// Where the text ends within brackets: what the parser misses there is of less use than the bracket.
    fn unclosed(&mut self, error: &ScanError, text: &str) -> Option<Error> {
        let position @ Position { line, column } = self.open.last()?.position;
        let bracket = text.lines().nth(line - 1)?.chars().nth(column - 1)?;
        let ended = text.chars().skip(error.marker().index()).all(char::is_whitespace);
        if !ended || !matches!(bracket, '[' | '{') {
            return None;
        }
        self.open.pop();
        Some(Error::new(position, format!("`{bracket}` is never closed")))
    }

    /// The error seen from the root, through the collections that are open.
    fn located(&self, error: Error) -> Error {
        self.open.iter().take(MAX_STEPS).rev().fold(error, |error, open| match &open.collection {
            Collection::Sequence(items) => error.under_index(items.len()),
            Collection::Mapping { key: Some(key), .. } => error.under_key(&key.text),
            Collection::Mapping { key: None, .. } => error,
        })
    }

    /// Gives a finished value to the collection around it.
    fn complete(&mut self, node: Node, anchor: usize) -> Result<(), Error> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(around) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut around.collection {
            Collection::Sequence(items) => items.push(node),
            Collection::Mapping { entries, seen, key } => match key.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    let (Content::Plain(text) | Content::Text(text)) = node.content else {
                        return Err(Error::new(node.position, "a key must be a scalar"));
                    };
                    if !seen.insert(text.clone()) {
                        return Err(Error::new(node.position, format!("key `{text}` occurs twice")));
                    }
                    *key = Some(Key { position: node.position, text });
                }
            },
        }
        Ok(())
    }
}

/// Whether a tag makes an unquoted scalar a string.
fn is_string(tag: Option<&Tag>, position: Position) -> Result<bool, Error> {
    match tag {
        None => Ok(false),
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Ok(true),
        Some(tag) => Err(unsupported(tag, position)),
    }
}

fn unsupported(tag: &Tag, position: Position) -> Error {
    Error::new(position, format!("tag `{}{}` is not supported", tag.handle, tag.suffix))
}

fn too_deep(position: Position) -> Error {
    Error::new(position, format!("values nest deeper than {MAX_DEPTH} levels"))
}

fn syntax(error: &ScanError, text: &str) -> Error {
    let at = position(*error.marker());
    let line = text.lines().nth(at.line.saturating_sub(1)).unwrap_or_default();
    // Its own brace would end what it is in.
    let hint = if line.contains("${") { "; within { } and [ ] a value with ${ in it is written in quotes" } else { "" };
    Error::new(at, format!("{}{hint}", error.info()))
}

fn position(marker: Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn aliases_repeat_the_anchored_value() {
        let root = parse("a: &x {k: [1, 2]}\nb: *x\n").unwrap().unwrap();
        assert_eq!(root.entry("b").unwrap().measure(), root.entry("a").unwrap().measure());
    }

    #[test]
    fn json_is_read_with_tabs_and_escapes() {
        let root = parse("{\n\t\"a\":\t\"\\u00e9\\/\",\n\t\"b\": {}\n}\n").unwrap().unwrap();
        assert!(matches!(&root.entry("a").unwrap().content, Content::Text(text) if text == "é/"));
    }

    #[test]
    fn errors_say_where() {
        assert_eq!(failure("a: 1\nb: 2\na: 3\n"), "3:1: key `a` occurs twice");
        assert_eq!(failure("a: 1\n---\nb: 2\n"), "2:1: a second document: a file holds one");
        assert_eq!(failure("a: !secret x\n"), "1:4: a: tag `!secret` is not supported");
        assert_eq!(failure("a: &x [*x]\n"), "1:8: a[0]: an alias inside the value it refers to");
        assert!(failure("a: [1,\n").starts_with("1:4: a: `[` is never closed"), "{}", failure("a: [1,\n"));
    }

    #[test]
    fn depth_and_expansion_are_bounded() {
        assert!(failure(&"[".repeat(500)).contains("deep") || failure(&"[".repeat(500)).contains("recursion"));
        let mut nested = String::from("a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
        for level in 1..20 {
            let below = format!("*a{}, ", level - 1).repeat(10);
            nested.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        assert!(failure(&nested).contains("aliases stand for more than"));
    }
}
