//! What is wrong with a value, and where in its message.

use std::fmt;

use prost_reflect::{FieldDescriptor, MapKey};

/// How many refusals of one resource are told. Others are looked for no further.
const MOST: usize = 100;
/// How much of a value, and of what was expected, is told.
const MOST_CHARACTERS: usize = 200;

/// A value that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::file_origin) struct Refusal {
    /// From the resource on.
    pub(in crate::file_origin) path: Vec<PathStep>,
    /// What the rule asks for.
    pub(in crate::file_origin) expected: String,
    /// What there is.
    pub(in crate::file_origin) found: Found,
}

/// What there is in place of what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::file_origin) enum Found {
    /// Nothing to be said.
    Untold,
    /// In words that do not say the value.
    Told(String),
    /// The type of what is in an `Any`.
    TypeUrl(String),
    /// The value, which may be secret.
    Value(String),
}

/// A step into a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::file_origin) enum PathStep {
    /// A field, and its name in JSON.
    Field(String, String),
    /// An item of a list.
    Index(usize),
    /// An entry of a map.
    Key(String),
}

/// A place in a message, as it is walked.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    within: Option<&'a Self>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a FieldDescriptor),
    Oneof(&'a str),
    Index(usize),
    Key(&'a MapKey),
}

impl<'a> Place<'a> {
    pub(super) const ROOT: Self = Self { within: None, step: Step::Root };

    pub(super) fn field(&'a self, field: &'a FieldDescriptor) -> Self {
        Self { within: Some(self), step: Step::Field(field) }
    }

    pub(super) fn oneof(&'a self, name: &'a str) -> Self {
        Self { within: Some(self), step: Step::Oneof(name) }
    }

    pub(super) fn index(&'a self, index: usize) -> Self {
        Self { within: Some(self), step: Step::Index(index) }
    }

    pub(super) fn key(&'a self, key: &'a MapKey) -> Self {
        Self { within: Some(self), step: Step::Key(key) }
    }

    fn path(&self) -> Vec<PathStep> {
        let mut steps: Vec<PathStep> = std::iter::successors(Some(self), |place| place.within)
            .filter_map(|place| match place.step {
                Step::Root => None,
                Step::Field(field) => Some(PathStep::Field(field.name().to_owned(), field.json_name().to_owned())),
                Step::Oneof(name) => Some(PathStep::Field(name.to_owned(), name.to_owned())),
                Step::Index(index) => Some(PathStep::Index(index)),
                Step::Key(key) => Some(PathStep::Key(key_text(key))),
            })
            .collect();
        steps.reverse();
        steps
    }
}

/// The key of a map as JSON has it.
pub(super) fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(value) => value.to_string(),
        MapKey::I32(value) => value.to_string(),
        MapKey::I64(value) => value.to_string(),
        MapKey::U32(value) => value.to_string(),
        MapKey::U64(value) => value.to_string(),
        MapKey::String(value) => value.clone(),
    }
}

/// All that was found wrong with a resource.
#[derive(Default)]
pub(super) struct Refusals {
    pub(super) all: Vec<Refusal>,
}

impl Refusals {
    pub(super) fn refuse(&mut self, place: Place<'_>, expected: impl fmt::Display, found: Found) {
        if !self.is_full() {
            let found = match found {
                Found::Value(value) => Found::Value(short(&value)),
                found => found,
            };
            self.all.push(Refusal { path: place.path(), expected: short(&expected.to_string()), found });
        }
    }

    /// Whether what else is wrong is told by nobody.
    pub(super) fn is_full(&self) -> bool {
        self.all.len() >= MOST
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
