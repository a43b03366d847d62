//! What it costs to take many resources from an origin, and to bring them to one client.

use clap::Args;
use fan_out::Error;
use fan_out::content::Naming;

use crate::clients::{Clients, Protocol};
use crate::measure::percentile;
use crate::processes::{Kind, Origin, Programs};

#[derive(Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    programs: Programs,
    /// Few resources: shows that it works, not how fast.
    #[arg(long)]
    short: bool,
}

impl Apply {
    pub(crate) async fn run(&self) -> Result<(), Error> {
        let (sizes, turns): (&[_], _) = if self.short { (&[1000], 1) } else { (&[10_000, 100_000], 5) };
        println!("| resources | server | CPU ms | by lean | µs/resource | RSS MiB |");
        println!("|--:|---|--:|--:|--:|--:|");
        for resources in sizes {
            let kinds = [Kind::Relay, Kind::Tonic, Kind::Lean];
            let mut measured = kinds.map(|_| (Vec::new(), 0));
            for _ in 0..turns {
                for (kind, (cpu, rss)) in kinds.into_iter().zip(&mut measured) {
                    let turn = self.turn(kind, *resources).await?;
                    cpu.push(turn.0);
                    *rss = turn.1;
                }
            }
            let measured = measured.map(|(cpu, rss)| (percentile(cpu, 0.5), rss));
            let [.., (least, _)] = measured;
            for (kind, (cpu, rss)) in kinds.into_iter().zip(measured) {
                let (name, ratio, each) = (kind.name(), cpu / least, cpu * 1e3 / *resources as f64);
                println!("| {resources} | {name} | {cpu:.0} | {ratio:.2} | {each:.2} | {} |", rss / 1024);
            }
        }
        Ok(())
    }

    /// Milliseconds of CPU from the start of a server until a client has everything, and the KiB resident then.
    async fn turn(&self, kind: Kind, resources: usize) -> Result<(f64, i64), Error> {
        let interest = Naming::Pool.collections();
        let origin = Origin::start(resources, Naming::Pool)?;
        let server = self.programs.start(kind, origin.address, Naming::Pool, &interest)?;
        let client = Clients::new(server.address, Protocol::Delta, interest);
        client.connect(1, resources).await?;
        Ok((server.cpu()?.as_secs_f64() * 1e3, server.rss()?))
    }
}
