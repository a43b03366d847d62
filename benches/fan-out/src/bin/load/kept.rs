//! What it costs a relay to keep on a disk what it knows, while that changes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fan_out::Error;
use fan_out::content::Naming;
use tokio::time::{MissedTickBehavior, interval};

use crate::clients::{Clients, Protocol};
use crate::measure::percentile;
use crate::processes::{Origin, Program};

/// So many changes come at once, so often: a thousand a second.
const CHANGES: usize = 10;
const EVERY: Duration = Duration::from_millis(10);
/// Rounds that are not counted: what was there before is written meanwhile.
const BEFORE: u64 = 300;

#[derive(Args)]
pub(crate) struct Kept {
    #[command(flatten)]
    program: Program,
    /// How many resources there are.
    #[arg(long, default_value_t = 10_000)]
    resources: usize,
    /// For how many seconds each turn is counted.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// How many turns each has.
    #[arg(long, default_value_t = 5)]
    turns: usize,
    /// Where it is kept, for a turn: on the disk that is to be measured.
    #[arg(long)]
    directory: Option<PathBuf>,
}

impl Kept {
    pub(crate) async fn run(&self) -> Result<(), Error> {
        let directory = self.directory.clone().unwrap_or_else(std::env::temp_dir);
        let directory = directory.join(format!("fan-out-kept-{}", std::process::id()));
        let state = format!("state: {{ path: {} }}\n", directory.display());
        let (mut kept, mut lost) = (Vec::new(), Vec::new());
        for _ in 0..self.turns {
            kept.push(self.turn(&state).await?);
            std::fs::remove_dir_all(&directory)?;
            lost.push(self.turn("").await?);
        }
        let more = kept.iter().zip(&lost).map(|(kept, lost)| kept - lost).collect();
        println!("| resources | changes a second | kept, % of a core | not kept | of the difference, the median |");
        println!("|--:|--:|--:|--:|--:|");
        let [kept, lost, more] = [kept, lost, more].map(|turns| percentile(turns, 0.5));
        let changes = CHANGES as f64 / EVERY.as_secs_f64();
        println!("| {} | {changes:.0} | {kept:.2} | {lost:.2} | {more:.2} |", self.resources);
        Ok(())
    }

    /// How much of a core it takes, in percent.
    async fn turn(&self, more: &str) -> Result<f64, Error> {
        let mut origin = Origin::start(self.resources, Naming::Pool)?;
        let relay = self.program.start_with(origin.address, Naming::Pool, "shared", more)?;
        let client = Clients::new(relay.address, Protocol::Delta, Naming::Pool.collections());
        client.connect(1, self.resources).await?;
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let rounds = BEFORE + self.seconds * 1000 / EVERY.as_millis() as u64;
        let (mut cpu, mut began) = (relay.cpu()?, std::time::Instant::now());
        for round in 1..=rounds {
            ticks.tick().await;
            client.expect(round, CHANGES);
            origin.publish(round, round as usize * CHANGES % self.resources, CHANGES)?;
            client.arrived().await?;
            if round == BEFORE {
                (cpu, began) = (relay.cpu()?, std::time::Instant::now());
            }
        }
        Ok((relay.cpu()? - cpu).as_secs_f64() / began.elapsed().as_secs_f64() * 1e2)
    }
}
