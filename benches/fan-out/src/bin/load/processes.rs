//! The processes that are measured, and what the system says of them.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use fan_out::Error;
use fan_out::content::Naming;

use crate::certificate::Certificate;

/// What `/proc/<pid>/stat` counts CPU time in, whatever the kernel's own clock.
const TICK: Duration = Duration::from_millis(10);

/// A process, ended with its handle.
pub(crate) struct Process {
    child: Child,
    configuration: Option<PathBuf>,
}

/// The relay to be measured.
#[derive(Args)]
pub(crate) struct Program {
    /// The relay's program.
    #[arg(long)]
    relay: PathBuf,
    /// What the relay is started with, such as `taskset -c 0`.
    #[arg(long, default_value = "", value_name = "COMMAND")]
    launcher: String,
}

/// A server that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Relay,
    /// The relay by TLS.
    Secured,
    Tonic,
    Lean,
}

/// All that are measured side by side.
#[derive(Args)]
pub(crate) struct Programs {
    #[command(flatten)]
    relay: Program,
    /// The raw server's program.
    #[arg(long)]
    raw: PathBuf,
    /// The leanest server's program.
    #[arg(long)]
    lean: PathBuf,
    #[arg(skip)]
    pub(crate) tls: Certificate,
}

/// The origin, and the pipe it takes commands from.
pub(crate) struct Origin {
    process: Process,
    pub(crate) address: SocketAddr,
}

/// A server under measurement.
pub(crate) struct Server {
    process: Process,
    pub(crate) address: SocketAddr,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Relay => "xds-relay",
            Self::Secured => "xds-relay by TLS",
            Self::Tonic => "raw tonic",
            Self::Lean => "lean",
        }
    }
}

impl Origin {
    pub(crate) fn start(resources: usize, naming: Naming) -> Result<Self, Error> {
        Self::start_at(free_address()?, resources, naming)
    }

    /// The same with resources of so many KiB.
    pub(crate) fn start_of(resources: usize, naming: Naming, kibibytes: usize) -> Result<Self, Error> {
        Self::launch(free_address()?, resources, naming, kibibytes)
    }

    /// The same at an address, for one that is to come back there.
    pub(crate) fn start_at(address: SocketAddr, resources: usize, naming: Naming) -> Result<Self, Error> {
        Self::launch(address, resources, naming, 1)
    }

    fn launch(address: SocketAddr, resources: usize, naming: Naming, kibibytes: usize) -> Result<Self, Error> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["origin", "--resources", &resources.to_string(), "--listen", &address.to_string()]);
        let naming = naming.to_possible_value().ok_or("a naming without a name")?;
        command.args(["--naming", naming.get_name(), "--kibibytes", &kibibytes.to_string()]).stdin(Stdio::piped());
        let (process, address) = Process::start_and_read_address(&mut command)?;
        Ok(Self { process, address })
    }

    /// Changes `count` resources from `first` on.
    pub(crate) fn publish(&mut self, round: u64, first: usize, count: usize) -> Result<(), Error> {
        let mut commands = self.process.child.stdin.as_ref().ok_or("the origin has no standard input")?;
        Ok(commands.write_all(format!("{round} {first} {count}\n").as_bytes())?)
    }
}

impl Programs {
    /// Starts one in front of `origin`; the baselines ask it for `interest`.
    pub(crate) fn start(
        &self,
        kind: Kind,
        origin: SocketAddr,
        naming: Naming,
        interest: &[String],
    ) -> Result<Server, Error> {
        self.start_in(&self.relay.launcher(), kind, origin, naming, interest)
    }

    /// The same, started by a command.
    pub(crate) fn start_in(
        &self,
        launcher: &[String],
        kind: Kind,
        origin: SocketAddr,
        naming: Naming,
        interest: &[String],
    ) -> Result<Server, Error> {
        let program = match kind {
            Kind::Relay => {
                let configuration = configuration(origin, naming, "shared", "default_origin: origin\n");
                return Server::relay(&self.relay.relay, launcher, &configuration);
            }
            Kind::Secured => {
                let more = format!("default_origin: origin\n{}", self.tls.configuration()?);
                let configuration = configuration(origin, naming, "shared", &more);
                return Server::relay(&self.relay.relay, launcher, &configuration);
            }
            Kind::Tonic => &self.raw,
            Kind::Lean => &self.lean,
        };
        let mut command = launched(launcher, program);
        let (process, address) = Process::start_and_read_address(command.arg(origin.to_string()).args(interest))?;
        Ok(Server { process, address })
    }
}

impl Program {
    /// Starts it in front of `origin`.
    pub(crate) fn start(&self, origin: SocketAddr, naming: Naming) -> Result<Server, Error> {
        self.start_with(origin, naming, "shared", "")
    }

    /// The same, where the streams of `xdstp` carry such names, with `more` of the configuration.
    pub(crate) fn start_with(
        &self,
        origin: SocketAddr,
        naming: Naming,
        xdstp: &str,
        more: &str,
    ) -> Result<Server, Error> {
        let more = format!("default_origin: origin\n{more}");
        Server::relay(&self.relay, &self.launcher(), &configuration(origin, naming, xdstp, &more))
    }

    /// The same, listening at an address: one that is to come back there.
    pub(crate) fn start_at(&self, address: SocketAddr, origin: SocketAddr, naming: Naming) -> Result<Server, Error> {
        let configuration = configuration(origin, naming, "shared", "default_origin: origin\n");
        Server::relay_at(&self.relay, &self.launcher(), address, &configuration)
    }

