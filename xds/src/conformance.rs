//! `xds conformance`: which rules of xDS a server keeps, seen from outside.

mod adapter;
mod check;
mod client;
mod lab;
mod link;
mod messages;
mod method;
mod report;
mod resources;
mod rules;
mod select;
mod suite;

use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use xdstp_client::upstream::Pool;
use xdstp_client::{Backoff, Endpoint};

use self::adapter::{Adapter, Spec};
use self::lab::Lab;
use self::method::Method;
use self::report::{Form, Report};
use self::select::Selection;
use self::suite::Counts;
use crate::ask::{DialectName, Secure, seconds};
use crate::exit;
use crate::show::{complain, unless_closed, visible};

/// Check which rules of xDS a server keeps, as a client sees it: exit with 1 if it breaks one, with 3 if it cannot be reached or
/// nothing is known of it
///
/// The server's resources are changed through an adapter, under names of this run's own; most checks need one. A rule has the
/// number that it has in CONFORMANCE.md of xds-transport.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  xds conformance 127.0.0.1:18000 --adapter files:./resources
  xds conformance 127.0.0.1:18000 --adapter 'command:./adapter --verbose' --output junit
  xds conformance 127.0.0.1:18000 --adapter tcp:127.0.0.1:18001 --only nonces,48-57 --method delta-ads
  xds conformance unix:/run/plane.sock --ca ca.pem --cert me.pem --key me.key --server-name plane.example.com
  xds conformance 127.0.0.1:18000 --adapter tcp:127.0.0.1:18001 --dialect draft --only parameters,ranges
  xds conformance --list")]
pub(crate) struct Args {
    /// The server, as host:port, URI or unix:PATH
    #[arg(value_name = "HOST:PORT", required_unless_present = "list")]
    server: Option<String>,
    #[command(flatten)]
    secure: Secure,
    /// How the server's resources are changed: files:DIRECTORY that it reads; command:PROGRAM ARGUMENTS, split at spaces with
    /// no meaning for quotes, or tcp:HOST:PORT, which speak lines of JSON; or cncf:HOST:PORT, an adapter of CNCF's xds-test-harness
    #[arg(long, value_name = "ADAPTER")]
    adapter: Option<Spec>,
    /// Only these: numbers of rules, ranges of them, such as 48-57, and groups
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    only: Vec<Selection>,
    /// Not these
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    skip: Vec<Selection>,
    /// Only over these methods
    #[arg(long, value_name = "METHODS", value_enum, value_delimiter = ',')]
    method: Vec<Method>,
    /// The form of TP2 that the server speaks: what is checked of dynamic parameters is what they mean in that
    #[arg(long, value_enum, default_value_t = DialectName::Final)]
    dialect: DialectName,
    /// How long to wait for what must come, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    timeout: Duration,
    /// Decides names and order: without it, names are new and the order is that of the numbers
    #[arg(long)]
    seed: Option<u64>,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    output: Form,
    /// Print the checks, and run none
    #[arg(long)]
    list: bool,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: Args) -> Result<ExitCode, Box<dyn Error>> {
    let mut checks = select::select(&args.only, &args.skip, args.dialect.dialect());
    if checks.is_empty() {
        return Ok(exit::usage(&*Box::<dyn Error>::from("no check is selected: see --list")));
    }
    let Some(server) = args.server.filter(|_| !args.list) else {
        return report::list(&checks);
    };
    let endpoint = match endpoint(&server, &args.secure) {
        Ok(endpoint) => endpoint,
        Err(error) => return Ok(exit::usage(&*error)),
    };
    let new = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
    let seed = args.seed.unwrap_or_else(new);
    if args.seed.is_some() {
        select::shuffle(&mut checks, seed);
    }
    let adapter = match Adapter::start(args.adapter.as_ref(), &format!("xds-{seed:x}")).await {
        Ok(adapter) => adapter,
        Err(why) => return Ok(exit::usage(&*Box::<dyn Error>::from(format!("the adapter: {why}")))),
    };
    let pool = Pool::new(endpoint);
    let reaching = async { pool.place().await.map_err(|error| error.to_string()) };
    let reached = tokio::time::timeout(args.timeout, reaching).await;
    // A place is held until the end, so that checks do not need a connection each.
    let _held = match reached.unwrap_or_else(|_| Err(format!("nobody answered within {:?}", args.timeout))) {
        Ok(place) => place,
        Err(error) => {
            complain(visible(&format!("no connection to {server}: {error}")));
            return Ok(exit::unknown());
        }
    };
    let methods = if args.method.is_empty() { method::ALL } else { &args.method };
    let mut lab = Lab::new(pool, adapter, args.timeout, seed).speaking(args.dialect.dialect());
    let mut report = Report::new(args.output, &server, seed);
    let done = tokio::select! {
        done = suite::run(&mut lab, &checks, methods, &mut report) => done,
        _ = tokio::signal::ctrl_c() => Err(io::ErrorKind::Interrupted.into()),
    };
    // What the server was given is not left there, whatever happened.
    lab.clear().await;
    if matches!(&done, Err(error) if error.kind() == io::ErrorKind::Interrupted) {
        complain("interrupted");
        return Ok(exit::unknown());
    }
    unless_closed(done.and_then(|counts| report.finish(&counts).map(|()| code(&counts))))
}

/// # Errors
/// It is no address, or not one that is spoken to here; or a file for TLS is not good.
fn endpoint(server: &str, secure: &Secure) -> Result<Endpoint, Box<dyn Error>> {
    // A check does not wait for what the one before it did to the server.
    let at_once = Backoff::new(Duration::ZERO, Duration::ZERO);
    secure.secure(server, Endpoint::new(server)?.with_backoff(at_once))
}

/// Where nothing is known, nothing is well.
fn code(counts: &Counts) -> ExitCode {
    match counts {
        Counts { fail: 1.., .. } => exit::wrong(),
        Counts { pass: 1.., .. } => ExitCode::SUCCESS,
        Counts { .. } => exit::unknown(),
    }
}
