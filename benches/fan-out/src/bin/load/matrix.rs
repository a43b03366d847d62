//! The relay beside the leanest server and the usual one, by all that an update's cost may depend on: how many clients there are, how
//! they ask, how many resources there are and how large, over delta and SotW; and what a stream costs that waits.

use std::time::{Duration, Instant};

use clap::Args;
use fan_out::Error;
use fan_out::content::Naming;

use crate::clients::{Clients, Protocol};
use crate::measure::{Measured, Scenario};
use crate::processes::{Kind, Origin, Programs};

/// How long an allocator has to give back what initial states needed for a moment.
const SETTLED: Duration = Duration::from_secs(5);
/// How many updates a turn is to have.
const UPDATES: usize = 50_000;
/// How many names each stream that waits has.
const NAMES: usize = 10;

#[derive(Args)]
pub(crate) struct Matrix {
    #[command(flatten)]
    programs: Programs,
    /// Small numbers and few rounds: shows that it works, not how fast.
    #[arg(long)]
    short: bool,
    /// What would begin later than so many seconds from the start is left out.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
}

/// How clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Wildcard,
    Glob,
    Names,
}

impl Ask {
    fn name(self) -> &'static str {
        match self {
            Self::Wildcard => "wildcard",
            Self::Glob => "glob",
            Self::Names => "each name",
        }
    }
}

/// One row for each server.
#[derive(Clone, Copy, Debug)]
struct Cell {
    protocol: Protocol,
    ask: Ask,
    clients: usize,
    resources: usize,
    kibibytes: usize,
}

impl Matrix {
    pub(crate) async fn run(&self) -> Result<(), Error> {
        let started = Instant::now();
        println!(
            "| protocol | clients | resources | KiB | interest | server | updates/s | CPU µs/update | by lean | initial µs/resource | by lean | p50 ms | p99 ms | RSS KiB/stream |"
        );
        println!("|---|--:|--:|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|");
        let mut left_out = 0;
        for cell in self.cells() {
            if started.elapsed() > Duration::from_secs(self.seconds) {
                left_out += 1;
                continue;
            }
            let scenario = self.scenario(cell);
            let measured = scenario.measure_of(&cell.servers(), &self.programs).await?;
            cell.print(&measured);
        }
        if started.elapsed() <= Duration::from_secs(self.seconds) {
            self.idle().await?;
        } else {
            left_out += 1;
        }
        if left_out > 0 {
            println!("\n{left_out} left out, as {} s were over", self.seconds);
        }
        Ok(())
    }

    /// Whatever is most wanted is first.
    fn cells(&self) -> Vec<Cell> {
        let [few, some, many] = if self.short { [1, 3, 10] } else { [1, 100, 1000] };
        let [resources, more, most] = if self.short { [100, 200, 300] } else { [1000, 10_000, 100_000] };
        let of = |protocol, ask, clients| Cell { protocol, ask, clients, resources, kibibytes: 1 };
        let mut cells = Vec::new();
        for clients in [some, many, few] {
            cells.extend([Ask::Wildcard, Ask::Glob, Ask::Names].map(|ask| of(Protocol::Delta, ask, clients)));
            // It has no globs.
            cells.extend([Ask::Wildcard, Ask::Names].map(|ask| of(Protocol::Sotw, ask, clients)));
        }
        let ways = [(Protocol::Delta, Ask::Glob), (Protocol::Sotw, Ask::Wildcard)];
        cells.extend(ways.map(|(protocol, ask)| Cell { kibibytes: 10, ..of(protocol, ask, some) }));
        let ten = if self.short { 2 } else { 10 };
        for resources in [more, most] {
            cells.extend(ways.map(|(protocol, ask)| Cell { resources, ..of(protocol, ask, ten) }));
        }
        cells.push(Cell { resources: more, ..of(Protocol::Delta, Ask::Names, ten) });
        cells.push(Cell { resources: more, ..of(Protocol::Delta, Ask::Wildcard, ten) });
        cells
    }

    fn scenario(&self, cell: Cell) -> Scenario {
        let Cell { protocol, ask, clients, resources, kibibytes } = cell;
        // Over SotW every ACK repeats all names.
        let names = if protocol == Protocol::Sotw && ask == Ask::Names { resources } else { 0 };
        let updates = UPDATES / (1 + names / 100) / if self.short { 100 } else { 1 };
        Scenario {
            clients,
            resources,
            naming: if ask == Ask::Wildcard { Naming::Wildcard } else { Naming::Pool },
            kibibytes,
            distinct: false,
            protocol,
            beside: None,
            slow: 0,
            exact: ask == Ask::Names,
            changes: 1,
            rounds: (updates / clients).clamp(5, 2000),
            turns: if self.short { 1 } else { 3 },
        }
    }

    /// What a stream costs in memory that has ten names and waits.
    async fn idle(&self) -> Result<(), Error> {
        let streams = if self.short { 100 } else { 10_000 };
        for kind in [Kind::Relay, Kind::Tonic, Kind::Lean] {
            let naming = Naming::Pool;
            let origin = Origin::start(NAMES, naming)?;
            let server = self.programs.start(kind, origin.address, naming, &naming.interest(NAMES, false))?;
            let clients = Clients::new(server.address, Protocol::Delta, naming.interest(NAMES, true));
            clients.connect(1, NAMES).await?;
            let (before, cpu) = (server.anonymous()?, server.cpu()?);
            clients.connect(streams, NAMES).await?;
            let initial = (server.cpu()? - cpu).as_secs_f64() * 1e6 / (streams * NAMES) as f64;
            if !self.short {
                tokio::time::sleep(SETTLED).await;
            }
            let rss = (server.anonymous()? - before) as f64 / streams as f64;
            let server = kind.name();
            println!(
                "| delta | {streams} idle | {NAMES} | 1 | each name | {server} | | | | {initial:.2} | | | | {rss:.1} |"
            );
        }
        Ok(())
    }
}

impl Cell {
    /// The leanest is the last. The usual one of tonic sends deltas only, and of a hundred thousand resources has a copy for each client.
    fn servers(self) -> Vec<Kind> {
        match self.protocol {
            Protocol::Delta if self.resources < 100_000 => vec![Kind::Relay, Kind::Tonic, Kind::Lean],
            _ => vec![Kind::Relay, Kind::Lean],
        }
    }

    fn print(self, measured: &[Measured]) {
        let Self { protocol, ask, clients, resources, kibibytes } = self;
        let protocol = match protocol {
            Protocol::Delta => "delta",
            Protocol::Sotw => "SotW",
        };
        let lean = measured.last();
        let floor = lean.map_or(f64::NAN, |lean| lean.cpu);
        let first = lean.and_then(|lean| lean.initial);
        for Measured { server, updates_per_second, cpu, p50, p99, rss, initial } in measured {
            let initial = match (initial, first) {
                (Some(initial), Some(first)) => format!("{initial:.2} | {:.2}", initial / first),
                _ => "|".to_owned(),
            };
            println!(
                "| {protocol} | {clients} | {resources} | {kibibytes} | {} | {server} | {updates_per_second:.0} | {cpu:.2} | {:.2} | {initial} | {p50:.2} | {p99:.2} | {rss:.1} |",
                ask.name(),
                cpu / floor,
            );
        }
    }
}
