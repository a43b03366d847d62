//! Regular expressions of the rules, compiled once.

use std::collections::HashMap;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::go_regexp::{self, SyntaxError};
use super::template::Template;

/// How much memory one compiled pattern may take, in bytes.
const MAX_COMPILED: usize = 1 << 20;
/// How much memory it may take beside that on each thread that matches with it, in bytes, to be quicker next time.
const MAX_CACHED: usize = 256 << 10;
/// How deep groups and repetitions may nest in the pattern as it is written anew. To compile one recurses.
const MAX_NESTING: u32 = 250;
/// How many different patterns a file may have: with what each may take, this bounds what all take.
const MAX_PATTERNS: usize = 1000;
/// How long a pattern may be, in bytes.
const MAX_LENGTH: usize = 16 << 10;
/// How long the text may become that a replacement makes of another, in bytes.
const MAX_REPLACED: usize = 1 << 20;

/// A pattern of Go, as it was written and as it is matched.
#[derive(Debug)]
pub(super) struct Pattern {
    source: String,
    compiled: Result<Compiled, SyntaxError>,
}

#[derive(Debug)]
struct Compiled {
    regex: Regex,
    names: Vec<String>,
}

/// The replaced text would have no bounds.
#[derive(Debug)]
pub(super) struct TooLong;

impl Pattern {
    fn new(source: &str) -> Result<Self, String> {
        if source.len() > MAX_LENGTH {
            return Err(format!("a pattern of {} bytes: expected at most {MAX_LENGTH}", source.len()));
        }
        let compiled = match go_regexp::translate(source) {
            Ok(translated) => {
                let mut builder = RegexBuilder::new(&translated.pattern);
                let regex = builder.size_limit(MAX_COMPILED).dfa_size_limit(MAX_CACHED).nest_limit(MAX_NESTING).build();
                Ok(Compiled { regex: regex.map_err(|error| refusal(source, &error))?, names: translated.names })
            }
            Err(error) => Err(error),
        };
        Ok(Self { source: source.to_owned(), compiled })
    }

    /// As the file has it.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// What Go says of the pattern, if it does not compile it.
    pub(super) fn error(&self) -> Option<&SyntaxError> {
        self.compiled.as_ref().err()
    }

    /// Whether it is found anywhere in the text.
    pub(super) fn is_match(&self, text: &str) -> Result<bool, &SyntaxError> {
        self.compiled.as_ref().map(|compiled| compiled.regex.is_match(text))
    }

    /// The replacement for this pattern.
    pub(super) fn template(&self, replace: &str) -> Template {
        Template::new(replace, self.compiled.as_ref().map_or(&[], |compiled| &compiled.names))
    }

    /// The text with every match replaced.
    pub(super) fn replace_all(&self, text: &str, template: &Template) -> Result<Result<String, TooLong>, &SyntaxError> {
        let Compiled { regex, .. } = self.compiled.as_ref()?;
        let mut replaced = String::with_capacity(text.len());
        let mut end = 0;
        for captures in regex.captures_iter(text) {
            let Some(matched) = captures.get(0) else { continue };
            replaced.push_str(text.get(end..matched.start()).unwrap_or_default());
            template.expand(&captures, &mut replaced);
            end = matched.end();
            if replaced.len() > MAX_REPLACED {
                return Ok(Err(TooLong));
            }
        }
        replaced.push_str(text.get(end..).unwrap_or_default());
        Ok(Ok(replaced))
    }
}

/// Why a pattern that Go compiles is none here.
fn refusal(source: &str, error: &regex::Error) -> String {
    let reason = match error {
        regex::Error::CompiledTooBig(_) => format!("compiled it takes more than {} KiB", MAX_COMPILED >> 10),
        // What it is written as is good, and may still be too deep.
        error if error.to_string().contains("nested") => format!("it nests deeper than {MAX_NESTING} levels"),
        // Several lines, of which the last says what it is.
        error => error.to_string().lines().next_back().unwrap_or_default().to_owned(),
    };
    format!("`{source}`: not supported, although RE2 has it: {reason}")
}

/// The patterns of a file, each of them once.
#[derive(Debug, Default)]
pub(super) struct Patterns(HashMap<String, Arc<Pattern>>);

impl Patterns {
    /// The pattern, compiled.
    ///
    /// # Errors
    /// It is beyond what is supported; the error is a reason for people. What Go does not compile is no error here.
    pub(super) fn compile(&mut self, source: &str) -> Result<Arc<Pattern>, String> {
        if let Some(pattern) = self.0.get(source) {
            return Ok(Arc::clone(pattern));
        }
        if self.0.len() == MAX_PATTERNS {
            return Err(format!("more than {MAX_PATTERNS} different patterns"));
        }
        let pattern = Arc::new(Pattern::new(source)?);
        self.0.insert(source.to_owned(), Arc::clone(&pattern));
        Ok(pattern)
    }
}
