//! A resource of a file, beside others.

use std::path::PathBuf;

use xds_matcher::Overlap;
use xdstp_cache::Variant;

use super::document::TakenIn;
use super::error::FileError;
use super::resource::FileResource;
use crate::yaml::{self, Position};

/// A resource, and where it was written.
pub(super) struct Written {
    pub(super) resource: FileResource,
    pub(super) file: PathBuf,
    pub(super) position: Position,
    pub(super) taken: TakenIn,
}

impl Written {
    /// What is to be said of it, with its place.
    pub(super) fn noted(&self, reason: String) -> FileError {
        let error = yaml::Error { position: Some(self.position), path: String::new(), reason };
        FileError::in_document(&self.file, error)
    }

    /// Why there cannot be another one of the same name: somebody would be served either.
    pub(super) fn refusal(&self, other: &FileResource, taken: &TakenIn) -> Option<String> {
        let Position { line, column } = self.position;
        let place = format!("{}:{line}:{column}", self.file.display());
        let of = |variable: &String| {
            format!("what is named by `{variable}` is in {place} already, or is there for some of those that it is for")
        };
        let concealed = taken.identity.as_ref().or(self.taken.identity.as_ref()).map(of);
        let what = format!("{} `{}`", other.type_url, other.name);
        let (Some(Variant::Constraints(own)), Some(Variant::Constraints(others))) =
            (&self.resource.variant, &other.variant)
        else {
            return Some(concealed.unwrap_or_else(|| match (&self.resource.variant, &other.variant) {
                (None, None) => format!("{what} is in {place} already"),
                (None, Some(some)) => {
                    format!(
                        "{what} is in {place} already, without constraints: that is for everybody{}",
                        sent_by(some, ", also for who sends ")
                    )
                }
                (Some(some), _) => format!(
                    "{what} without constraints is for everybody, and one for some is in {place}{}",
                    sent_by(some, ": both are for who sends ")
                ),
            }));
        };
        match own.overlap(others) {
            Overlap::Disjoint => None,
            Overlap::Overlapping(_) | Overlap::Unknown if concealed.is_some() => concealed,
            Overlap::Overlapping(both) => {
                Some(format!("{what} for `{others}` is also for who sends {both}, as that for `{own}` in {place}"))
            }
            Overlap::Unknown => {
                Some(format!("{what} for `{others}` may overlap with that in {place}: that takes too long to be said"))
            }
        }
    }
}

/// Parameters of somebody whom a variant is for, after `words`: nothing, if they are not found.
fn sent_by(variant: &Variant, words: &str) -> String {
    match variant {
        Variant::Constraints(own) => match own.overlap(own) {
            Overlap::Overlapping(some) => format!("{words}{some}"),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// What a type is called for short.
pub(super) fn kind(type_url: &str) -> &str {
    type_url.rsplit('.').next().unwrap_or_default()
}
