//! What files take from the environment, where their origin says that they may.

use std::cell::Cell;
use std::collections::HashMap;
use std::env::VarError;
use std::fmt;
use std::sync::Arc;

use super::problems::Problems;
use super::secrets;
use crate::config::{Filled, fill_in};
use crate::yaml::{Content, Error, Node, Position};

/// How much of the environment a document may take: a short text could ask for a long value very often.
const MOST_BYTES: usize = 16 << 20;
/// How an error begins that quotes a key, and no value: keys are not filled in.
const OF_A_KEY: &str = "unrecognized field name ";

/// Where variables are looked up.
#[derive(Clone)]
pub(super) struct Environment(Arc<Variable>);

type Variable = dyn Fn(&str) -> Result<String, VarError> + Send + Sync;

/// Where something was put into a document, so that no error says what.
#[derive(Default)]
pub(super) struct FilledIn(HashMap<(usize, usize), Taken>);

/// A value with something of the environment in it, as it is written, and the first variable in that.
struct Taken {
    written: String,
    variable: String,
}

impl Environment {
    pub(super) fn new(variable: impl Fn(&str) -> Result<String, VarError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(variable))
    }

    /// That of this process.
    pub(super) fn of_process() -> Self {
        Self::new(|name| std::env::var(name))
    }

    /// Fills in all values of a document.
    ///
    /// # Errors
    /// What is not there, and what is no variable, up to a bound.
    pub(super) fn fill_in(&self, root: &mut Node) -> Result<FilledIn, Problems> {
        let taken = Cell::new(0_usize);
        let variable = |name: &str| {
            let value = (self.0)(name)?;
            taken.set(taken.get().saturating_add(value.len()));
            Ok(if taken.get() > MOST_BYTES { String::new() } else { value })
        };
        let mut filled = Vec::new();
        let errors = fill_in(root, &variable, &mut filled);
        if taken.get() > MOST_BYTES {
            let reason = format!("its values take more than {MOST_BYTES} bytes from the environment");
            return Err(Error::new(root.position, reason).into());
        }
        if !errors.is_empty() {
            return Err(secrets::hide_in_values(errors, root).into_iter().collect());
        }
        let taken = |Filled { position, written, .. }| {
            let variable = first_variable(&written)?;
            Some((key(position), Taken { written, variable }))
        };
        let filled = FilledIn(filled.into_iter().filter_map(taken).collect());
        filled.keep_text(root);
        Ok(filled)
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
        self.0.get(&key(position)).map(|taken| taken.written.as_str())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first variable that is in a value, or in one within it.
    pub(super) fn first_in(&self, node: &Node) -> Option<&str> {
        if self.is_empty() {
            return None;
        }
        match &node.content {
            Content::Plain(_) | Content::Text(_) => self.0.get(&key(node.position)).map(|taken| &*taken.variable),
            Content::Sequence(items) => items.iter().find_map(|item| self.first_in(item)),
            Content::Mapping(entries) => entries.iter().find_map(|(_, value)| self.first_in(value)),
        }
    }

    /// The error without what it may quote of what was put into `scope`. Values are not looked for in it: it may have them in
    /// another form.
    pub(super) fn conceal(&self, error: Error, scope: &Node) -> Error {
        let of_one = error.position.is_some_and(|at| self.0.contains_key(&key(at)) || is_scalar(scope, at));
        if of_one || error.reason.starts_with(OF_A_KEY) {
            return self.conceal_as(error, None);
        }
        self.conceal_as(error, self.first_in(scope))
    }

    /// The same, where what the error may quote is known: the value at its place, and one of this variable.
    pub(super) fn conceal_as(&self, error: Error, variable: Option<&str>) -> Error {
        if secrets::is_hidden(&error) {
            return error;
        }
        let reason = match (error.position.and_then(|at| self.written_at(at)), variable) {
            (Some(written), _) => format!("not a value of this field: `{written}`"),
            (None, Some(variable)) => format!("not good; why is not shown, because that may say what `{variable}` is"),
            (None, None) => return error,
        };
        Error { reason, ..error }
    }

    /// What came from the environment is a text even if it reads as no value: the field would be gone.
    fn keep_text(&self, node: &mut Node) {
        let is_filled = self.0.contains_key(&key(node.position));
        if is_filled
            && node.is_null()
            && let Content::Plain(text) = &mut node.content
        {
            node.content = Content::Text(std::mem::take(text));
        }
        match &mut node.content {
            Content::Plain(_) | Content::Text(_) => {}
            Content::Sequence(items) => items.iter_mut().for_each(|item| self.keep_text(item)),
            Content::Mapping(entries) => entries.iter_mut().for_each(|(_, value)| self.keep_text(value)),
        }
    }
}

/// Whether what is at a place is a value without others in it, and not a key.
fn is_scalar(node: &Node, at: Position) -> bool {
    match &node.content {
        Content::Plain(_) | Content::Text(_) => node.position == at,
        Content::Sequence(items) => node.position != at && items.iter().any(|item| is_scalar(item, at)),
        Content::Mapping(entries) => {
            node.position != at
                && entries.iter().all(|(key, _)| key.position != at)
                && entries.iter().any(|(_, value)| is_scalar(value, at))
        }
    }
}

/// As `${NAME}`. A text whose only `${` stand for themselves has none.
fn first_variable(written: &str) -> Option<String> {
    let mut rest = written;
    loop {
        let (before, after) = rest.split_once("${")?;
        if !before.ends_with('$') {
            let (inside, _) = after.split_once('}')?;
            let name = inside.split_once(":-").map_or(inside, |(name, _)| name);
            return Some(format!("${{{name}}}"));
        }
        rest = after;
    }
}

fn key(Position { line, column }: Position) -> (usize, usize) {
    (line, column)
}
