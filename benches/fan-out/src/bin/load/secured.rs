//! What TLS costs a relay: beside the same relay in clear text, in turns.

use std::time::{Duration, Instant};

use clap::Args;
use fan_out::Error;
use fan_out::content::Naming;
use tokio_rustls::TlsConnector;

use crate::clients::{Clients, Protocol};
use crate::measure::{Measured, Scenario, percentile};
use crate::pick::Pick;
use crate::processes::{Kind, Origin, Programs, Server};

#[derive(Args)]
pub(crate) struct Secured {
    #[command(flatten)]
    programs: Programs,
    /// A few rounds: shows that it works, not how fast.
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    pick: Pick,
}

impl Secured {
    pub(crate) async fn run(&self) -> Result<(), Error> {
        self.updates().await?;
        println!();
        self.first_responses().await
    }

    async fn updates(&self) -> Result<(), Error> {
        println!("| clients | resources | changes | server | CPU µs/update | by clear | p50 ms | RSS KiB/stream |");
        println!("|--:|--:|--:|---|--:|--:|--:|--:|");
        let of = |clients, changes, rounds| Scenario {
            clients,
            resources: self.pick.resources,
            naming: Naming::Pool,
            kibibytes: self.pick.kibibytes,
            distinct: false,
            protocol: self.pick.protocol,
            beside: None,
            slow: 0,
            exact: self.pick.by_name(),
            changes,
            rounds,
            turns: if self.short { 2 } else { self.pick.turns },
        };
        let scenarios = match (self.pick.clients, self.short) {
            (Some(clients), _) => vec![of(clients, 1, 20)],
            (None, true) => vec![of(20, 1, 20)],
            (None, false) => vec![of(100, 1, 1000), of(1000, 1, 100), of(100, 1000, 10)],
        };
        for scenario in scenarios {
            let measured = scenario.measure_of(&[Kind::Secured, Kind::Relay], &self.programs).await?;
            let clear = measured.last().map_or(f64::NAN, |clear| clear.cpu);
            let Scenario { clients, resources, changes, .. } = scenario;
            for Measured { server, cpu, p50, rss, .. } in measured {
                let ratio = cpu / clear;
                println!(
                    "| {clients} | {resources} | {changes} | {server} | {cpu:.2} | {ratio:.2} | {p50:.2} | {rss:.1} |"
                );
            }
        }
        Ok(())
    }

    /// Clients that come one after the other, each of its own in turns.
    async fn first_responses(&self) -> Result<(), Error> {
        println!("| a client that comes | ms until its first response | by clear | CPU µs of the relay | by clear |");
        println!("|---|--:|--:|--:|--:|");
        let tls = &self.programs.tls;
        let ways = [("in clear text", None), ("by TLS, resumed", Some(true)), ("by TLS", Some(false))];
        let mut sides = Vec::new();
        for (what, resumes) in ways {
            sides.push(Side::set_up(what, resumes.map(|resumes| tls.connector(resumes)), &self.programs).await?);
        }
        for _ in 0..if self.short { 5 } else { 300 } {
            for side in &mut sides {
                side.turn().await?;
            }
        }
        let clear = sides.first().map(Side::measured).unwrap_or_default();
        for side in &sides {
            let (ms, cpu) = side.measured();
            println!("| {} | {ms:.3} | {:.2} | {cpu:.0} | {:.2} |", side.what, ms / clear.0, cpu / clear.1);
        }
        Ok(())
    }
}

/// A relay with ten resources, which each client asks for.
struct Side {
    what: &'static str,
    tls: Option<TlsConnector>,
    server: Server,
    _origin: Origin,
    _first: Clients,
    turns: Vec<(Duration, Duration)>,
}

impl Side {
    async fn set_up(what: &'static str, tls: Option<TlsConnector>, programs: &Programs) -> Result<Self, Error> {
        let (origin, kind) =
            (Origin::start(10, Naming::Pool)?, if tls.is_some() { Kind::Secured } else { Kind::Relay });
        let server = programs.start(kind, origin.address, Naming::Pool, &Naming::Pool.collections())?;
        let first = fleet(&server, &tls);
        first.connect(1, 10).await?;
        Ok(Self { what, tls, server, _origin: origin, _first: first, turns: Vec::new() })
    }

    async fn turn(&mut self) -> Result<(), Error> {
        let client = fleet(&self.server, &self.tls);
        let (started, before) = (Instant::now(), self.server.cpu()?);
        client.connect(1, 10).await?;
        self.turns.push((started.elapsed(), self.server.cpu()? - before));
        Ok(())
    }

    /// Milliseconds, and microseconds of CPU.
    fn measured(&self) -> (f64, f64) {
        let median = |of: fn(&(Duration, Duration)) -> Duration| {
            percentile(self.turns.iter().map(|turn| of(turn).as_secs_f64() * 1e6).collect(), 0.5)
        };
        (median(|turn| turn.0) / 1e3, median(|turn| turn.1))
    }
}

fn fleet(server: &Server, tls: &Option<TlsConnector>) -> Clients {
    Clients::new(server.address, Protocol::Delta, Naming::Pool.interest(10, true)).by_tls(tls.clone())
}
