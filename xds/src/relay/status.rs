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
    let (certificates, config) = (&status.certificates, &status.config);
    let up = short_time(*uptime_seconds);
    writeln!(out, "xds-relay {}, instance {}, up for {up}", visible(version), visible(instance))?;
    match not_ready {
        None => writeln!(out, "ready")?,
        Some(reason) => writeln!(out, "not ready: {}", visible(reason))?,
    }
    if let Some(kept) = state_kept {
        writeln!(out, "what is known is {}kept over a restart", if *kept { "" } else { "not " })?;
    }
    if let Some(error) = &config.error {
        writeln!(out, "the configuration that was read last does not count: {}", visible(error))?;
    }
    if !config.needs_restart.is_empty() {
        writeln!(out, "the configuration needs a restart for {}", visible(&config.needs_restart.join(", ")))?;
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

#[cfg(test)]
mod tests {
    use xds_relay::api::ConfigState;

    use super::*;

    #[test]
    fn what_became_of_the_configuration_is_said_where_it_is_not_all_that_counts() {
        let printed = |config: ConfigState| {
            let mut out = Vec::new();
            let status = Status { config, ..Status::default() };
            text(&mut out, &status).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(!printed(ConfigState::default()).contains("configuration"));
        let bad = ConfigState { error: Some("line 3: no".to_owned()), needs_restart: vec![] };
        assert!(printed(bad).contains("\nthe configuration that was read last does not count: line 3: no\n"));
        let half = ConfigState { error: None, needs_restart: vec!["listen".to_owned(), "admin".to_owned()] };
        assert!(printed(half).contains("\nthe configuration needs a restart for listen, admin\n"));
    }
}
