//! What clients cost a relay in memory: in a state, as slow readers, and after they left.

use std::time::Duration;

use clap::Args;
use fan_out::Error;
use fan_out::content::Naming;

use crate::clients::{Clients, Protocol, Reading};
use crate::processes::{Origin, Program, Server};

/// How long an allocator has to give back what was needed for a moment.
const SETTLED: Duration = Duration::from_secs(12);
/// How long a relay has to give back what clients needed that have left.
const RETURNED: Duration = Duration::from_secs(60);
/// How many KiB may be left by each client that is gone.
const LEFT: f64 = 8.0;

#[derive(Args)]
pub(crate) struct Memory {
    #[command(flatten)]
    program: Program,
    /// Prints the table, and fails for no goal.
    #[arg(long)]
    report: bool,
}

/// Clients that do the same.
struct State {
    what: &'static str,
    clients: usize,
    resources: usize,
    protocol: Protocol,
    exact: bool,
    reading: Reading,
    /// How many KiB each may cost while it is there.
    goal: f64,
}

static STATES: [State; 7] = {
    let idle = State {
        what: "has 10 names",
        // What does not go by their number is little beside so many: what the first client's initial state leaves behind
        // for a while, and what the allocator has at hand for each thread.
        clients: 1000,
        resources: 10,
        protocol: Protocol::Delta,
        exact: true,
        reading: Reading::All,
        goal: 32.0,
    };
    let glob = State { what: "has a glob's", exact: false, goal: 64.0, ..idle };
    let large = State { resources: 10_000, ..glob };
    let slow = State { goal: 96.0, ..large };
    // 64 KiB, and so much for each name.
    let names = State { what: "has each name", resources: 1000, goal: 64.0 + 96.0, ..idle };
    [
        // What each takes is least here, and what does not go by their number is the greater part of it.
        State { clients: 2000, ..idle },
        State { resources: 1000, ..glob },
        large,
        State { what: "opens no window", reading: Reading::OneWindow, ..slow },
        State { what: "has each name, SotW", protocol: Protocol::Sotw, goal: 64.0 + 128.0, ..names },
        names,
        // The last: of what the system has for sockets, these hold so much that others would wait for it.
        State { what: "does not read its socket", reading: Reading::Nothing, ..slow },
    ]
};

impl Memory {
    pub(crate) async fn run(&self) -> Result<(), Error> {
        // All relays wait at the same time.
        let mut relays = Vec::new();
        for state in &STATES {
            relays.push(self.start(state).await?);
        }
        tokio::time::sleep(SETTLED).await;
        for relay in &mut relays {
            relay.fill().await?;
        }
        tokio::time::sleep(SETTLED).await;
        let full = relays.iter_mut().map(Filled::empty).collect::<Result<Vec<_>, _>>()?;
        tokio::time::sleep(RETURNED).await;
        println!("| a client that | resources | clients | KiB each | goal | left by each after a minute |");
        println!("|---|--:|--:|--:|--:|--:|");
        let mut missed = 0;
        for (relay, each) in relays.iter().zip(full) {
            let State { what, resources, clients, goal, .. } = relay.state;
            let left = relay.per_client()?;
            println!("| {what} | {resources} | {clients} | {each:.1} | {goal:.0} | {left:.1} |");
            missed += usize::from(each > *goal) + usize::from(left > LEFT);
        }
        if missed > 0 && !self.report {
            return Err(format!("MISSED: {missed} of the goals for memory").into());
        }
        Ok(())
    }

    async fn start(&self, state: &'static State) -> Result<Filled, Error> {
        let origin = Origin::start(state.resources, Naming::Pool)?;
        let relay = self.program.start(origin.address, Naming::Pool)?;
        // With the first client the relay has the resources. It stays, so that they do.
        let first = clients(&relay, state);
        first.connect(1, state.resources).await?;
        Ok(Filled { state, relay, before: 0, others: None, _first: first, _origin: origin })
    }
}

/// A relay with one client, and with many more for a while.
struct Filled {
    state: &'static State,
    relay: Server,
    /// Its memory with one client, in KiB.
    before: i64,
    others: Option<Clients>,
    _first: Clients,
    _origin: Origin,
}

impl Filled {
    async fn fill(&mut self) -> Result<(), Error> {
        self.before = self.relay.anonymous()?;
        let others = clients(&self.relay, self.state).reading(self.state.reading);
        others.connect(self.state.clients, self.state.resources).await?;
        self.others = Some(others);
        Ok(())
    }

    /// Has the others leave. What each cost.
    fn empty(&mut self) -> Result<f64, Error> {
        let each = self.per_client();
        self.others = None;
        each
    }

    fn per_client(&self) -> Result<f64, Error> {
        Ok((self.relay.anonymous()? - self.before) as f64 / self.state.clients as f64)
    }
}

fn clients(relay: &Server, state: &State) -> Clients {
    let subscribe = Naming::Pool.interest(state.resources, state.exact);
    Clients::new(relay.address, state.protocol, subscribe)
}
