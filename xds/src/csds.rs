//! `xds csds`: what clients have.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use prost::Message;
use serde::Serialize;
use serde_json::Value;
use xds_transport::grpc::client::fetch_client_status;
use xds_transport::wire::Node;
use xds_transport::wire::client_status::{
    ClientConfig, ClientStatusRequest, ClientStatusResponse, ConfigStatus, GenericXdsConfig,
};
use xdstp_client::Endpoint;
use xdstp_client::upstream::Pool;

use crate::ask::{Secure, Verdict, seconds};
use crate::exit;
use crate::output::{self, Content, Form};
use crate::show::{complain, unless_closed, visible};

/// Show what clients have and how it fares there, as a control plane, a relay or a gRPC client tells it (CSDS): 0 if all is
/// well, 1 if a client rejects something or lacks what it asks for, 3 if nobody answers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  xds csds 127.0.0.1:18000
  xds csds --contents --output yaml unix:/run/xds-relay.sock")]
pub(crate) struct Args {
    /// The server, as host:port or URI
    host: String,
    #[command(flatten)]
    secure: Secure,
    #[command(flatten)]
    output: output::Args,
    /// Have the resources themselves told, too: json and yaml print them
    #[arg(long)]
    contents: bool,
    /// How long to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    timeout: Duration,
}

/// Fields may be added; none of these changes. What there is none of is left out.
#[derive(Debug, Serialize)]
struct Line<'a> {
    node: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    scope: &'a str,
    #[serde(rename = "type")]
    type_url: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    /// How it fares at the client.
    status: &'static str,
    /// How it fares, as its server knows.
    sent: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Rejected<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<Value>,
}

#[derive(Debug, Serialize)]
struct Rejected<'a> {
    version: &'a str,
    message: &'a str,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: Args) -> Result<ExitCode, Box<dyn Error>> {
    let endpoint = Endpoint::new(&args.host).map_err(Box::from).and_then(|to| args.secure.secure(&args.host, to));
    let endpoint = match endpoint {
        Ok(endpoint) => endpoint,
        Err(error) => return Ok(exit::usage(&*error)),
    };
    let request = ClientStatusRequest { exclude_resource_contents: !args.contents, ..ClientStatusRequest::default() };
    let answer = tokio::time::timeout(args.timeout, fetch(endpoint, request)).await;
    let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {:?}", args.timeout)));
    let clients = match answer {
        Ok(ClientStatusResponse { config }) => config,
        Err(error) => {
            complain(format_args!("{}: {}", visible(&args.host), visible(&error)));
            return Ok(exit::code(Some(Verdict::Unknown)));
        }
    };
    let is_well = clients.iter().flat_map(|client| &client.generic_xds_configs).all(is_well);
    let verdict = if is_well { Verdict::There } else { Verdict::Wrong };
    unless_closed(print(&clients, args.output.form()).map(|()| exit::code(Some(verdict))))
}

async fn fetch(endpoint: Endpoint, request: ClientStatusRequest) -> Result<ClientStatusResponse, String> {
    let pool = Pool::new(endpoint);
    let place = pool.place().await.map_err(|error| error.error)?;
    fetch_client_status(place.channel(), request).await.map_err(|status| match status.code() {
        tonic::Code::Unimplemented => "it does not tell what its clients have: it has no CSDS".to_owned(),
        code => format!("{code}: {}", status.message()),
    })
}

/// What is only under way is well.
fn is_well(of: &GenericXdsConfig) -> bool {
    // Who knows that something was rejected may have no words of it.
    let is_rejected = of.error_state.is_some() || of.config_status() == ConfigStatus::Error;
    !is_rejected && matches!(of.client_status().as_str_name(), "UNKNOWN" | "REQUESTED" | "ACKED")
}

fn print(clients: &[ClientConfig], form: Form) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let content = Content::default();
    for client in clients {
        let node = Node::decode(client.node.clone()).unwrap_or_default();
        if form == Form::Text {
            let scope =
                if client.client_scope.is_empty() { String::new() } else { format!(", {}", client.client_scope) };
            writeln!(out, "{}", visible(&format!("{}{scope}", node.id)))?;
        }
        for of in &client.generic_xds_configs {
            let line = line(&node.id, client, of, &content)?;
            match form {
                Form::Text => text(&mut out, &line)?,
                Form::Json => writeln!(out, "{}", serde_json::to_string(&line)?)?,
                Form::Yaml => output::yaml_document(&mut out, &line)?,
            }
        }
    }
    Ok(())
}

fn line<'a>(
    node: &'a str,
    client: &'a ClientConfig,
    of: &'a GenericXdsConfig,
    content: &Content,
) -> io::Result<Line<'a>> {
    let resource = (!of.xds_config.is_empty()).then(|| content.of(&of.xds_config)).transpose();
    let error = of.error_state.as_ref();
    Ok(Line {
        node,
        scope: &client.client_scope,
        type_url: &of.type_url,
        name: &of.name,
        version: &of.version_info,
        status: of.client_status().as_str_name(),
        sent: of.config_status().as_str_name(),
        error: error.map(|error| Rejected { version: &error.version_info, message: &error.details }),
        resource: resource.map_err(io::Error::other)?,
    })
}

fn text(out: &mut impl Write, line: &Line<'_>) -> io::Result<()> {
    let short = line.type_url.rsplit(['.', '/']).next().unwrap_or_default();
    write!(out, "  {} {} {}", line.status, visible(short), visible(line.name))?;
    if !line.version.is_empty() {
        write!(out, " at {}", visible(line.version))?;
    }
    match &line.error {
        Some(error) => writeln!(out, ": rejected {}: {}", visible(error.version), visible(error.message)),
        None if line.sent == ConfigStatus::Error.as_str_name() => writeln!(out, ": rejected"),
        None => writeln!(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_knows_to_be_rejected_is_not_well_though_it_has_no_words_of_it() {
        for (status, well) in [("SYNCED", true), ("NOT_SENT", true), ("STALE", true), ("ERROR", false)] {
            let config_status = ConfigStatus::from_str_name(status).unwrap().into();
            let of = GenericXdsConfig { config_status, ..GenericXdsConfig::default() };
            assert_eq!(is_well(&of), well, "{status}");
            let (client, mut said) = (ClientConfig::default(), Vec::new());
            text(&mut said, &line("", &client, &of, &Content::default()).unwrap()).unwrap();
            assert_eq!(String::from_utf8(said).unwrap().contains(": rejected\n"), !well, "{status}");
        }
    }
}
