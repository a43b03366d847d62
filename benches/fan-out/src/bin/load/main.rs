//! Drives the measurement: an origin, a server, and clients that wait for what the origin publishes.

mod apply;
mod arrivals;
mod certificate;
mod clients;
mod drain;
mod hostile;
mod instructions;
mod kept;
mod matrix;
mod measure;
mod memory;
mod nodes;
mod origin;
mod pick;
mod processes;
mod secured;
mod tree;

use std::net::SocketAddr;

use clap::{Args, Parser};
use fan_out::Error;
use fan_out::content::Naming;

use crate::apply::Apply;
use crate::arrivals::Arrivals;
use crate::clients::Protocol;
use crate::drain::Drain;
use crate::hostile::Hostile;
use crate::instructions::Instructions;
use crate::kept::Kept;
use crate::matrix::Matrix;
use crate::measure::{Measured, Scenario};
use crate::memory::Memory;
use crate::nodes::Nodes;
use crate::pick::Pick;
use crate::processes::Programs;
use crate::secured::Secured;
use crate::tree::Tree;

/// What it costs to bring one update to many clients.
#[derive(Parser)]
enum Command {
    /// Measures a relay beside the raw server and the leanest one, and prints a table.
    Measure(Measure),
    /// Measures what it costs that clients come, and prints a table.
    Arrivals(Arrivals),
    /// Measures what it costs to take many resources from an origin and bring them to one client, and prints a table.
    Apply(Apply),
    /// Counts the instructions of an update, and fails where the goal is missed.
    Instructions(Instructions),
    /// Measures a relay beside the others by how many clients, resources and bytes there are and how they are asked for, and prints a table.
    Matrix(Matrix),
    /// Measures a relay whose clients are distinct nodes, where they may share and where they may not, and prints a table.
    Nodes(Nodes),
    /// Measures how long updates take beside who asks for a million things at a time, and prints a table.
    Hostile(Hostile),
    /// Measures what it costs that what is known is kept on a disk, at a thousand changes a second, and prints a table.
    Kept(Kept),
    /// Measures what clients cost a relay in memory, prints a table, and fails where a goal is missed.
    Memory(Memory),
    /// Measures what TLS costs, beside clear text, and prints two tables.
    Secured(Secured),
    /// Measures how a relay ends the streams of a fleet as it shuts down, prints a table, and fails where one is cut off.
    Drain(Drain),
    /// Measures two tiers of relays before a fleet, and prints a table.
    Tree(Tree),
    /// Serves one collection and changes it as standard input says.
    Origin {
        /// How many resources the collection holds.
        #[arg(long)]
        resources: usize,
        /// How they are called.
        #[arg(long, value_enum, default_value = "pool")]
        naming: Naming,
        /// How many KiB each has.
        #[arg(long, default_value_t = 1)]
        kibibytes: usize,
        /// Where it listens.
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
}

#[derive(Args)]
struct Measure {
    #[command(flatten)]
    programs: Programs,
    /// A few rounds: shows that it works, not how fast.
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    pick: Pick,
    /// As many clients beside these, who are told in this way.
    #[arg(long, value_enum)]
    beside: Option<Protocol>,
    /// How many resources change in a round.
    #[arg(long, default_value_t = 1)]
    changes: usize,
    /// How many rounds a turn has.
    #[arg(long, default_value_t = 500)]
    rounds: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    match Command::parse() {
        Command::Arrivals(arrivals) => arrivals.run().await,
        Command::Apply(apply) => apply.run().await,
        Command::Instructions(instructions) => instructions.run().await,
        Command::Matrix(matrix) => matrix.run().await,
        Command::Nodes(nodes) => nodes.run().await,
        Command::Hostile(hostile) => hostile.run().await,
        Command::Kept(kept) => kept.run().await,
        Command::Memory(memory) => memory.run().await,
        Command::Secured(secured) => secured.run().await,
        Command::Drain(drain) => drain.run().await,
        Command::Tree(tree) => tree.run().await,
        Command::Origin { resources, naming, kibibytes, listen } => {
            origin::serve(resources, naming, kibibytes, listen).await
        }
        Command::Measure(measure) => measure.run().await,
    }
}

impl Measure {
    async fn run(&self) -> Result<(), Error> {
        println!(
            "| clients | resources | interest | changes | server | updates/s | CPU µs/update | by lean | p50 ms | p99 ms | RSS KiB/stream |"
        );
        println!("|--:|--:|---|--:|---|--:|--:|--:|--:|--:|--:|");
        for scenario in self.scenarios() {
            let measured = scenario.measure(&self.programs).await?;
            print_rows(&scenario, &measured);
        }
        Ok(())
    }

