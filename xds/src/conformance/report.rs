//! What is printed of checks.

mod json;
mod junit;
mod text;

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::ValueEnum;

use super::check::{Check, Outcome};
use super::method::Method;
use super::suite::Counts;
use crate::show::unless_closed;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    Text,
    /// An object a line for each check and method, and one for the sum
    Json,
    /// XML as continuous integration reads it
    Junit,
}

pub(crate) struct Report {
    form: Form,
    server: String,
    seed: u64,
    /// Of a form that is one document.
    outcomes: Vec<Outcome>,
    shows_progress: bool,
}

impl Report {
    pub(crate) fn new(form: Form, server: &str, seed: u64) -> Self {
        let shows_progress = io::stderr().is_terminal();
        Self { form, server: server.to_owned(), seed, outcomes: Vec::new(), shows_progress }
    }

    /// On a terminal, what is being done.
    pub(crate) fn progress(&self, done: usize, all: usize, check: &Check, method: Method) {
        if self.shows_progress {
            let line = format!("\r\x1b[K{done} of {all}: rule {}, {}", check.rule, method.as_str());
            let _ = write!(io::stderr(), "{line}").and_then(|()| io::stderr().flush());
        }
    }

    /// What came of a check, over each method.
    pub(crate) fn check(&mut self, outcomes: Vec<Outcome>) -> io::Result<()> {
        if self.shows_progress {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
        let mut out = io::stdout().lock();
        match self.form {
            Form::Text => text::check(&mut out, &outcomes),
            Form::Json => outcomes.iter().try_for_each(|outcome| json::outcome(&mut out, outcome)),
            Form::Junit => {
                self.outcomes.extend(outcomes);
                Ok(())
            }
        }
    }

    pub(crate) fn finish(&self, counts: &Counts) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match self.form {
            Form::Text => text::sum(&mut out, counts, self.seed),
            Form::Json => json::sum(&mut out, counts, self.seed, &self.server),
            Form::Junit => junit::document(&mut out, &self.outcomes, counts, &self.server),
        }
    }
}

/// The checks there are.
pub(crate) fn list(checks: &[&Check]) -> Result<ExitCode, Box<dyn Error>> {
    unless_closed(text::list(&mut io::stdout().lock(), checks).map(|()| ExitCode::SUCCESS))
}
