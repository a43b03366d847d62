//! `xds relay resources`: what is held, and who wants it.

use std::io::{self, Write};

use serde_json::Value;
use xds_relay::api::{HeldResource, ResourceRow, short_time, short_type};

use super::admin::{Admin, Failure};
use super::clients::all;
use super::text::columns;
use super::{Done, Form, json};
use crate::ask::{Verdict, type_url};
use crate::output::yaml_document;
use crate::show::{complain, visible};

/// List the resources that the relay holds, or show one: who wants it, and what is in it without secrets. Exits with 1 if there
/// is none
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A type URL, or a short name such as cluster
    #[arg(value_name = "TYPE", value_parser = type_url)]
    type_url: Option<String>,
    /// With this text in their names
    #[arg(long, value_name = "TEXT", conflicts_with = "name")]
    search: Option<String>,
    /// The one with this name
    #[arg(long, requires = "type_url")]
    name: Option<String>,
    /// How many at most
    #[arg(long, value_name = "NUMBER", default_value = "1000")]
    limit: usize,
}

pub(super) fn run(args: &Args, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Done {
    if let Some(name) = &args.name {
        return one(admin, args.type_url.as_deref(), name, form, out);
    }
    let query = [("type", args.type_url.as_deref()), ("search", args.search.as_deref())];
    let (rows, more) = all(admin, "resources", "resources", &query, args.limit)?;
    match form {
        Form::Json => rows.iter().try_for_each(|row| json(out, row))?,
        Form::Text if rows.is_empty() => {}
        Form::Text => {
            let head = ["TYPE", "NAME", "VERSION", "BYTES", "CHANGED", "ORIGIN", "SCOPE"];
            columns(out, head, &rows.iter().map(shown).collect::<Vec<_>>())?;
        }
    }
    if more {
        complain(format_args!("there are more: --limit says how many are listed"));
    }
    Ok(if rows.is_empty() { Verdict::Wrong } else { Verdict::There })
}

fn shown(row: &Value) -> [String; 7] {
    let row: ResourceRow = serde_json::from_value(row.clone()).unwrap_or_default();
    [
        short_type(&row.type_url).to_owned(),
        row.name.clone(),
        row.version_words(),
        row.bytes.to_string(),
        row.changed_seconds_ago.map(short_time).unwrap_or_default(),
        row.origin,
        row.scope,
    ]
}

fn one(admin: Admin<'_>, type_url: Option<&str>, name: &str, form: Form, out: &mut impl Write) -> Done {
    let told: Value = admin.get("resource", &[("type", type_url), ("name", Some(name))])?;
    let held = told.get("held").and_then(Value::as_array).cloned().unwrap_or_default();
    if held.is_empty() {
        let of_type = short_type(type_url.unwrap_or_default());
        return Err(Failure::Absent(format!("the relay holds no {of_type} {name}")));
    }
    let mut exists = false;
    for told in &held {
        let held: HeldResource = serde_json::from_value(told.clone()).unwrap_or_default();
        exists |= held.row.version.is_some();
        match form {
            Form::Json => json(out, told)?,
            Form::Text => text(out, &held)?,
        }
    }
    Ok(if exists { Verdict::There } else { Verdict::Wrong })
}

fn text(out: &mut impl Write, held: &HeldResource) -> io::Result<()> {
    let HeldResource { row, parameters, variant, wanted_by, more_wanting, content, hidden } = held;
    writeln!(out, "{} {}", short_type(&row.type_url), visible(&row.name))?;
    writeln!(out, "  version    {}", visible(&row.version_words()))?;
    writeln!(out, "  origin     {}", visible(&row.origin))?;
    writeln!(out, "  scope      {}", visible(&row.scope))?;
    for (what, of) in [("parameters", parameters), ("variant   ", variant)] {
        of.iter().try_for_each(|of| writeln!(out, "  {what} {}", visible(of)))?;
    }
    for client in wanted_by {
        let sent = if client.sent { "" } else { ", not sent yet" };
        let (node, wanted_as) = (visible(&client.node), visible(&client.wanted_as));
        writeln!(out, "  wanted by  {node} (#{}) as {wanted_as}{sent}", client.id)?;
    }
    if *more_wanting > 0 {
        writeln!(out, "  wanted by  {more_wanting} others")?;
    }
    match (content, hidden) {
        (Some(content), _) => yaml_document(out, content),
        (None, Some(reason)) => writeln!(out, "  content    not shown: {}", visible(reason)),
        (None, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_variant_it_is_told_whom_it_is_for() {
        let row = ResourceRow { type_url: "x/a.B".to_owned(), name: "n".to_owned(), ..ResourceRow::default() };
        let (parameters, variant) = (Some("{env=prod}".to_owned()), Some("env=prod\u{1b}".to_owned()));
        let mut out = Vec::new();
        text(&mut out, &HeldResource { row, parameters, variant, ..HeldResource::default() }).unwrap();
        let shown = "B n\n  version    (does not exist)\n  origin     \n  scope      \n  parameters {env=prod}\n  \
                     variant    env=prod\\u{1b}\n";
        assert_eq!(String::from_utf8(out).unwrap(), shown);
    }
}
