//! `xds names listener`: what a gRPC channel or server subscribes to, and where.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use xdstp_uri::ResourceName;
use xdstp_uri::a47::{self, Servers, Target};

use super::bootstrap::{Bootstrap, Server};
use crate::show::{Problem, complain, underline, unless_closed, visible};

/// Show the listener that a gRPC client or server asks for, its authority in the bootstrap, and the servers (gRFC A47)
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  xds names listener --bootstrap bootstrap.json xds:server.example.com
  xds names listener --bootstrap bootstrap.json --server 0.0.0.0:8080")]
#[command(group(clap::ArgGroup::new("what").required(true).args(["target", "address"])))]
pub(crate) struct Args {
    /// The gRPC bootstrap file
    #[arg(long, value_name = "FILE")]
    bootstrap: PathBuf,
    /// The address that a gRPC server listens on
    #[arg(long = "server", value_name = "ADDR")]
    address: Option<String>,
    /// The target of a gRPC channel, such as xds:server.example.com
    target: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let bootstrap = Bootstrap::read(&args.bootstrap)?;
    let errors: Vec<_> = bootstrap.template_errors().collect();
    if !errors.is_empty() {
        for error in errors {
            complain(Problem::new(&args.bootstrap, error));
        }
        return Ok(ExitCode::FAILURE);
    }
    let listener = match (&args.address, &args.target) {
        (Some(address), _) => a47::server_listener_name(&bootstrap, address)?,
        (None, target) => {
            a47::client_listener_name(&bootstrap, &Target::parse(target.as_deref().unwrap_or_default())?)?
        }
    };
    let name = ResourceName::parse(&listener)
        .map_err(|error| format!("listener name: {error}\n{}", underline(&listener, error.offset())))?;
    let lookup = a47::look_up_authority(&bootstrap, &name)
        .map_err(|error| format!("{error}; the listener name is {}", visible(&listener)))?;
    let entry = lookup.authority.as_ref().and_then(|authority| bootstrap.authorities.get(authority));
    let (servers, whose) = match (lookup.servers, entry) {
        (Servers::Authority, Some(entry)) => (&entry.xds_servers, "of the authority"),
        _ => (&bootstrap.xds_servers, "top level"),
    };
    unless_closed(print(&listener, &name, lookup.authority.as_deref(), servers, whose).map(|()| ExitCode::SUCCESS))
}

fn print(
    listener: &str,
    name: &ResourceName,
    authority: Option<&str>,
    servers: &[Server],
    whose: &str,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "name       {}", visible(listener))?;
    if listener != name.as_str() {
        writeln!(out, "canonical  {}", visible(name.as_str()))?;
    }
    match authority {
        Some(authority) => writeln!(out, "authority  \"{}\"", visible(authority))?,
        None => writeln!(out, "authority  none: an opaque name")?,
    }
    for server in servers {
        let creds: Vec<_> = server.channel_creds.iter().map(|creds| visible(&creds.kind)).collect();
        let creds = if creds.is_empty() { String::new() } else { format!("  {}", creds.join(", ")) };
        writeln!(out, "server     {}{creds}  ({whose})", visible(&server.server_uri))?;
    }
    if servers.is_empty() {
        writeln!(out, "server     none ({whose})")?;
    }
    Ok(())
}
