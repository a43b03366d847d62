//! `xds variants select`: which variant a subscriber gets.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;
use xds_matcher::draft::{DynamicParameterConstraints, Subscription};
use xds_matcher::{Constraint, DynamicParameters, Selection};

use super::file::Variants;
use super::invalid;
use crate::show::{underline, unless_closed, visible};

/// Show the variant that a subscriber gets; exit 0 if there is one, 1 if none matches, 2 if the file or an argument is wrong
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  xds variants select variants.yaml env=prod version=v2
  xds variants select shards.yaml --constraints 'env=prod and shard in 0..5'")]
pub(crate) struct Args {
    /// YAML: form (final or draft) and variants (each a name with constraints or parameters)
    file: PathBuf,
    /// A subscriber of the final form: its parameters
    #[arg(value_name = "KEY=VALUE", conflicts_with = "constraints")]
    parameters: Vec<String>,
    /// A subscriber of the draft form: its constraints, such as 'env=prod and shard in 0..5', or as proto JSON
    #[arg(long, value_name = "TEXT")]
    constraints: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let variants = match Variants::read(&args.file) {
        Ok(variants) => variants,
        Err(problem) => return Ok(invalid(problem)),
    };
    let found = match &args.constraints {
        Some(text) => subscription(text).and_then(|subscription| for_draft_client(&variants, &subscription)),
        None => parameters(&args.parameters).map(|parameters| for_final_client(&variants, &parameters)),
    };
    match found {
        Ok((selection, matches)) => unless_closed(print(selection, &matches)),
        Err(problem) => Ok(invalid(problem)),
    }
}

type Found<'a> = (Selection<'a, String>, Vec<&'a String>);

fn for_final_client<'a>(variants: &'a Variants, sent: &DynamicParameters) -> Found<'a> {
    match variants {
        Variants::Final(variants) => (variants.select(sent), variants.matches(sent)),
        Variants::Draft(variants) => (variants.select_final(sent), variants.matches_final(sent)),
    }
}

fn for_draft_client<'a>(variants: &'a Variants, subscription: &Subscription) -> Result<Found<'a>, Box<dyn Error>> {
    match variants {
        Variants::Final(_) => Ok(for_final_client(variants, &subscription.to_parameters().map_err(prefixed)?)),
        Variants::Draft(variants) => Ok((variants.select(subscription), variants.matches(subscription))),
    }
}

fn parameters(pairs: &[String]) -> Result<DynamicParameters, Box<dyn Error>> {
    let pair = |pair: &String| {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("expected KEY=VALUE, found {pair:?}"))?;
        Ok((key.to_owned(), value.to_owned()))
    };
    pairs.iter().map(pair).collect::<Result<Vec<_>, Box<dyn Error>>>().map(DynamicParameters::from_iter)
}

fn subscription(text: &str) -> Result<Subscription, Box<dyn Error>> {
    if text.trim_start().starts_with('{') {
        let json: Value = serde_json::from_str(text).map_err(prefixed)?;
        return Ok(DynamicParameterConstraints::from_json(&json)
            .and_then(|message| message.lower())
            .map_err(prefixed)?);
    }
    let constraint: Constraint = text.parse().map_err(|error: xds_matcher::ParseError| {
        format!("--constraints: {error}\n{}", underline(text, error.offset()))
    })?;
    Ok(Subscription::where_present(&constraint).map_err(prefixed)?)
}

fn prefixed(error: impl Error) -> String {
    format!("--constraints: {error}")
}

fn print(selection: Selection<'_, String>, matches: &[&String]) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let Some(selected) = selection.variant() else {
        writeln!(out, "no variant matches")?;
        return Ok(ExitCode::FAILURE);
    };
    writeln!(out, "selected   {}", visible(selected))?;
    let mut names: Vec<_> = matches.iter().map(|name| visible(name)).collect();
    names.sort();
    writeln!(out, "matches    {}", names.join(", "))?;
    if selection.is_ambiguous() {
        writeln!(out, "ambiguous  others are as good as the selected one")?;
    }
    Ok(ExitCode::SUCCESS)
}
