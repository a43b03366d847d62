//! Whether a rule is for a request, and what it comes to.

use std::sync::Arc;

use xds_transport::wire::{Struct, Value, value};

use super::key::{KeyError, Piece};
use super::model::{Action, LOCALITY, Match, NodeField, Outcome, StringMatch, ValueMatch};
use super::pattern::TooLong;
use super::request::Request;

/// How long all that a key consists of may be together, in bytes.
pub(super) const MAX_KEY: usize = 1 << 20;

/// What is known of any name is so of those that are not longer, in bytes: longer ones are asked for by nobody who means it.
const LONGEST_NAME: usize = 4096;

pub(super) const TOO_LONG: KeyError = KeyError::TooLong { max: MAX_KEY };

/// Which names a request asks for.
pub(super) enum Names {
    /// Those that are in it.
    Requested,
    /// Any: what is asked for by one name is never an answer to another. It is noted what is made of which name.
    Any(Vec<(usize, Arc<Action>)>),
}

impl Match {
    /// Whether the request is one that this is about.
    ///
    /// # Errors
    /// It cannot be said. Members are looked at in their order until the answer is clear; an error in one that is
    /// looked at is one of the whole.
    pub(super) fn matches(&self, request: &Request<'_>) -> Result<bool, KeyError> {
        match self {
            Self::Any => Ok(true),
            Self::All(members) => {
                for member in members {
                    if !member.matches(request)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Or(members) => {
                for member in members {
                    if member.matches(request)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(member) => Ok(!member.matches(request)?),
            Self::Type(types) => Ok(types.contains(request.type_url)),
            Self::Field(field, of) => of.matches(field.of(request)),
            Self::Locality(parts) => {
                let mut all = true;
                for (field, of) in LOCALITY.iter().zip(parts) {
                    // Each is looked at, for what may be wrong with it.
                    all &= of.as_ref().map_or(Ok(true), |of| of.matches(field.of(request)))?;
                }
                Ok(all)
            }
            Self::Metadata(path, of) => {
                let metadata = request.node.metadata.as_ref().ok_or(KeyError::NoMetadata)?;
                let Some(found) = at(metadata, path) else { return Ok(false) };
                match of {
                    ValueMatch::Text(of) => of.matches(text_of(found)),
                    // What is no boolean counts as false.
                    ValueMatch::Bool(wanted) => Ok(*wanted == matches!(found.kind, Some(value::Kind::BoolValue(true)))),
                }
            }
        }
    }
}

impl StringMatch {
    pub(super) fn matches(&self, text: &str) -> Result<bool, KeyError> {
        match self {
            Self::Exact(wanted) => Ok(!wanted.is_empty() && wanted == text),
            Self::Regex(pattern) => pattern.is_match(text).map_err(|error| KeyError::Pattern(error.to_string())),
        }
    }
}

impl Outcome {
    /// What it comes to for a request, in one piece; or for requests with whatever names.
    pub(super) fn piece(&self, request: &Request<'_>, names: &mut Names) -> Result<Piece, KeyError> {
        let mut piece = Piece::default();
        self.add_to(&mut piece, request, names)?;
        Ok(piece)
    }

    fn add_to(&self, piece: &mut Piece, request: &Request<'_>, names: &mut Names) -> Result<(), KeyError> {
        match self {
            Self::Text(text) => piece.part(text),
            Self::All(members) => {
                for member in members {
                    member.add_to(piece, request, names)?;
                    if piece.text().len() > MAX_KEY {
                        return Err(TOO_LONG);
                    }
                }
            }
            Self::Field(field, action) => piece.part(&action.apply(field.of(request))?),
            Self::Locality(actions) => {
                let asked_for =
                    LOCALITY.iter().zip(actions).filter_map(|(field, action)| Some((field, action.as_ref()?)));
                let mut any = false;
                for (field, action) in asked_for {
                    let part = action.apply(field.of(request))?;
                    if any {
                        piece.separator('|');
                    }
                    piece.part(&part);
                    any = true;
                }
                if !any {
                    return Err(KeyError::EmptyLocality);
                }
            }
            Self::Metadata(path, action) => {
                let found = request.node.metadata.as_ref().and_then(|metadata| at(metadata, path));
                piece.part(&action.apply(text_of(found.ok_or(KeyError::NoSuchMetadata)?))?);
            }
            Self::Name(index, action) => match names {
                Names::Any(made) => {
                    made.push((*index, action.clone()));
                    piece.name(*index, action);
                }
                Names::Requested => {
                    let name = request.resource_names.get(*index).ok_or(KeyError::NoSuchName)?;
                    piece.part(&action.apply(name)?);
                }
            },
        }
        Ok(())
    }
}

impl Action {
    /// How long what it makes of any name is at most: of one that is asked for alone, is not empty, and not longer than names are.
    ///
    /// # Errors
    /// Why there may be a name that it makes nothing of.
    pub(super) fn made_of_any_name(&self, index: usize) -> Result<usize, KeyError> {
        match self {
            _ if index > 0 => Err(KeyError::NoSuchName),
            Self::Exact => Ok(LONGEST_NAME),
            Self::Replace(pattern, template) => match pattern.error() {
                Some(error) => Err(KeyError::Pattern(error.to_string())),
                None => template.longest(LONGEST_NAME).ok_or(KeyError::EmptyRegex),
            },
        }
    }

    pub(super) fn apply(&self, text: &str) -> Result<String, KeyError> {
        match self {
            Self::Exact if text.is_empty() => Err(KeyError::EmptyExact),
            Self::Exact => Ok(text.to_owned()),
            Self::Replace(pattern, template) => match pattern.replace_all(text, template) {
                Err(error) => Err(KeyError::Pattern(error.to_string())),
                Ok(Err(TooLong)) => Err(TOO_LONG),
                Ok(Ok(replaced)) if replaced.is_empty() => Err(KeyError::EmptyRegex),
                Ok(Ok(replaced)) => Ok(replaced),
            },
        }
    }
}

impl NodeField {
    /// Its text; a locality that is not there is an empty one.
    pub(super) fn of<'a>(self, request: &Request<'a>) -> &'a str {
        let node = request.node;
        let locality = node.locality.as_ref();
        match self {
            Self::Id => &node.id,
            Self::Cluster => &node.cluster,
            Self::Region => locality.map_or("", |locality| &locality.region),
            Self::Zone => locality.map_or("", |locality| &locality.zone),
            Self::SubZone => locality.map_or("", |locality| &locality.sub_zone),
        }
    }
}

/// The value at the end of a path, which leads through structs only.
pub(super) fn at<'a>(metadata: &'a Struct, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(metadata.fields.get(first)?, |value, key| match &value.kind {
        Some(value::Kind::StructValue(inner)) => inner.fields.get(key),
        _ => None,
    })
}

/// What is no string counts as an empty one.
pub(super) fn text_of(value: &Value) -> &str {
    if let Some(value::Kind::StringValue(text)) = &value.kind { text } else { "" }
}
