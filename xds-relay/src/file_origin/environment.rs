//! What files take from the environment, where their origin says that they may.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::problems::Problems;
use crate::config::{Filled, fill_in};
use crate::yaml::{Error, Node, Position};

/// How much of the environment a document may take: a short text could ask for a long value very often.
const MOST_BYTES: usize = 16 << 20;
/// So short a value is no secret, and would be found in every word.
const SHORTEST: usize = 4;

/// Where variables are looked up.
#[derive(Clone)]
pub(super) struct Environment(Arc<Variable>);

type Variable = dyn Fn(&str) -> Option<String> + Send + Sync;

/// What was put into a document, so that no error says it.
#[derive(Default)]
pub(super) struct FilledIn {
    by_position: HashMap<(usize, usize), Filled>,
    /// What the environment has under these names.
    variables: BTreeMap<String, String>,
}

impl Environment {
    pub(super) fn new(variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(variable))
    }

    /// That of this process.
    pub(super) fn of_process() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    /// Fills in all values of a document.
    ///
    /// # Errors
    /// What is not there, and what is no variable, up to a bound.
    pub(super) fn fill_in(&self, root: &mut Node) -> Result<FilledIn, Problems> {
        let variables = RefCell::new(BTreeMap::new());
        let taken = Cell::new(0_usize);
        let variable = |name: &str| {
            let value = (self.0)(name)?;
            taken.set(taken.get().saturating_add(value.len()));
            if taken.get() > MOST_BYTES {
                return Some(String::new());
            }
            variables.borrow_mut().insert(name.to_owned(), value.clone());
            Some(value)
        };
        let mut filled = Vec::new();
        let errors = fill_in(root, &variable, &mut filled);
        if taken.get() > MOST_BYTES {
            let reason = format!("its values take more than {MOST_BYTES} bytes from the environment");
            return Err(Error::new(root.position, reason).into());
        }
        if !errors.is_empty() {
            return Err(errors.into_iter().collect());
        }
        let by_position = filled.into_iter().map(|filled| (key(filled.position), filled)).collect();
        Ok(FilledIn { by_position, variables: variables.into_inner() })
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}

impl FilledIn {
    /// What is written at a place that something was put into.
    pub(super) fn written_at(&self, position: Position) -> Option<&str> {
        self.by_position.get(&key(position)).map(|filled| filled.written.as_str())
    }

    /// The error in the words of the file.
    pub(super) fn conceal(&self, mut error: Error) -> Error {
        if let Some(Filled { written, value, .. }) = error.position.and_then(|at| self.by_position.get(&key(at))) {
            error.reason = without(&error.reason, value, written);
        }
        for (name, value) in self.variables.iter().filter(|(_, value)| value.len() >= SHORTEST) {
            error.reason = without(&error.reason, value, &format!("${{{name}}}"));
        }
        error
    }
}

fn key(Position { line, column }: Position) -> (usize, usize) {
    (line, column)
}

/// A text may have the value as it is, or as a string in quotes has it.
fn without(text: &str, value: &str, written: &str) -> String {
    if value.is_empty() {
        return text.to_owned();
    }
    let escaped: String = value.escape_debug().to_string();
    text.replace(value, written).replace(&escaped, written)
}
