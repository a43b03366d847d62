//! Two tiers of relays: what each costs, and what it costs that an edge starts anew.

use std::time::{Duration, Instant};

use clap::Args;
use fan_out::Error;
use fan_out::content::Naming;

use crate::clients::{Clients, Protocol};
use crate::processes::{Origin, Program, Server};

#[derive(Args)]
pub(crate) struct Tree {
    #[command(flatten)]
    program: Program,
    /// How many edges there are.
    #[arg(long, default_value_t = 2)]
    edges: usize,
    /// How many clients all of them have.
    #[arg(long, default_value_t = 8000)]
    clients: usize,
    /// How many resources each client has.
    #[arg(long, default_value_t = 100)]
    resources: usize,
    /// How many times one of them changes.
    #[arg(long, default_value_t = 50)]
    rounds: u64,
}

/// The relays, and who is at each edge.
struct Running {
    origin: Origin,
    regional: Server,
    edges: Vec<Server>,
    fleets: Vec<Clients>,
}

/// What one tier has used: CPU of all its processes, and their memory in KiB.
#[derive(Clone, Copy)]
struct Used {
    cpu: Duration,
    memory: i64,
}

impl Tree {
    pub(crate) async fn run(&self) -> Result<(), Error> {
        let mut running = self.start()?;
        let empty = running.used()?;
        let started = Instant::now();
        for fleet in &running.fleets {
            fleet.connect(self.each(), self.resources).await?;
        }
        let (came_in, came) = (started.elapsed(), running.used()?);
        let mut times = Vec::new();
        for round in 1..=self.rounds {
            times.push(running.update(round, self.each()).await?);
        }
        times.sort_unstable();
        let updated = running.used()?;
        println!(
            "| tier | processes | streams of each | CPU s until all have everything | MiB of each | KiB/stream | CPU µs for an update | CPU µs/stream and update |"
        );
        println!("|---|--:|--:|--:|--:|--:|--:|--:|");
        let tiers = [("regional", 1, self.edges), ("edge", self.edges, self.each())];
        for (at, (tier, processes, streams)) in tiers.into_iter().enumerate() {
            let grown = came[at].memory - empty[at].memory;
            let update = (updated[at].cpu - came[at].cpu).as_secs_f64() * 1e6 / self.rounds as f64;
            println!(
                "| {tier} | {processes} | {streams} | {:.2} | {:.1} | {:.1} | {update:.0} | {:.2} |",
                (came[at].cpu - empty[at].cpu).as_secs_f64(),
                came[at].memory as f64 / 1024.0 / processes as f64,
                grown as f64 / (streams * processes) as f64,
                update / (streams * processes) as f64,
            );
        }
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
        println!("\nall clients came in {:.1} s", came_in.as_secs_f64());
        println!(
            "an update is with the last of {} after {:.0} ms (p50), {:.0} ms (p99)",
            self.clients,
            at(0.5),
            at(0.99)
        );
        self.restart(running).await
    }

    /// How many clients an edge has.
    fn each(&self) -> usize {
        self.clients / self.edges
    }

    fn start(&self) -> Result<Running, Error> {
        let origin = Origin::start(self.resources, Naming::Pool)?;
        let regional = self.program.start(origin.address, Naming::Pool)?;
        let edge = |_| self.program.start(regional.address, Naming::Pool);
        let edges = (0..self.edges).map(edge).collect::<Result<Vec<_>, _>>()?;
        let fleet = |edge: &Server| Clients::new(edge.address, Protocol::Delta, Naming::Pool.collections());
        let fleets = edges.iter().map(fleet).collect();
        Ok(Running { origin, regional, edges, fleets })
    }

    /// An edge is killed and starts anew; its clients come back with what they hold. What is sent again fails the measurement: it is
    /// not of the round that is expected.
    async fn restart(&self, mut running: Running) -> Result<(), Error> {
        let round = self.rounds + 1;
        running.fleets.iter().for_each(|fleet| fleet.expect(round, 0));
        let address = running.edges[0].address;
        let killed = Instant::now();
        drop((running.edges.swap_remove(0), running.fleets.swap_remove(0)));
        let edge = self.program.start_at(address, running.regional.address, Naming::Pool)?;
        let held =
            (0..self.resources).map(|index| (Naming::Pool.name(index), if index == 0 { self.rounds } else { 0 }));
        let fleet = Clients::new(address, Protocol::Delta, Naming::Pool.collections()).holding(held);
        fleet.expect(round, 0);
        let regional = running.regional.cpu()?;
        fleet.connect(self.each(), 0).await?;
        let back = killed.elapsed();
        running.edges.push(edge);
        running.fleets.push(fleet);
        let update = running.update(round, self.each()).await?;
        let (edge, regional) = (running.edges[self.edges - 1].cpu()?, running.regional.cpu()? - regional);
        println!(
            "an edge was killed: its {} clients are back after {:.1} s, an update is with everybody {:.0} ms after that; nothing was sent again",
            self.each(),
            back.as_secs_f64(),
            update.as_secs_f64() * 1e3,
        );
        println!(
            "CPU s for that: {:.2} of the new edge, {:.2} of the regional one",
            edge.as_secs_f64(),
            regional.as_secs_f64()
        );
        Ok(())
    }
}

impl Running {
    /// One resource changes: how long until every client has it.
    async fn update(&mut self, round: u64, each: usize) -> Result<Duration, Error> {
        self.fleets.iter().for_each(|fleet| fleet.expect(round, each));
        let published = Instant::now();
        self.origin.publish(round, 0, 1)?;
        for fleet in &self.fleets {
            fleet.arrived().await?;
        }
        Ok(published.elapsed())
    }

    /// Of the regional relay, and of the edges.
    fn used(&self) -> Result<[Used; 2], Error> {
        let mut tiers = [Used { cpu: Duration::ZERO, memory: 0 }; 2];
        for (tier, server) in [(0, &self.regional)].into_iter().chain(self.edges.iter().map(|edge| (1, edge))) {
            tiers[tier].cpu += server.cpu()?;
            tiers[tier].memory += server.rss()?;
        }
        Ok(tiers)
    }
}
