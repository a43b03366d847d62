//! What is in an object.

use bytes::Bytes;
use xdstp_client::federation::Held;

use super::object::XDS_RESOURCE;
use crate::file_origin::{Descriptors, FileError, Served, held, load_text};
use crate::keyed_origin::Read;

/// Reads the values of objects: texts, as files have them.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    origin: String,
    types: Descriptors,
    served: Served,
}

impl Reader {
    pub(super) fn new(types: Descriptors, served: Served) -> Self {
        Self { origin: String::new(), types, served }
    }

    /// That of an origin.
    pub(super) fn of(self, origin: &str) -> Self {
        Self { origin: origin.to_owned(), ..self }
    }
}

impl Read for Reader {
    fn origin(&self) -> &str {
        &self.origin
    }

    fn read(&self, key: &str, value: &Bytes) -> Result<Vec<Held>, String> {
        self.read_with(key, value, &self.types)
    }

    fn read_kept(&self, key: &str, value: &Bytes) -> Result<Vec<Held>, String> {
        self.read_with(key, value, &self.types.without_validation())
    }

    /// An object is called as it likes, whatever is in it.
    fn may_hide(&self, _: &str) -> bool {
        true
    }
}

impl Reader {
    fn read_with(&self, key: &str, value: &Bytes, types: &Descriptors) -> Result<Vec<Held>, String> {
        let is_spec = key.split('/').next() == Some(XDS_RESOURCE.word);
        let place = if is_spec { "spec" } else { "value" };
        let text = std::str::from_utf8(value).map_err(|error| error.to_string())?;
        let read = load_text(place, text, types, &self.served);
        match held(&read.map_err(|error| if is_spec { without_lines(error) } else { error }.to_string())?) {
            held if held.is_empty() => Err("it has no resource".to_owned()),
            held => Ok(held),
        }
    }
}

/// The API server writes a spec in lines of its own, which nobody who wrote it knows.
fn without_lines(error: FileError) -> FileError {
    let others = error.others.into_iter().map(without_lines).collect();
    FileError { line: None, column: None, others, ..error }
}
