//! The `xds-relay` command: reads a configuration, says what it serves, runs until it is told to stop.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand, ValueEnum};
use tokio::sync::oneshot;
use tracing_subscriber::util::SubscriberInitExt as _;
use xds_relay::{
    Config, ConfigError, ExampleMesh, FileContent, Relay, RelayBuilder,
    aggregation::Rules,
    config::{Address, Aggregation, Bootstrap, BootstrapNote, LogFilter, Origin},
};

mod causes;
mod convert;
#[cfg(feature = "file-origin")]
mod import;
mod keys;
mod log;
mod open_files;
mod reading;
mod signals;

use self::reading::Looks;
use self::signals::{Hangups, Signals, until_stopped};

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(all(feature = "mimalloc", not(feature = "jemalloc")))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A relay for xDS: one stream to each control plane, any number of Envoy and gRPC clients behind it.
///
/// Without arguments it serves a small example mesh from files.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// The configuration, a YAML file; or a bootstrap file of envoyproxy/xds-relay, whose other options are taken, too
    #[arg(long, short, value_name = "FILE", alias = "config-file")]
    config: Option<PathBuf>,

    /// Aggregation rules, a YAML file, in place of those of the configuration
    #[arg(long, short, value_name = "FILE")]
    aggregation_rules: Option<PathBuf>,

    /// Check the configuration and its resource files, and exit: 0 if they are good, 2 if not
    #[arg(long, requires = "config")]
    check: bool,

    /// Run, or check as `--check` does
    #[arg(long, short, value_name = "MODE", default_value = "serve", requires_if("validate", "config"))]
    mode: Mode,

    /// What to log, in place of what the configuration says: a level, or TARGET=LEVEL,…
    #[arg(long, short, value_name = "FILTER", env = "XDS_RELAY_LOG", alias = "log-level")]
    log: Option<LogFilter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    Serve,
    Validate,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say which key requests have by aggregation rules, and why
    Keys(keys::Arguments),
    /// Print the configuration that a bootstrap file of envoyproxy/xds-relay comes to
    Convert(convert::Arguments),
    /// Make files that the relay serves out of what an Envoy has in its own file
    #[cfg(feature = "file-origin")]
    Import(import::Arguments),
    /// Print a JSON Schema of the configuration, for editors
    Schema,
}

const EXAMPLES: &str = "\
Examples:
  xds-relay                                      the example mesh, on 127.0.0.1:18000
  xds-relay --config relay.yaml --check          is the file good?
  xds-relay --config relay.yaml                  run it
  xds-relay --config relay.yaml --log info,xds_relay=debug
  xds-relay schema >relay.schema.json            for an editor
  xds-relay convert bootstrap.yaml --aggregation rules.yaml >relay.yaml
  xds-relay import envoy.yaml                     files to serve, in ./mesh, of what an Envoy has in its own
  xds-relay keys --rules rules.yaml <requests    what do aggregation rules make of requests, and why?

SIGTERM or SIGINT (^C) drains, for as long as the configuration allows, and exits with 0; a second one exits at once, with
1. The configuration is read again when it changes, and on SIGHUP.";

const FAILED: u8 = 1;
const BAD_CONFIGURATION: u8 = 2;

