//! One scenario: all servers are set up, then measured in turns.

use std::time::{Duration, Instant};

use fan_out::Error;
use fan_out::content::Naming;

use crate::clients::{Clients, Protocol, Reading};
use crate::processes::{Kind, Origin, Programs, Server};

/// What is measured.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// How many clients there are.
    pub(crate) clients: usize,
    /// How many resources the collection holds.
    pub(crate) resources: usize,
    /// How these are called.
    pub(crate) naming: Naming,
    /// How many KiB each has.
    pub(crate) kibibytes: usize,
    /// Whether each client is a node of its own.
    pub(crate) distinct: bool,
    /// How clients are told.
    pub(crate) protocol: Protocol,
    /// As many others, who are told in this way: over SotW of each name, over delta of the glob. Latencies are not theirs.
    pub(crate) beside: Option<Protocol>,
    /// So many more who do not read.
    pub(crate) slow: usize,
    /// Whether clients subscribe to every name instead of the glob.
    pub(crate) exact: bool,
    /// How many resources change in a round.
    pub(crate) changes: usize,
    /// How many rounds a turn has.
    pub(crate) rounds: usize,
    /// How many turns each server has.
    pub(crate) turns: usize,
}

/// What was measured of one server: medians of its turns.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) server: &'static str,
    pub(crate) updates_per_second: f64,
    /// Microseconds of the server's CPU per delivered update.
    pub(crate) cpu: f64,
    /// From the publish at the origin until the last client has it, in milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// KiB of resident memory per stream that waits.
    pub(crate) rss: f64,
    /// Microseconds of CPU for each resource of the initial states of all clients but the first, if there are others.
    pub(crate) initial: Option<f64>,
}

impl Scenario {
    /// Measures the relay, then the others, as often as there are turns. The leanest is the last; tonic is there where its
    /// clients take deltas.
    pub(crate) async fn measure(&self, programs: &Programs) -> Result<Vec<Measured>, Error> {
        match self.protocol == Protocol::Delta && self.beside != Some(Protocol::Sotw) {
            true => self.measure_of(&[Kind::Relay, Kind::Tonic, Kind::Lean], programs).await,
            false => self.measure_of(&[Kind::Relay, Kind::Lean], programs).await,
        }
    }

    /// The same of these, in this order.
    pub(crate) async fn measure_of(&self, kinds: &[Kind], programs: &Programs) -> Result<Vec<Measured>, Error> {
        let mut sides = Vec::new();
        for kind in kinds {
            sides.push(Side::set_up(self, *kind, programs).await?);
        }
        for _ in 0..self.turns {
            for side in &mut sides {
                side.turn(self).await?;
            }
        }
        Ok(sides.iter().map(Side::measured).collect())
    }
}

/// One server with its origin and its clients.
struct Side {
    name: &'static str,
    origin: Origin,
    server: Server,
    clients: Clients,
    beside: Option<Clients>,
    /// They are there as long as this.
    _slow: Clients,
    rss: f64,
    initial: Option<f64>,
    round: u64,
    turns: Vec<Turn>,
}

struct Turn {
    cpu: f64,
    updates_per_second: f64,
    latencies: Vec<Duration>,
}

impl Side {
    async fn set_up(scenario: &Scenario, kind: Kind, programs: &Programs) -> Result<Self, Error> {
        let Scenario { resources, naming, kibibytes, protocol, .. } = *scenario;
        let origin = Origin::start_of(resources, naming, kibibytes)?;
        let server = programs.start(kind, origin.address, naming, &naming.interest(resources, false))?;
        let tls = (kind == Kind::Secured).then(|| programs.tls.connector(true));
        let fleet = |protocol, exact| {
            Clients::new(server.address, protocol, naming.interest(resources, exact)).by_tls(tls.clone())
        };
        let mut clients = fleet(protocol, scenario.exact);
        if scenario.distinct {
            clients = clients.distinct();
        }
        // With the first client the server has the resources themselves; the others show what a stream costs.
        clients.connect(1, resources).await?;
        let others = scenario.clients - 1;
        let (before, cpu) = (server.rss()?, server.cpu()?);
        clients.connect(others, resources).await?;
        let initial = (server.cpu()? - cpu).as_secs_f64() * 1e6 / (others * resources).max(1) as f64;
        let initial = (others > 0).then_some(initial);
        let rss = (server.rss()? - before) as f64 / others.max(1) as f64;
        let beside = scenario.beside.map(|protocol| fleet(protocol, protocol == Protocol::Sotw));
        if let Some(beside) = &beside {
            beside.connect(scenario.clients, resources).await?;
        }
        let slow = fleet(protocol, scenario.exact).reading(Reading::Nothing);
        slow.connect(scenario.slow, resources).await?;
        let name = kind.name();
        let mut side =
            Self { name, origin, server, clients, beside, _slow: slow, rss, initial, round: 0, turns: Vec::new() };
        side.rounds(scenario, scenario.rounds / 10 + 1).await?;
        Ok(side)
    }

    async fn rounds(&mut self, scenario: &Scenario, rounds: usize) -> Result<Vec<Duration>, Error> {
        let mut latencies = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            self.round += 1;
            let first = self.round as usize * scenario.changes % scenario.resources;
            for clients in [Some(&self.clients), self.beside.as_ref()].into_iter().flatten() {
                clients.expect(self.round, scenario.clients * scenario.changes);
            }
            let published = Instant::now();
            self.origin.publish(self.round, first, scenario.changes)?;
            let in_round = |error| format!("{}, round {}: {error}", self.name, self.round);
            self.clients.arrived().await.map_err(in_round)?;
            latencies.push(published.elapsed());
            if let Some(beside) = &self.beside {
                beside.arrived().await.map_err(in_round)?;
            }
        }
        Ok(latencies)
    }

    async fn turn(&mut self, scenario: &Scenario) -> Result<(), Error> {
        let (cpu, started) = (self.server.cpu()?, Instant::now());
        let latencies = self.rounds(scenario, scenario.rounds).await?;
        let elapsed = started.elapsed();
        let cpu = self.server.cpu()? - cpu;
        let fleets = 1 + usize::from(scenario.beside.is_some());
        let updates = (fleets * scenario.clients * scenario.changes * scenario.rounds) as f64;
        self.turns.push(Turn {
            cpu: cpu.as_secs_f64() * 1e6 / updates,
            updates_per_second: updates / elapsed.as_secs_f64(),
            latencies,
        });
        Ok(())
    }

    fn measured(&self) -> Measured {
        let median = |of: &dyn Fn(&Turn) -> f64| percentile(self.turns.iter().map(of).collect(), 0.5);
        let latency =
            |at| median(&|turn| percentile(turn.latencies.iter().map(|took| took.as_secs_f64() * 1e3).collect(), at));
        Measured {
            server: self.name,
            updates_per_second: median(&|turn| turn.updates_per_second),
            cpu: median(&|turn| turn.cpu),
            p50: latency(0.5),
            p99: latency(0.99),
            rss: self.rss,
            initial: self.initial,
        }
    }
}

pub(crate) fn percentile(mut values: Vec<f64>, at: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * at).round() as usize).copied().unwrap_or(f64::NAN)
}
