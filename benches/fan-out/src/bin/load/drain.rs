//! How a relay ends the streams of a fleet when it shuts down.

use std::time::{Duration, Instant};

use clap::Args;
use fan_out::Error;
use fan_out::content::Naming;

use crate::clients::{Clients, Protocol};
use crate::processes::{Origin, Program};

#[derive(Args)]
pub(crate) struct Drain {
    #[command(flatten)]
    program: Program,
    /// How many clients there are, each with a connection of its own.
    #[arg(long, default_value_t = 8000)]
    clients: usize,
    /// How many resources each client has.
    #[arg(long, default_value_t = 100)]
    resources: usize,
    /// Within how many seconds the relay has to end them: `drain` of its configuration.
    #[arg(long, default_value_t = 10)]
    drain: u64,
}

impl Drain {
    /// A stream that is cut off, without a status, fails the measurement, and so does a relay that takes longer.
    pub(crate) async fn run(&self) -> Result<(), Error> {
        let origin = Origin::start(self.resources, Naming::Pool)?;
        let drain = format!("drain: {}s\n", self.drain);
        let relay = self.program.start_with(origin.address, Naming::Pool, "shared", &drain)?;
        let clients = Clients::new(relay.address, Protocol::Delta, Naming::Pool.collections()).until_ended();
        clients.connect(self.clients, self.resources).await?;
        let cpu = relay.cpu()?;
        clients.expect(0, self.clients);
        let told = Instant::now();
        relay.tell_to_end()?;
        let (mut ended, mut used) = (Vec::new(), Duration::ZERO);
        // How many have been ended is looked at, not when each is: with all of them on one core that would cost more than it says.
        while clients.pending() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            ended.push((told.elapsed(), self.clients - clients.pending()));
            // With the last stream the process may be gone.
            used = relay.cpu().map_or(used, |now| now.saturating_sub(cpu).max(used));
        }
        clients.arrived().await?;
        if !relay.ended()?.success() {
            return Err("the relay did not end well".into());
        }
        let over = told.elapsed();
        println!("| streams | `drain`, s | a tenth ended after s | half | nine tenths | all | the process | CPU s |");
        println!("|--:|--:|--:|--:|--:|--:|--:|--:|");
        let after = |part: f64| {
            let enough = ended.iter().find(|(_, ended)| *ended as f64 >= self.clients as f64 * part);
            enough.map_or(f64::NAN, |(after, _)| after.as_secs_f64())
        };
        println!(
            "| {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            self.clients,
            self.drain,
            after(0.1),
            after(0.5),
            after(0.9),
            after(1.0),
            over.as_secs_f64(),
            used.as_secs_f64(),
        );
        match over > Duration::from_secs(self.drain + 1) {
            true => Err("the relay took longer than it has".into()),
            false => Ok(()),
        }
    }
}
