//! `xds diff`: whether two servers, or a server and files, have the same.

mod compare;
mod files;
mod side;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use self::compare::{Difference, Field, differences};
use self::side::Sides;
use crate::ask::{Identity, Verdict, Wanted, seconds};
use crate::exit;
use crate::output::{self, Content, Form};
use crate::show::{unless_closed, visible};

/// Show what two servers, or a server and files, do not have in common: 0 if nothing, 1 if something, 3 if one of them does
/// not answer or does not want to be asked
///
/// Versions are not compared: each server has its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  xds diff 127.0.0.1:18000 control-plane.example.com:18000 cluster
  xds diff 127.0.0.1:18000 ./resources listener 'xdstp://example.com/envoy.config.listener.v3.Listener/edge/*'")]
pub(crate) struct Args {
    /// A server, as host:port, URI or unix:PATH; or files as a relay serves them: one of them, or their directory
    a: String,
    /// The same
    b: String,
    #[command(flatten)]
    identity: Identity,
    #[command(flatten)]
    output: output::Args,
    /// How long to wait for answers. A SotW server says that a name does not exist by 15 s of silence
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    timeout: Duration,
    #[command(flatten)]
    wanted: Wanted,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: Args) -> Result<ExitCode, Box<dyn Error>> {
    if let Some((text, reason)) = args.wanted.names(&[]).find_map(|(text, name)| Some((text, name.err()?))) {
        return Ok(exit::usage(&*Box::<dyn Error>::from(format!("{text}: {reason}"))));
    }
    let content = Content::default();
    let sides = Sides { identity: &args.identity, wanted: &args.wanted, timeout: args.timeout, content: &content };
    let (a, b) = match (sides.open(&args.a), sides.open(&args.b)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(error), _) | (_, Err(error)) => return Ok(exit::usage(&*error)),
    };
    let (a, b) = tokio::try_join!(sides.read(&a), sides.read(&b))?;
    if let Some(verdict) = a.verdict.max(b.verdict) {
        return Ok(exit::code(Some(verdict)));
    }
    let differences = differences(a.resources, b.resources, &content)?;
    let verdict = if differences.is_empty() { Verdict::There } else { Verdict::Wrong };
    let printed = print(&differences, args.wanted.type_url(), args.output.form());
    unless_closed(printed.map(|()| exit::code(Some(verdict))))
}

fn print(differences: &[Difference], type_url: &str, form: Form) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for difference in differences {
        match form {
            Form::Text => text(&mut out, difference)?,
            Form::Json => writeln!(out, "{}", serde_json::to_string(&difference.line(type_url))?)?,
            Form::Yaml => output::yaml_document(&mut out, &difference.line(type_url))?,
        }
    }
    Ok(())
}

fn text(out: &mut impl Write, difference: &Difference) -> io::Result<()> {
    let name = visible(&difference.name);
    match &difference.fields {
        None if difference.is_in_a => writeln!(out, "only in A: {name}"),
        None => writeln!(out, "only in B: {name}"),
        Some(fields) => {
            writeln!(out, "differs: {name}")?;
            fields.iter().try_for_each(|Field { field, a, b }| {
                let value = |value: &Option<serde_json::Value>| match value {
                    Some(value) => visible(&value.to_string()),
                    None => "nothing".to_owned(),
                };
                writeln!(out, "  {}: A has {}, B has {}", visible(field), value(a), value(b))
            })
        }
    }
}