fn main() -> ExitCode {
    let mut arguments = Arguments::parse();
    let result = match arguments.command.take() {
        Some(Command::Schema) => {
            say(&format!("{:#}\n", Config::schema()));
            Ok(())
        }
        Some(Command::Convert(arguments)) => convert::run(&arguments),
        #[cfg(feature = "file-origin")]
        Some(Command::Import(arguments)) => import::run(&arguments),
        Some(Command::Keys(arguments)) => keys::run(&arguments).map_err(Failure::from),
        None => {
            let file = arguments.config.clone();
            run(arguments).map_err(|failure| failure.placed(file.as_deref()))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // It was told where it was asked for.
        Err(Failure::Keys(keys::Failure::Told)) => ExitCode::from(BAD_CONFIGURATION),
        Err(failure) => {
            eprintln!("xds-relay: {}", causes::with_causes(&failure));
            ExitCode::from(match failure {
                #[cfg(feature = "file-origin")]
                Failure::Import(import::Failure::Read(_)) => BAD_CONFIGURATION,
                Failure::Config(_)
                | Failure::Rules(_)
                | Failure::Keys(keys::Failure::Rules(_))
                | Failure::Relay(
                    xds_relay::Error::Origin { .. } | xds_relay::Error::Field { .. } | xds_relay::Error::Aggregation(_),
                ) => BAD_CONFIGURATION,
                _ => FAILED,
            })
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Keys(#[from] keys::Failure),
    #[cfg(feature = "file-origin")]
    #[error(transparent)]
    Import(#[from] import::Failure),
    #[error(transparent)]
    Rules(#[from] xds_relay::aggregation::RulesError),
    #[error("cannot write the example mesh")]
    Example(#[source] io::Error),
    #[error("cannot start")]
    Start(#[source] io::Error),
    #[error(transparent)]
    Relay(#[from] xds_relay::Error),
    #[error("stopped by a second signal before the streams were drained")]
    Interrupted,
}

impl Failure {
    /// What is wrong with a field is said with its place in the file.
    fn placed(self, file: Option<&Path>) -> Self {
        match (self, file) {
            (Self::Relay(xds_relay::Error::Field { field, reason }), Some(file)) => {
                Self::Config(ConfigError::of_field(file, &field, reason))
            }
            (other, _) => other,
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let (file, example) = match arguments.config {
        Some(file) => (file, None),
        None => {
            let example = ExampleMesh::unpack().map_err(Failure::Example)?;
            (example.directory().join("relay.yaml"), Some(example))
        }
    };
    let source = Source { file, aggregation_rules: arguments.aggregation_rules, log: arguments.log };
    let (config, notes) = source.load_with_notes()?;
    let (logging, set_log) = log::to_stderr(&config.log);
    // Of what is checked some is good, and to be warned of all the same.
    logging.init();
    if arguments.check || arguments.mode == Mode::Validate {
        for note in &notes {
            eprintln!("xds-relay: note: {note}");
        }
        let files = xds_relay::check(&config)?;
        for noted in files.iter().flat_map(|content| content.dangling.iter().chain(&content.other_keys)) {
            eprintln!("xds-relay: note: {noted}");
        }
        if let Some(aggregation) = &config.aggregation {
            note_warnings(&aggregation.load()?);
        }
        say(&format!("good: {}\n", summary(&config, &files)));
        return Ok(());
    }
    for note in &notes {
        tracing::warn!("{note}");
    }
    open_files::take_more();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::Start)?;
    let relay = Relay::builder(config.clone()).log(set_log);
    let result = runtime.block_on(serve(source, config, relay, example.as_ref()));
    // The drain is over, or not wanted: a file that is being read need not be waited for.
    runtime.shutdown_background();
    result
}

/// Says what is odd in aggregation rules.
fn note_warnings(rules: &Rules) {
    rules.warnings().iter().for_each(|warning| eprintln!("xds-relay: note: {warning}"));
}

/// Where the configuration is from: a file, and what the command line says in its place.
#[derive(Clone)]
struct Source {
    file: PathBuf,
    aggregation_rules: Option<PathBuf>,
    log: Option<LogFilter>,
}

impl Source {
    fn load(&self) -> Result<Config, Failure> {
        self.load_with_notes().map(|(config, _)| config)
    }

    /// And what is otherwise than in the original, if the file is one of that.
    fn load_with_notes(&self) -> Result<(Config, Vec<BootstrapNote>), Failure> {
        let (mut config, notes) = match Bootstrap::load_if_one(&self.file)? {
            Some(mut bootstrap) => {
                if let Some(rules) = &self.aggregation_rules {
                    bootstrap.share_by_rules(rules)?;
                }
                let notes = bootstrap.notes().to_vec();
                (bootstrap.into_config(), notes)
            }
            None => {
                let mut config = Config::load(&self.file)?;
                if let Some(rules) = &self.aggregation_rules {
                    config.aggregation.get_or_insert_with(|| Aggregation::new(rules)).rules.clone_from(rules);
                }
                (config, Vec::new())
            }
        };
        if let Some(log) = &self.log {
            config.log.clone_from(log);
        }
        Ok((config, notes))
    }
}

async fn serve(
    source: Source,
    config: Config,
    relay: RelayBuilder,
    example: Option<&ExampleMesh>,
) -> Result<(), Failure> {
    // Before anything is said to be served, so that a signal right after that drains as well.
    let mut signals = Signals::new().map_err(Failure::Start)?;
    let mut hangups = Hangups::new().map_err(Failure::Start)?;
    let looks = Looks::new(source.file.clone(), config.clone());
    // Apart, so that a signal is heard while files are read.
    let bound = tokio::spawn(relay.bind());
    let relay = tokio::select! {
        bound = bound => bound.map_err(io::Error::from).map_err(Failure::Start)??,
        _ = signals.next() => return Ok(()),
    };
    say(&greeting(&relay, &config, example).map_err(Failure::Start)?);

    let (stop, stopped) = oneshot::channel::<()>();
    let reloader = relay.reloader();
    let (file, load) = (source.file.clone(), move || source.load());
    let place = |error| Failure::Relay(error).placed(Some(&file));
    let following = reading::follow(looks, load, reloader.clone(), place, async || hangups.next().await);
    let running = async {
        tokio::select! {
            ended = relay.run(async { drop(stopped.await) }) => ended,
            () = following => Ok(()),
        }
    };
    let drain = || {
        let times = reloader.config();
        (times.drain_delay, times.drain)
    };
    match until_stopped(running, stop, drain, async || signals.next().await).await {
        Some(result) => Ok(result?),
        None => Err(Failure::Interrupted),
    }
}

fn greeting(relay: &Relay, config: &Config, example: Option<&ExampleMesh>) -> io::Result<String> {
    let listen = relay.listen_address()?;
    let secure = if config.tls.is_some() { ", TLS" } else { "" };
    let mut text = format!("xds-relay {}\n  xDS      {listen}{secure}\n", env!("CARGO_PKG_VERSION"));
    let admin = relay.admin_address()?;
    match &admin {
        Some(admin @ Address::Unix(_)) => {
            let secure = if config.admin_tls.is_some() { ", TLS" } else { "" };
            text.push_str(&format!("  admin    {admin}{secure}\n"));
        }
        Some(admin) => text.push_str(&format!("  admin    {}://{admin}/\n", admin_scheme(config))),
        None => text.push_str("  admin    none\n"),
    }
    if let Some(orders) = relay.orders_address()? {
        text.push_str(&format!("  orders   {orders}\n"));
    }
    let files = relay.file_contents();
    for origin in &config.origins {
        text.push_str(&describe(origin, &config.default_origin));
        if let Some(content) = files.iter().find(|content| content.origin == origin.name) {
            text.push_str(&format!("           holds {content}\n"));
        }
    }
    if let Some(example) = example {
        let file = example.directory().join("mesh").join("front.yaml");
        text.push_str(&format!(
            "\nSee the example's endpoints arrive:\n  {WATCH} --server {listen} endpoint backend\n\
             then edit {} (say, its port 8080) and see them change.\n",
            file.display()
        ));
    } else if let Some(admin) = admin {
        text.push_str(&format!(
            "\nSee whether it reaches its origins, and what it holds:\n  curl {}/config_dump\n",
            admin_page(&admin, config)
        ));
    }
    Ok(text)
}

fn admin_scheme(config: &Config) -> &'static str {
    if config.admin_tls.is_some() { "https" } else { "http" }
}

/// What curl is to be told for a page, but for its path; in capitals what whoever looks has, and the relay has not.
fn admin_page(admin: &Address, config: &Config) -> String {
    let mut page = String::new();
    if let Some(tls) = &config.admin_tls {
        page.push_str("--cacert CA ");
        if tls.client_ca.is_some() {
            page.push_str("--cert CERTIFICATE --key KEY ");
        }
    }
    if config.admin_token.is_some() {
        page.push_str("--header 'authorization: Bearer TOKEN' ");
    }
    let host = match admin {
        Address::Unix(address) => {
            match address.path() {
                Some(path) => page.push_str(&format!("--unix-socket {} ", path.display())),
                None => {
                    let name = address.to_string().replacen("unix-abstract:", "", 1);
                    page.push_str(&format!("--abstract-unix-socket {name} "));
                }
            }
            "localhost".to_owned()
        }
        admin => admin.to_string(),
    };
    format!("{page}{}://{host}", admin_scheme(config))
}

const WATCH: &str = "cargo run -p xds-cli -- watch";

fn describe(origin: &Origin, default_origin: &str) -> String {
    let secure = if origin.tls.is_some() { ", TLS" } else { "" };
    let mut serves: Vec<String> = origin.authorities.iter().map(|authority| format!("xdstp://{authority}/…")).collect();
    if origin.name == default_origin {
        serves.push("everything else".to_owned());
    }
    let serves = if serves.is_empty() { "nothing".to_owned() } else { serves.join(", ") };
    format!("  origin   {} ({}{secure}): {serves}\n", origin.name, origin.kind)
}

fn summary(config: &Config, files: &[FileContent]) -> String {
    let admin = config.admin.as_ref().map_or("none".to_owned(), ToString::to_string);
    let origin = |origin: &Origin| match files.iter().find(|content| content.origin == origin.name) {
        Some(content) => format!("{} ({content})", origin.name),
        None => origin.name.clone(),
    };
    let origins: Vec<String> = config.origins.iter().map(origin).collect();
    format!("listen {}, admin {admin}, origins {}", config.listen, origins.join(", "))
}

/// To standard output; whoever closed it does not want to know.
fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
