//! `xds relay drift`: what is served otherwise than its origin has it.

use std::io::{self, Write};

use serde_json::Value;
use xds_relay::api::{Drift, Drifts, ScopeDrift, short_type};

use super::admin::{Admin, of_origin};
use super::text::columns;
use super::{Done, Form, json};
use crate::ask::{Verdict, type_url};
use crate::show::visible;

/// Have an origin asked once more, on streams that know of nothing before, and say what clients are served otherwise
///
/// The origin is asked for all that clients want of it. What differs for less than a second is on its way, and not said; what
/// the origin says nothing of is counted, for silence is no answer. Exits with 1 if something differs, and with 3 if nothing
/// does of what was compared, and that is not all.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The name of the origin in the relay's configuration
    origin: String,
    /// Of this type only: a type URL, or a short name such as cluster
    #[arg(long = "type", value_name = "TYPE", value_parser = type_url)]
    type_url: Option<String>,
    /// Of this authority (xdstp://…) or this node group only, as they are listed
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
}

pub(super) fn run(args: &Args, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Done {
    let query = [("origin", Some(&*args.origin)), ("type", args.type_url.as_deref()), ("scope", args.scope.as_deref())];
    let told = of_origin(admin.post::<Value>("drift", &query))?;
    let drifts: Drifts = serde_json::from_value(told.clone()).unwrap_or_default();
    match form {
        Form::Json => json(out, &told)?,
        Form::Text => text(out, &drifts)?,
    }
    Ok(match (drifts.is_any(), drifts.is_whole()) {
        (true, _) => Verdict::Wrong,
        (false, true) => Verdict::There,
        (false, false) => Verdict::Unknown,
    })
}

fn text(out: &mut impl Write, drifts: &Drifts) -> io::Result<()> {
    let rows: Vec<_> = drifts.scopes.iter().flat_map(rows).collect();
    if !rows.is_empty() {
        columns(out, ["SCOPE", "TYPE", "NAME", "SERVED", "AT ORIGIN"], &rows)?;
        writeln!(out)?;
    }
    for ScopeDrift { scope, same, unanswered, moving, trouble, drifts, more_drifts } in &drifts.scopes {
        let differ = drifts.len() + more_drifts;
        write!(out, "{}: {same} the same, {differ} differ", visible(scope))?;
        if *unanswered > 0 {
            write!(out, ", {unanswered} not answered for")?;
        }
        if *moving > 0 {
            write!(out, ", {moving} never stand still")?;
        }
        match trouble {
            Some(trouble) => writeln!(out, "; the origin: {}", visible(trouble))?,
            None => writeln!(out)?,
        }
    }
    if drifts.scopes.is_empty() {
        writeln!(out, "nothing is asked of it")?;
    }
    if drifts.more_scopes > 0 {
        writeln!(out, "and {} others, which --scope asks for one by one", drifts.more_scopes)?;
    }
    let clients = &drifts.clients;
    writeln!(out, "{} clients: {} have accepted what they are served", clients.all, clients.synced)
}

fn rows(scope: &ScopeDrift) -> Vec<[String; 5]> {
    let row = |drift: &Drift| {
        let [served, at_origin] =
            [&drift.served, &drift.at_origin].map(|version| version.clone().unwrap_or_else(|| "nothing".to_owned()));
        let at_origin = if drift.served == drift.at_origin { format!("{at_origin}, other content") } else { at_origin };
        [scope.scope.clone(), short_type(&drift.type_url).to_owned(), drift.name.clone(), served, at_origin]
    };
    scope.drifts.iter().map(row).collect()
}
