//! A fleet of distinct nodes: what it costs that they may not share, beside the same fleet that may.

use std::time::{Duration, Instant};

use clap::Args;
use fan_out::Error;
use fan_out::content::Naming;

use crate::clients::{Clients, Protocol};
use crate::processes::{Origin, Program};

/// How long the origin is away.
const OUTAGE: Duration = Duration::from_secs(2);

#[derive(Args)]
pub(crate) struct Nodes {
    #[command(flatten)]
    program: Program,
    /// How many nodes there are.
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// How many resources each of them has.
    #[arg(long, default_value_t = 1000)]
    resources: usize,
}

impl Nodes {
    pub(crate) async fn run(&self) -> Result<(), Error> {
        println!(
            "| nodes | resources | share_by | start s | CPU s | RSS MiB | connections | back after s | CPU µs/update |"
        );
        println!("|--:|--:|---|--:|--:|--:|--:|--:|--:|");
        for (label, more) in [("cluster", "share_by: [cluster]\n"), ("none", "")] {
            self.measure(label, more).await?;
        }
        Ok(())
    }

    async fn measure(&self, label: &str, more: &str) -> Result<(), Error> {
        /// Rounds of one update each.
        const ROUNDS: u64 = 20;
        let origin = Origin::start(self.resources, Naming::Pool)?;
        let address = origin.address;
        let relay = self.program.start_with(address, Naming::Pool, "by_node", more)?;
        let clients = Clients::new(relay.address, Protocol::Delta, Naming::Pool.collections()).distinct();
        let started = Instant::now();
        clients.connect(self.nodes, self.resources).await?;
        let (start, cpu, rss) = (started.elapsed(), relay.cpu()?, relay.rss()?);
        let connections = established_to(address.port())?;

        drop(origin);
        tokio::time::sleep(OUTAGE).await;
        let mut origin = Origin::start_at(address, self.resources, Naming::Pool)?;
        clients.expect(1, self.nodes);
        let back = Instant::now();
        origin.publish(1, 0, 1)?;
        clients.arrived().await?;
        let back = back.elapsed();

        let before = relay.cpu()?;
        for round in 2..2 + ROUNDS {
            clients.expect(round, self.nodes);
            origin.publish(round, 0, 1)?;
            clients.arrived().await?;
        }
        let update = (relay.cpu()? - before).as_secs_f64() * 1e6 / (ROUNDS as f64 * self.nodes as f64);
        println!(
            "| {} | {} | {label} | {:.1} | {:.1} | {} | {connections} | {:.1} | {update:.0} |",
            self.nodes,
            self.resources,
            start.as_secs_f64(),
            cpu.as_secs_f64(),
            rss / 1024,
            back.as_secs_f64(),
        );
        Ok(())
    }
}

/// How many connections there are to a port of this machine.
fn established_to(port: u16) -> Result<usize, Error> {
    const ESTABLISHED: &str = "01";
    let table = std::fs::read_to_string("/proc/net/tcp")?;
    let to = format!(":{port:04X}");
    let matches = |line: &&str| {
        let mut fields = line.split_whitespace().skip(2);
        fields.next().is_some_and(|remote| remote.ends_with(&to)) && fields.next() == Some(ESTABLISHED)
    };
    Ok(table.lines().skip(1).filter(matches).count())
}