    fn scenarios(&self) -> Vec<Scenario> {
        let glob = |clients, resources, rounds| Scenario {
            clients,
            resources,
            naming: Naming::Pool,
            kibibytes: 1,
            distinct: false,
            protocol: Protocol::Delta,
            beside: None,
            slow: 0,
            exact: false,
            changes: 1,
            rounds,
            turns: if self.short { 2 } else { 5 },
        };
        if let Some(clients) = self.pick.clients {
            let Self { pick: Pick { resources, kibibytes, protocol, turns, .. }, changes, rounds, .. } = *self;
            let exact = self.pick.by_name();
            let of = glob(clients, resources, rounds);
            return vec![Scenario { kibibytes, protocol, beside: self.beside, exact, changes, turns, ..of }];
        }
        let sotw = |clients, resources, rounds| Scenario {
            protocol: Protocol::Sotw,
            exact: true,
            ..glob(clients, resources, rounds)
        };
        let beside = |protocol, of| Scenario { beside: Some(protocol), ..of };
        let slow = |slow, of| Scenario { slow, ..of };
        let authorities = |of| Scenario { naming: Naming::Authorities, ..of };
        // Nothing says who may share: every node is a group of its own.
        let old_style = |of| Scenario { naming: Naming::OldStyle, distinct: true, exact: true, ..of };
        if self.short {
            return vec![
                beside(Protocol::Sotw, glob(50, 100, 100)),
                glob(100, 1000, 100),
                Scenario { exact: true, ..glob(100, 100, 100) },
                sotw(100, 100, 100),
                Scenario { changes: 1000, ..glob(100, 1000, 3) },
                authorities(glob(20, 100, 20)),
                old_style(glob(20, 100, 20)),
                slow(5, glob(20, 100, 20)),
            ];
        }
        vec![
            glob(100, 1000, 1000),
            glob(1000, 1000, 100),
            glob(100, 10, 1000),
            glob(100, 10_000, 1000),
            Scenario { exact: true, ..glob(100, 100, 1000) },
            Scenario { changes: 1000, ..glob(100, 1000, 10) },
            sotw(100, 10, 1000),
            sotw(100, 1000, 200),
            sotw(100, 10_000, 20),
            beside(Protocol::Delta, glob(100, 10, 1000)),
            beside(Protocol::Sotw, glob(100, 10, 1000)),
            beside(Protocol::Delta, glob(100, 1000, 200)),
            beside(Protocol::Sotw, glob(100, 1000, 200)),
            authorities(glob(100, 1000, 1000)),
            old_style(glob(100, 100, 200)),
            slow(20, glob(100, 1000, 1000)),
        ]
    }
}

fn print_rows(scenario: &Scenario, measured: &[Measured]) {
    let Scenario { clients, resources, changes, .. } = scenario;
    let interest = match (scenario.protocol, scenario.exact, scenario.beside) {
        _ if scenario.naming == Naming::OldStyle => "each old-style name, a group per node",
        _ if scenario.naming == Naming::Authorities => "globs of 10 authorities",
        _ if scenario.slow > 0 => "glob, beside some who do not read",
        (_, _, Some(Protocol::Sotw)) => "glob, beside as many SotW",
        (_, _, Some(Protocol::Delta)) => "glob, beside as many",
        (Protocol::Sotw, _, _) => "each name, SotW",
        (Protocol::Delta, true, _) => "each name",
        (Protocol::Delta, false, _) => "glob",
    };
    let floor = measured.last().map_or(f64::NAN, |lean| lean.cpu);
    for one in measured {
        let Measured { server, updates_per_second, cpu, p50, p99, rss, .. } = one;
        let ratio = cpu / floor;
        println!(
            "| {clients} | {resources} | {interest} | {changes} | {server} | {updates_per_second:.0} | {cpu:.2} | {ratio:.2} | {p50:.2} | {p99:.2} | {rss:.1} |"
        );
    }
}
