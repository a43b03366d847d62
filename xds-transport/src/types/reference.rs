//! Where resources name others, found without decoding them.

use xdstp_cache::TypeUrl;

use crate::wire::walk::{FieldValue, Fields, text_at};

/// Where resources of a type name resources of another, that come from the same server.
///
/// ```
/// use xds_transport::{Reference, Step, TypeRules};
///
/// let mut rules = TypeRules::envoy();
/// let (limits, zones) = ("type.example.com/example.Limit".into(), "type.example.com/example.Zone".into());
/// // Field 1 of each field 2 is the name of a zone.
/// rules.insert_reference(&limits, Reference::new(zones, [Step::Field(2)], [vec![1]]));
///
/// // As an `Any` has it: with the name of no type, and a limit with two zones.
/// let any = b"\x12\x0a\x12\x03\x0a\x01a\x12\x03\x0a\x01b";
/// let mut found = Vec::new();
/// rules.references_of(&limits)[0].visit(any, &mut |name| found.push(name));
/// assert_eq!(found, ["a", "b"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// The type of what is named.
    pub type_url: TypeUrl,
    /// From the resource to the messages that name others; of fields that are repeated, all.
    pub steps: Vec<Step>,
    /// Field paths of the name in such a message: the first that holds a name counts.
    pub names: Vec<Vec<u32>>,
    /// The field path of Envoy's `ConfigSource` in such a message, if it has one: where that says neither `ads` nor `self`, what
    /// is named comes from elsewhere.
    pub source: Option<Vec<u32>>,
}

/// From a message to messages in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Those of a field.
    Field(u32),
    /// Those of a field that is an `Any`, where it holds this type.
    Any(u32, TypeUrl),
}

/// The fields of `google.protobuf.Any`.
const ANY_TYPE_URL: u32 = 1;
const ANY_VALUE: u32 = 2;
/// The fields of `envoy.config.core.v3.ConfigSource` that stand for the server that says so.
const SAME_SERVER: [u32; 2] = [3, 5];

impl Reference {
    /// Names of `type_url`, in the messages at `steps`, by the first of these field paths that holds one.
    pub fn new(
        type_url: TypeUrl,
        steps: impl IntoIterator<Item = Step>,
        names: impl IntoIterator<Item = Vec<u32>>,
    ) -> Self {
        let (steps, names) = (steps.into_iter().collect(), names.into_iter().collect());
        Self { type_url, steps, names, source: None }
    }

    /// The same, with the field path of the `ConfigSource` that says where it comes from.
    #[must_use]
    pub fn from_source(self, path: Vec<u32>) -> Self {
        Self { source: Some(path), ..self }
    }

    /// Visits the names in an encoded `Any`.
    pub fn visit<'a>(&self, any: &'a [u8], found: &mut dyn FnMut(&'a str)) {
        messages_of(any, ANY_VALUE).for_each(|resource| self.walk(resource, &self.steps, found));
    }

    fn walk<'a>(&self, message: &'a [u8], steps: &[Step], found: &mut dyn FnMut(&'a str)) {
        match steps {
            [] => self.look(message, found),
            [Step::Field(number), rest @ ..] => {
                messages_of(message, *number).for_each(|message| self.walk(message, rest, found));
            }
            [Step::Any(number, type_url), rest @ ..] => {
                let of_type = |any: &&[u8]| text_at(any, &[ANY_TYPE_URL]) == Some(type_url.as_str());
                let messages = messages_of(message, *number).filter(of_type);
                messages
                    .flat_map(|any| messages_of(any, ANY_VALUE))
                    .for_each(|message| self.walk(message, rest, found));
            }
        }
    }

    fn look<'a>(&self, message: &'a [u8], found: &mut dyn FnMut(&'a str)) {
        let is_here = self.source.as_ref().is_none_or(|path| {
            let sources = path.iter().fold(vec![message], |found, number| {
                found.into_iter().flat_map(|message| messages_of(message, *number)).collect()
            });
            sources
                .into_iter()
                .any(|source| SAME_SERVER.iter().any(|field| messages_of(source, *field).next().is_some()))
        });
        let name = self.names.iter().filter_map(|path| text_at(message, path)).find(|name| !name.is_empty());
        if let Some(name) = name.filter(|_| is_here) {
            found(name);
        }
    }
}

/// Every message of a field, up to where the encoding makes no sense.
fn messages_of(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    Fields::of(message).map_while(Result::ok).filter_map(move |field| match field.value {
        FieldValue::Bytes(value) if field.number == number => Some(value),
        _ => None,
    })
}
