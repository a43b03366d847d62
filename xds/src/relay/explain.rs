//! `xds relay explain`: why a client has what it has.

use std::io::{self, Write};

use serde_json::Value;
use xds_relay::api::{Client, Explained, short_time};

use super::admin::{Admin, Failure};
use super::clients::all;
use super::{Done, Form, json};
use crate::ask::{Verdict, type_url};
use crate::show::visible;

/// How many streams of one node are told of.
const STREAMS: usize = 100;

/// Say why a client has what it has of a name: node group and aggregation rules, origin, version, and what it said of it
///
/// Exits with 0 if it accepted it; with 1 if it does not want it, if there is no such resource or client, or if it rejected it;
/// with 3 if the origin, or the client, has not answered.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The id of its node, or #ID for one stream
    #[arg(value_name = "NODE")]
    client: String,
    /// A type URL, or a short name such as cluster
    #[arg(value_name = "TYPE", value_parser = type_url)]
    type_url: String,
    /// The name
    name: String,
}

pub(super) fn run(args: &Args, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Done {
    let mut verdict = None;
    for id in ids(args, admin)? {
        let query = [("type", Some(&*args.type_url)), ("name", Some(&*args.name))];
        // It may have left meanwhile.
        let Some(told) = admin.find::<Value>(&format!("clients/{id}"), &query)? else { continue };
        let client: Client = serde_json::from_value(told.clone()).unwrap_or_default();
        match form {
            Form::Json => json(out, &told)?,
            Form::Text => text(out, &client)?,
        }
        verdict = verdict.max(client.explained.iter().chain(&client.also_explained).map(judge).max());
    }
    verdict.ok_or_else(|| Failure::Absent(format!("there is no client {}", args.client)))
}

/// The streams that are meant: of a node with one for each type, that of this type.
fn ids(args: &Args, admin: Admin<'_>) -> Result<Vec<String>, Failure> {
    if let Some(id) = args.client.strip_prefix('#') {
        return Ok(id.parse::<u64>().map(|id| id.to_string()).into_iter().collect());
    }
    let of = |type_url| {
        let query = [("node", Some(&*args.client)), ("type", type_url)];
        let (rows, _) = all(admin, "clients", "clients", &query, STREAMS)?;
        Ok::<Vec<_>, Failure>(rows.iter().filter_map(|row| Some(row.get("id")?.to_string())).collect())
    };
    let of_type = of(Some(&*args.type_url))?;
    if of_type.is_empty() { of(None) } else { Ok(of_type) }
}

fn judge(explained: &Explained) -> Verdict {
    match (&explained.wanted_as, explained.answer.as_deref()) {
        (None, _) | (_, Some("rejected")) => Verdict::Wrong,
        _ if explained.known && explained.version.is_none() => Verdict::Wrong,
        (_, Some("accepted")) if explained.version.is_some() => Verdict::There,
        _ => Verdict::Unknown,
    }
}

fn text(out: &mut impl Write, client: &Client) -> io::Result<()> {
    let row = &client.row;
    let since = short_time(row.since_seconds);
    let (node, cluster, peer) = (visible(&row.node), visible(&row.cluster), visible(&row.peer));
    writeln!(out, "#{} node {node}, cluster {cluster}, at {peer}: {} for {since}", row.id, row.state)?;
    client.explained.iter().chain(&client.also_explained).try_for_each(|explained| reasons(out, explained))
}

fn reasons(out: &mut impl Write, explained: &Explained) -> io::Result<()> {
    explained.reasons.iter().try_for_each(|reason| writeln!(out, "  {}", visible(reason)))?;
    for rule in &explained.rules {
        let verdict = rule.verdict.replace('_', " ");
        let words = if rule.words.is_empty() { String::new() } else { format!(": {}", rule.words) };
        let place = format!("fragment {}, rule {} (line {})", rule.fragment, rule.rule, rule.line);
        writeln!(out, "    {}", visible(&format!("{place} {verdict}{words}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_sets_of_parameters_each_is_explained_and_the_worst_counts() {
        let of = |answer: &str, reason: &str| Explained {
            wanted_as: Some("a".to_owned()),
            version: Some("1".to_owned()),
            known: true,
            answer: Some(answer.to_owned()),
            reasons: vec![reason.to_owned()],
            ..Explained::default()
        };
        let (explained, also_explained) = (Some(of("accepted", "One.")), vec![of("rejected", "Other.")]);
        let client = Client { explained, also_explained, ..Client::default() };
        let mut out = Vec::new();
        text(&mut out, &client).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.ends_with(": WAITING for 0s\n  One.\n  Other.\n"), "{out}");
        let verdicts = client.explained.iter().chain(&client.also_explained).map(judge);
        assert_eq!(verdicts.max(), Some(Verdict::Wrong));
    }
}