    /// The same, where another origin has the old-style names.
    pub(crate) fn start_beside(&self, origin: SocketAddr, naming: Naming, others: SocketAddr) -> Result<Server, Error> {
        let more = format!("- {{ name: others, server: {others}, protocol: delta }}\ndefault_origin: others\n");
        Server::relay(&self.relay, &self.launcher(), &configuration(origin, naming, "shared", &more))
    }

    fn launcher(&self) -> Vec<String> {
        self.launcher.split_whitespace().map(str::to_owned).collect()
    }
}

impl Server {
    /// A relay of a configuration but for its addresses.
    fn relay(program: &Path, launcher: &[String], configuration: &str) -> Result<Self, Error> {
        Self::relay_at(program, launcher, free_address()?, configuration)
    }

    fn relay_at(program: &Path, launcher: &[String], address: SocketAddr, configuration: &str) -> Result<Self, Error> {
        let admin = free_address()?;
        let configuration = format!("listen: {address}\nadmin: {admin}\n{configuration}");
        let path = std::env::temp_dir().join(format!("fan-out-{}-{}.yaml", std::process::id(), address.port()));
        std::fs::write(&path, configuration)?;
        let mut command = launched(launcher, program);
        command.arg("--config").arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = Process { child: command.spawn()?, configuration: Some(path) };
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = process.child.try_wait()? {
                return Err(format!("{} ended at once: {status}", program.display()).into());
            }
            if started.elapsed() > Duration::from_secs(20) {
                return Err(format!("{} does not listen on {address}", program.display()).into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { process, address })
    }

    /// CPU time the process has used, in user space and in the kernel.
    pub(crate) fn cpu(&self) -> Result<Duration, Error> {
        let process = PathBuf::from(format!("/proc/{}", self.process.child.id()));
        let stat = std::fs::read_to_string(process.join("stat"))?;
        // The command's name, in parentheses, may hold spaces: count from behind it.
        let (_, fields) = stat.rsplit_once(')').ok_or("no command in /proc/<pid>/stat")?;
        let ticks: u32 = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>).sum::<Result<_, _>>()?;
        // That counts by ticks, of threads that have ended too. Those that there are have it to the nanosecond.
        let mut now = Duration::ZERO;
        for thread in std::fs::read_dir(process.join("task"))? {
            // It may end meanwhile.
            let times = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            let running = times.split_whitespace().next().and_then(|time| time.parse().ok());
            now += Duration::from_nanos(running.unwrap_or(0));
        }
        Ok(now.max(TICK * ticks))
    }

    /// Asks the process to end, and waits until it has.
    pub(crate) fn terminate(self) -> Result<(), Error> {
        self.tell_to_end()?;
        self.ended()?;
        Ok(())
    }

    /// Asks the process to end.
    pub(crate) fn tell_to_end(&self) -> Result<(), Error> {
        Command::new("kill").arg(self.process.child.id().to_string()).status()?;
        Ok(())
    }

    /// Waits until the process has ended.
    pub(crate) fn ended(mut self) -> Result<ExitStatus, Error> {
        Ok(self.process.child.wait()?)
    }

    /// Resident memory, in KiB.
    pub(crate) fn rss(&self) -> Result<i64, Error> {
        self.resident("VmRSS")
    }

    /// Resident memory without the program's own file, in KiB: of that the system keeps what it has room for, whatever is served.
    pub(crate) fn anonymous(&self) -> Result<i64, Error> {
        self.resident("RssAnon")
    }

    fn resident(&self, which: &str) -> Result<i64, Error> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(which)?.strip_prefix(':'))
            .ok_or_else(|| format!("no {which} in /proc/<pid>/status"))?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Process {
    /// Starts a process that prints the address it listens on as its first line.
    fn start_and_read_address(command: &mut Command) -> Result<(Self, SocketAddr), Error> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take();
        let process = Self { child, configuration: None };
        let mut line = String::new();
        BufReader::new(stdout.ok_or("no standard output")?).read_line(&mut line)?;
        let address = line.trim().parse().map_err(|_| format!("{command:?} did not start"))?;
        Ok((process, address))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Failures leave nothing to do: it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(path) = &self.configuration {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Of a relay in front of `origin`, where the streams of `xdstp` carry such names, and `more` of it.
fn configuration(origin: SocketAddr, naming: Naming, xdstp: &str, more: &str) -> String {
    // Clients are nodes of one cluster: where a wildcard is measured, they share what it holds.
    let share_by = if naming == Naming::Wildcard { "share_by: [cluster]\n" } else { "" };
    // What a machine can do is measured, not what it is allowed.
    format!(
        "node: {{ id: fan-out-relay, cluster: fan-out }}\n\
         limits: {{ new_streams_per_second: 100000 }}\n\
         origins:\n\
         - name: origin\n  \
           server: {origin}\n  \
           protocol: delta\n  \
           xdstp: {xdstp}\n  \
           authorities: {:?}\n\
         {more}{share_by}",
        naming.authorities()
    )
}

fn launched(launcher: &[String], program: &Path) -> Command {
    match launcher {
        [] => Command::new(program),
        [first, arguments @ ..] => {
            let mut command = Command::new(first);
            command.args(arguments).arg(program);
            command
        }
    }
}

fn free_address() -> Result<SocketAddr, Error> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
