//! `xds relay status`: how the relay is.

use std::io::Write;

use serde_json::Value;
use xds_relay::api::{CertificateState, OriginStatus, Status, short_time, short_type};

use super::admin::Admin;
use super::text::columns;
use super::{Done, Form, json};
use crate::ask::Verdict;
use crate::show::visible;

/// Say how the relay is, and its origins: exits with 1 if it is not ready
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_: &Args, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Done {
    let told: Value = admin.get("status", &[])?;
    let status: Status = serde_json::from_value(told.clone()).unwrap_or_default();
    match form {
        Form::Json => json(out, &told)?,
        Form::Text => text(out, &status)?,
    }
    Ok(if status.ready { Verdict::There } else { Verdict::Wrong })
}

fn text(out: &mut impl Write, status: &Status) -> std::io::Result<()> {
    let Status { version, instance, uptime_seconds, not_ready, origins, clients, resources, state_kept, .. } = status;
    let certificates = &status.certificates;
    let up = short_time(*uptime_seconds);
    writeln!(out, "xds-relay {}, instance {}, up for {up}", visible(version), visible(instance))?;
    match not_ready {
        None => writeln!(out, "ready")?,
        Some(reason) => writeln!(out, "not ready: {}", visible(reason))?,
    }
    if let Some(kept) = state_kept {
        writeln!(out, "what is known is {}kept over a restart", if *kept { "" } else { "not " })?;
    }
    for certificate in certificates.iter().filter(|certificate| certificate.state != CertificateState::Good) {
        let (field, file) = (visible(&certificate.field), visible(&certificate.file));
        writeln!(out, "{field} is {}: it {} ({file})", certificate.state, certificate.words())?;
    }
    writeln!(
        out,
        "{} clients: {} synced, {} waiting, {} silent, {} rejected",
        clients.all, clients.synced, clients.waiting, clients.silent, clients.rejected
    )?;
    let held: Vec<_> =
        resources.iter().map(|(type_url, count)| format!("{count} {}", visible(short_type(type_url)))).collect();
    writeln!(out, "holds {}\n", if held.is_empty() { "nothing".to_owned() } else { held.join(", ") })?;
    let head = ["ORIGIN", "KIND", "STATE", "STREAMS", "RESOURCES", "STALE", "WORDS"];
    columns(out, head, &origins.iter().map(row).collect::<Vec<_>>())
}

fn row(origin: &OriginStatus) -> [String; 7] {
    [
        origin.name.clone(),
        origin.kind.clone(),
        origin.state.to_string(),
        format!("{}/{}", origin.streams_up, origin.streams),
        origin.resources.to_string(),
        origin.stale.to_string(),
        origin.trouble().unwrap_or_default(),
    ]
}
