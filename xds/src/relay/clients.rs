//! `xds relay clients`: who is served, and how each is.

use std::io::Write;

use serde_json::Value;
use xds_relay::api::{ClientRow, short_time, short_type};

use super::admin::{Admin, Failure};
use super::text::columns;
use super::{Done, Form, json};
use crate::ask::{Verdict, type_url};
use crate::show::complain;

/// List the clients: a row for each stream. Exits with 1 if there is none
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// With this node id
    #[arg(long)]
    node: Option<String>,
    /// With this text in the node's id, cluster or zone, the address or a group
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// In this state: SYNCED, WAITING, SILENT or REJECTED
    #[arg(long, ignore_case = true, value_parser = ["SYNCED", "WAITING", "SILENT", "REJECTED"])]
    state: Option<String>,
    /// That want something of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = type_url)]
    type_url: Option<String>,
    /// How many at most
    #[arg(long, value_name = "NUMBER", default_value = "1000")]
    limit: usize,
}

pub(super) fn run(args: &Args, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Done {
    let state = args.state.as_deref().map(str::to_ascii_uppercase);
    let query = [
        ("node", args.node.as_deref()),
        ("search", args.search.as_deref()),
        ("state", state.as_deref()),
        ("type", args.type_url.as_deref()),
    ];
    let (rows, more) = all(admin, "clients", "clients", &query, args.limit)?;
    match form {
        Form::Json => rows.iter().try_for_each(|row| json(out, row))?,
        Form::Text => {
            let head = ["ID", "NODE", "CLUSTER", "STATE", "SINCE", "PEER", "GROUPS", "TYPES"];
            columns(out, head, &rows.iter().map(shown).collect::<Vec<_>>())?;
        }
    }
    if more {
        complain(format_args!("there are more: --limit says how many are listed"));
    }
    Ok(if rows.is_empty() { Verdict::Wrong } else { Verdict::There })
}

/// So many of what comes in pages, and whether there is more.
pub(super) fn all(
    admin: Admin<'_>,
    path: &str,
    field: &str,
    query: &[(&str, Option<&str>)],
    limit: usize,
) -> Result<(Vec<Value>, bool), Failure> {
    let (mut rows, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = limit.saturating_sub(rows.len()).clamp(1, xds_relay::api::LONGEST_PAGE).to_string();
        let paged = [("limit", Some(&*page)), ("after", after.as_deref())];
        let mut told: Value = admin.get(path, &[query, &paged].concat())?;
        if let Some(Value::Array(more)) = told.get_mut(field).map(Value::take) {
            rows.extend(more);
        }
        after = told.get("next").map(|next| next.as_str().map_or_else(|| next.to_string(), str::to_owned));
        if after.is_none() || rows.len() >= limit {
            rows.truncate(limit);
            return Ok((rows, after.is_some()));
        }
    }
}

fn shown(row: &Value) -> [String; 8] {
    let row: ClientRow = serde_json::from_value(row.clone()).unwrap_or_default();
    let types: Vec<_> = row.types.iter().map(|type_url| short_type(type_url)).collect();
    let state = if row.busy { "busy".to_owned() } else { row.state.to_string() };
    [
        row.id.to_string(),
        row.node,
        row.cluster,
        state,
        short_time(row.since_seconds),
        row.peer,
        row.groups.join(", "),
        types.join(","),
    ]
}
