//! What it costs that clients come, and leave: their initial states, and their connections.

use std::time::{Duration, Instant};

use clap::Args;
use fan_out::Error;
use fan_out::content::Naming;

use crate::clients::{Clients, Protocol};
use crate::measure::percentile;
use crate::pick::Pick;
use crate::processes::{Kind, Origin, Programs, Server};

/// How long a server has to notice that clients have left.
const LEAVING: Duration = Duration::from_millis(300);

#[derive(Args)]
pub(crate) struct Arrivals {
    #[command(flatten)]
    programs: Programs,
    /// Few clients: shows that it works, not how fast.
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    pick: Pick,
    /// None waits for the others.
    #[arg(long)]
    at_once: bool,
}

/// How clients come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scenario {
    clients: usize,
    resources: usize,
    protocol: Protocol,
    exact: bool,
    /// None waits for the others.
    at_once: bool,
    turns: usize,
}

impl Arrivals {
    pub(crate) async fn run(&self) -> Result<(), Error> {
        println!(
            "| clients | resources | interest | server | ms for all | CPU µs/resource | by lean | CPU µs/client, leaving too | by lean |"
        );
        println!("|--:|--:|---|---|--:|--:|--:|--:|--:|");
        for scenario in self.scenarios() {
            self.measure(scenario).await?;
        }
        Ok(())
    }

    fn scenarios(&self) -> Vec<Scenario> {
        let glob = |clients, resources, turns| Scenario {
            clients,
            resources,
            protocol: Protocol::Delta,
            exact: false,
            at_once: false,
            turns,
        };
        if let Some(clients) = self.pick.clients {
            let Pick { resources, protocol, turns, .. } = self.pick;
            let (exact, at_once) = (self.pick.by_name(), self.at_once);
            return vec![Scenario { clients, resources, protocol, exact, at_once, turns }];
        }
        let exact = |of| Scenario { exact: true, ..of };
        let sotw = |of| Scenario { protocol: Protocol::Sotw, exact: true, ..of };
        let at_once = |of| Scenario { at_once: true, ..of };
        if self.short {
            return vec![glob(20, 100, 2), sotw(glob(20, 100, 2)), at_once(exact(glob(100, 10, 2)))];
        }
        vec![
            glob(200, 1000, 5),
            exact(glob(200, 1000, 5)),
            sotw(glob(200, 1000, 5)),
            glob(20, 10_000, 5),
            glob(1000, 10, 5),
            exact(glob(1000, 10, 5)),
            at_once(exact(glob(1000, 10, 5))),
            at_once(glob(1000, 100, 5)),
        ]
    }

    async fn measure(&self, scenario: Scenario) -> Result<(), Error> {
        let Scenario { clients, resources, protocol, exact, .. } = scenario;
        let mut sides = Vec::new();
        for kind in [Kind::Relay, Kind::Tonic, Kind::Lean] {
            if kind != Kind::Tonic || protocol == Protocol::Delta {
                sides.push(Side::set_up(scenario, kind, &self.programs).await?);
            }
        }
        for _ in 0..scenario.turns {
            for side in &mut sides {
                let name = side.kind.name();
                side.turn(scenario).await.map_err(|error| format!("{name}: {error}"))?;
            }
        }
        let interest = match (exact, protocol, scenario.at_once) {
            (_, Protocol::Sotw, _) => "each name, SotW",
            (true, _, false) => "each name",
            (false, _, false) => "glob",
            (true, _, true) => "each name, all at once",
            (false, _, true) => "glob, all at once",
        };
        let measured: Vec<_> = sides.iter().map(|side| side.measured(scenario)).collect();
        let [.., (_, least_resource, least_client)] = measured[..] else { return Ok(()) };
        for (side, (ms, resource, client)) in sides.iter().zip(measured) {
            let (name, by_resource, by_client) = (side.kind.name(), resource / least_resource, client / least_client);
            println!(
                "| {clients} | {resources} | {interest} | {name} | {ms:.0} | {resource:.2} | {by_resource:.2} | {client:.0} | {by_client:.2} |"
            );
        }
        Ok(())
    }
}

/// One server, its origin, and a client that stays.
struct Side {
    kind: Kind,
    server: Server,
    _origin: Origin,
    _first: Clients,
    turns: Vec<Turn>,
}

struct Turn {
    took: Duration,
    /// Until everybody has everything.
    coming: Duration,
    /// Until they have left again.
    all: Duration,
}

impl Side {
    async fn set_up(scenario: Scenario, kind: Kind, programs: &Programs) -> Result<Self, Error> {
        let origin = Origin::start(scenario.resources, Naming::Pool)?;
        let server = programs.start(kind, origin.address, Naming::Pool, &Naming::Pool.collections())?;
        let first = scenario.fleet(&server);
        first.connect(1, scenario.resources).await?;
        Ok(Self { kind, server, _origin: origin, _first: first, turns: Vec::new() })
    }

    async fn turn(&mut self, scenario: Scenario) -> Result<(), Error> {
        let Scenario { clients, resources, .. } = scenario;
        let fleet = scenario.fleet(&self.server);
        let (started, before) = (Instant::now(), self.server.cpu()?);
        if scenario.at_once {
            fleet.connect_at_once(clients, resources).await?;
        } else {
            fleet.connect(clients, resources).await?;
        }
        let (took, coming) = (started.elapsed(), self.server.cpu()? - before);
        drop(fleet);
        tokio::time::sleep(LEAVING).await;
        self.turns.push(Turn { took, coming, all: self.server.cpu()? - before });
        Ok(())
    }

    /// Milliseconds, and microseconds of CPU for each resource and for each client.
    fn measured(&self, scenario: Scenario) -> (f64, f64, f64) {
        let median = |of: fn(&Turn) -> Duration| {
            percentile(self.turns.iter().map(|turn| of(turn).as_secs_f64() * 1e6).collect(), 0.5)
        };
        let clients = scenario.clients as f64;
        let resource = median(|turn| turn.coming) / (clients * scenario.resources as f64);
        (median(|turn| turn.took) / 1e3, resource, median(|turn| turn.all) / clients)
    }
}

impl Scenario {
    fn fleet(self, server: &Server) -> Clients {
        Clients::new(server.address, self.protocol, Naming::Pool.interest(self.resources, self.exact))
    }
}
