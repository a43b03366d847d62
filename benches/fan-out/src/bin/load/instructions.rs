//! How many instructions of its own a server takes for an update of one client, its ACK included: callgrind counts them.

use std::path::PathBuf;

use clap::Args;
use fan_out::Error;
use fan_out::content::Naming;

use crate::clients::{Clients, Variant};
use crate::processes::{Kind, Origin, Programs};

const CLIENTS: usize = 100;
const RESOURCES: usize = 100;
/// What the second run has more than the first is what is counted.
const ROUNDS: [u64; 2] = [20, 120];
/// So many may the relay take.
const GOAL: f64 = 18_000.0;

#[derive(Args)]
pub(crate) struct Instructions {
    #[command(flatten)]
    programs: Programs,
    /// Where callgrind's file of the relay is kept, for `callgrind_annotate`.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Fails for no goal.
    #[arg(long)]
    report: bool,
}

impl Instructions {
    pub(crate) async fn run(&self) -> Result<(), Error> {
        println!("| server | instructions for an update of a client, with its ACK | goal |");
        println!("|---|--:|--:|");
        let mut missed = false;
        for kind in [Kind::Relay, Kind::Tonic, Kind::Lean] {
            let [few, many] = [self.count(kind, ROUNDS[0]).await?, self.count(kind, ROUNDS[1]).await?];
            let each = (many - few) / ((ROUNDS[1] - ROUNDS[0]) as f64 * CLIENTS as f64);
            let goal = if kind == Kind::Relay { GOAL.to_string() } else { String::new() };
            println!("| {} | {each:.0} | {goal} |", kind.name());
            missed |= kind == Kind::Relay && each > GOAL;
        }
        if missed && !self.report { Err("MISSED: the goal for instructions".into()) } else { Ok(()) }
    }

    /// The instructions of a server from its start to its end.
    async fn count(&self, kind: Kind, rounds: u64) -> Result<f64, Error> {
        let interest = Naming::Pool.collections();
        let mut origin = Origin::start(RESOURCES, Naming::Pool)?;
        let counts = std::env::temp_dir().join(format!("fan-out-{}.callgrind", std::process::id()));
        let out = format!("--callgrind-out-file={}", counts.display());
        let launcher = ["valgrind", "--quiet", "--tool=callgrind", &out].map(str::to_owned);
        let server = self.programs.start_in(&launcher, kind, origin.address, Naming::Pool, &interest)?;
        let clients = Clients::new(server.address, Variant::Delta, interest);
        clients.connect(CLIENTS, RESOURCES).await?;
        for round in 1..=rounds {
            clients.expect(round, CLIENTS);
            origin.publish(round, round as usize % RESOURCES, 1)?;
            clients.arrived().await?;
        }
        server.terminate()?;
        let text = std::fs::read_to_string(&counts)?;
        if let (Kind::Relay, Some(keep)) = (kind, &self.keep) {
            std::fs::copy(&counts, keep)?;
        }
        std::fs::remove_file(&counts)?;
        let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).ok_or("callgrind counted nothing")?;
        Ok(total.trim().parse()?)
    }
}
