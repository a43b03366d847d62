//! `xds names match`: whether a resource answers a subscription.

use std::io::{self, Write};
use std::process::ExitCode;

use xdstp_uri::ResourceName;

use crate::show::{complain, underline, visible};

/// Does a resource with this name answer a subscription? Exit 0 if it does, 1 if not, 2 if one is no name
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  xds names match 'xdstp://a/some.Type/dir/*?env=prod' 'xdstp://a/some.Type/dir/x?env=prod'")]
pub(crate) struct Args {
    /// What was subscribed to: a name or a glob
    subscription: String,
    /// The name of a resource that was received
    name: String,
}

pub(crate) fn run(args: &Args) -> io::Result<ExitCode> {
    let (subscription, name) = match (ResourceName::parse(&args.subscription), ResourceName::parse(&args.name)) {
        (Ok(subscription), Ok(name)) => (subscription, name),
        (subscription, name) => {
            let errors = [("SUBSCRIPTION", &args.subscription, subscription), ("NAME", &args.name, name)];
            for (what, text, error) in
                errors.into_iter().filter_map(|(what, text, parsed)| Some((what, text, parsed.err()?)))
            {
                complain(format_args!("{what}: {error}\n{}", underline(text, error.offset())));
            }
            return Ok(ExitCode::from(2));
        }
    };
    let mut out = io::stdout().lock();
    if name.answers(&subscription) {
        writeln!(out, "matches")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "does not match: {}", difference(&subscription, &name))?;
    Ok(ExitCode::FAILURE)
}

/// The first component in which a name differs from what was subscribed to.
fn difference(subscription: &ResourceName, name: &ResourceName) -> String {
    let (Some(wanted), Some(found)) = (subscription.locator(), name.locator()) else {
        return match (subscription.is_opaque(), name.is_opaque()) {
            (true, true) => "the opaque names differ".to_owned(),
            _ => "one is an opaque name, the other an xdstp name".to_owned(),
        };
    };
    let components = [
        ("authority", wanted.authority(), found.authority()),
        ("resource type", wanted.resource_type(), found.resource_type()),
        (
            "context parameters",
            wanted.context_params().to_canonical().into_owned().into(),
            found.context_params().to_canonical().into_owned().into(),
        ),
        ("id", wanted.id(), found.id()),
    ];
    let differs = components.into_iter().find(|(_, wanted, found)| wanted != found);
    match differs {
        Some((what, wanted, found)) => {
            format!("expected the {what} \"{}\", found \"{}\"", visible(&wanted), visible(&found))
        }
        None => "the names differ".to_owned(),
    }
}
