//! `xds names parse`: what a text is as a name.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Value, json};
use xdstp_uri::{Locator, MAX_LEN, ParseError, ParseErrorKind, ResourceName, Urn};

use super::answer;
use crate::input::Records;
use crate::show::{underline, visible};

/// Show the parts of names, or where they are wrong; exit 0 if all are xdstp names or locators
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  xds names parse 'xdstp://a/some.Type/x%20y?b=1&a=%26'
  grep -oh 'xdstp://[^ ]*' *.yaml | xds names parse --json")]
pub(crate) struct Args {
    /// Print one JSON object a line for each name
    #[arg(long)]
    json: bool,
    /// Names on standard input end with NUL, not with a newline
    #[arg(short = '0', conflicts_with = "names")]
    nul: bool,
    /// The names; without any, they are read from standard input, one a line
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let show = if args.json { print_json } else { print };
    let mut all_valid = true;
    if args.names.is_empty() {
        let separator = if args.nul { 0 } else { b'\n' };
        // What is cut is still too long, even within a character.
        for record in Records::new(io::stdin().lock(), separator, MAX_LEN + 4) {
            all_valid &= show(&mut out, &Name::of(&record?.bytes))?;
        }
    } else {
        for name in &args.names {
            all_valid &= show(&mut out, &Name::of(name.as_encoded_bytes()))?;
        }
    }
    Ok(if all_valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A text and what it is.
struct Name {
    text: String,
    /// Where the text stops being UTF-8.
    not_utf8: Option<usize>,
}

impl Name {
    fn of(bytes: &[u8]) -> Self {
        let not_utf8 = str::from_utf8(bytes).err().map(|error| error.valid_up_to());
        let text = String::from_utf8_lossy(bytes).into_owned();
        // What is behind the limit is not looked at.
        Self { text, not_utf8: not_utf8.filter(|at| *at <= MAX_LEN) }
    }
}

/// The fields of a test vector's `expect`, with the vector's `kind` and the `offset` of the error it names.
fn print_json(out: &mut impl Write, name: &Name) -> io::Result<bool> {
    let (mut found, offset) = match name.not_utf8 {
        Some(at) => (json!({"error": ParseErrorKind::InvalidUtf8.as_str()}), Some(at)),
        None => (answer::parse(&name.text), first_error(&name.text).map(|error| error.offset())),
    };
    let is_valid = found.get("error").is_none();
    let kind = match (is_valid, offset) {
        (false, _) => "invalid",
        (true, Some(_)) => "url",
        (true, None) => "urn",
    };
    if let Some(fields) = found.as_object_mut() {
        fields.insert("kind".into(), kind.into());
        fields.insert("offset".into(), offset.map_or(Value::Null, Value::from));
    }
    writeln!(out, "{found}")?;
    Ok(is_valid)
}

/// The error that `error` or, for a locator, `urn_error` stands for.
fn first_error(text: &str) -> Option<ParseError> {
    let urn = Urn::parse(text).err()?;
    let is_xdstp = urn.kind() != ParseErrorKind::NotXdstp;
    Some(Locator::parse(text).err().filter(|_| is_xdstp).unwrap_or(urn))
}

fn print(out: &mut impl Write, name: &Name) -> io::Result<bool> {
    let text = &*name.text;
    if let Some(at) = name.not_utf8 {
        writeln!(out, "invalid: expected UTF-8, at byte {at}\n{}", underline(text, at))?;
        return Ok(false);
    }
    match (Urn::parse(text), Locator::parse(text)) {
        (Ok(_), Ok(locator)) => {
            writeln!(out, "name {}", visible(text))?;
            print_parts(out, &locator, 1)?;
            Ok(true)
        }
        (Err(urn), Ok(locator)) => {
            writeln!(out, "locator {}", visible(text))?;
            print_parts(out, &locator, 1)?;
            writeln!(out, "  not the name of one resource: {urn}")?;
            Ok(true)
        }
        (Err(urn), Err(_)) if urn.kind() == ParseErrorKind::NotXdstp && !text.is_empty() => {
            match ResourceName::parse(text) {
                Ok(_) => writeln!(out, "opaque name: {urn}\n{}", underline(text, urn.offset()))?,
                Err(error) => print_error(out, text, error)?,
            }
            Ok(false)
        }
        (_, Err(error)) => {
            print_error(out, text, error)?;
            Ok(false)
        }
    }
}

fn print_error(out: &mut impl Write, text: &str, error: ParseError) -> io::Result<()> {
    writeln!(out, "invalid: {error}\n{}", underline(text, error.offset()))
}

fn print_parts(out: &mut impl Write, locator: &Locator<'_>, level: usize) -> io::Result<()> {
    let mut part = |what, value: &str| writeln!(out, "{:level$}{what:<15}{}", "", visible(value), level = 2 * level);
    part("scheme", locator.scheme().as_str())?;
    part("authority", &locator.authority())?;
    part("resource type", &locator.resource_type())?;
    part("id", &locator.id())?;
    for (key, value) in &locator.context_params() {
        part("parameter", &format!("{key} = {value}"))?;
    }
    if locator.is_glob() {
        part("glob", "all resources one level deep")?;
    }
    if !locator.is_canonical() {
        part("canonical", &locator.to_canonical())?;
    }
    for directive in locator.directives() {
        if let Some(entry) = directive.entry() {
            writeln!(out, "{:level$}{:<15}{}", "", "entry", visible(&entry), level = 2 * level)?;
        }
        if let Some(alt) = directive.alt() {
            writeln!(out, "{:level$}{:<15}{}", "", "alternative", visible(&alt.to_canonical()), level = 2 * level)?;
            // As deep as locators are nested, which has a bound.
            print_parts(out, &alt, level + 1)?;
        }
    }
    Ok(())
}
