//! How many instructions of its own a server takes: callgrind counts them. On a busy machine a server is at it for longer, and what
//! it does by time, or when it is woken once more, only adds: where there is a goal, the least of three counts is taken of each load.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use fan_out::Error;
use fan_out::content::Naming;

use crate::clients::{Clients, Protocol};
use crate::processes::{Kind, Origin, Programs};

/// What a server is brought to do.
#[derive(Clone, Copy)]
struct Load {
    clients: usize,
    resources: usize,
    rounds: u64,
    exact: bool,
    protocol: Protocol,
}

/// What the second load has more than the first is what is counted.
struct Part {
    what: &'static str,
    loads: [Load; 2],
    /// How often it is in that.
    times: usize,
    /// So many instructions may the relay take.
    goal: f64,
}

static PARTS: [Part; 5] = {
    let update = Load { clients: 100, resources: 100, rounds: 20, exact: false, protocol: Protocol::Delta };
    let state = Load { clients: 2, resources: 1000, rounds: 0, ..update };
    let more = Load { clients: 12, ..state };
    let origin = Load { clients: 1, ..state };
    let [named, more_named] = [Load { exact: true, ..state }, Load { exact: true, ..more }];
    let [sotw, more_sotw] =
        [Load { protocol: Protocol::Sotw, ..named }, Load { protocol: Protocol::Sotw, ..more_named }];
    [
        Part {
            what: "an update, with its ACK",
            // So many, or what else goes on in a process is a part of it.
            loads: [update, Load { rounds: 420, ..update }],
            times: 400 * 100,
            goal: 18_000.0,
        },
        Part { what: "a resource of an initial state", loads: [state, more], times: 10 * 1000, goal: 1000.0 },
        Part {
            what: "the same, each asked for by its name",
            loads: [named, more_named],
            times: 10 * 1000,
            goal: 6500.0,
        },
        Part { what: "and over SotW", loads: [sotw, more_sotw], times: 10 * 1000, goal: 17_000.0 },
        Part {
            what: "a resource applied, and served once",
            loads: [origin, Load { resources: 3000, ..origin }],
            times: 2000,
            goal: 26_000.0,
        },
    ]
};

/// How often it is counted at most until the goal is met: there is more than the load in a count, never less.
const COUNTS: usize = 3;

#[derive(Args)]
pub(crate) struct Instructions {
    #[command(flatten)]
    programs: Programs,
    /// Where callgrind's files of the relay are kept, for `callgrind_annotate`: a number is added for each load.
    #[arg(long)]
    keep: Option<PathBuf>,
    #[arg(skip)]
    kept: AtomicUsize,
    /// Fails for no goal.
    #[arg(long)]
    report: bool,
    /// The relay alone.
    #[arg(long)]
    goals: bool,
}

impl Instructions {
    pub(crate) async fn run(&self) -> Result<(), Error> {
        println!("| instructions for one client | server | counted | goal |");
        println!("|---|---|--:|--:|");
        let mut missed = 0;
        let kinds: &[_] = if self.goals { &[Kind::Relay] } else { &[Kind::Relay, Kind::Tonic, Kind::Lean] };
        for part in &PARTS {
            let Part { what, loads: [first, _], goal, .. } = part;
            // The usual server of tonic is one of delta alone.
            let serves = |kind: &&Kind| **kind != Kind::Tonic || first.protocol == Protocol::Delta;
            for &kind in kinds.iter().filter(serves) {
                let goal = (kind == Kind::Relay).then_some(*goal);
                let each = self.each(kind, part, goal).await?;
                let told = goal.map_or_else(String::new, |goal| goal.to_string());
                println!("| {what} | {} | {each:.0} | {told} |", kind.name());
                missed += usize::from(goal.is_some_and(|goal| each > goal));
            }
        }
        if missed > 0 && !self.report { Err("MISSED: the goal for instructions".into()) } else { Ok(()) }
    }

    /// What each costs of what the second load has more than the first.
    async fn each(&self, kind: Kind, part: &Part, goal: Option<f64>) -> Result<f64, Error> {
        let (mut least, mut each) = ([f64::INFINITY; 2], f64::INFINITY);
        for _ in 0..if goal.is_some() { COUNTS } else { 1 } {
            for (least, load) in least.iter_mut().zip(part.loads) {
                *least = least.min(self.count(kind, load).await?);
            }
            let [first, second] = least;
            each = (second - first) / part.times as f64;
            if goal.is_some_and(|goal| each <= goal) {
                break;
            }
        }
        Ok(each)
    }

    /// The instructions of a server from its start to its end.
    async fn count(&self, kind: Kind, load: Load) -> Result<f64, Error> {
        let Load { clients: count, resources, rounds, exact, protocol } = load;
        let interest = Naming::Pool.collections();
        let mut origin = Origin::start(resources, Naming::Pool)?;
        let counts = std::env::temp_dir().join(format!("fan-out-{}.callgrind", std::process::id()));
        let out = format!("--callgrind-out-file={}", counts.display());
        let launcher = ["valgrind", "--quiet", "--tool=callgrind", &out].map(str::to_owned);
        let server = self.programs.start_in(&launcher, kind, origin.address, Naming::Pool, &interest)?;
        let clients = Clients::new(server.address, protocol, Naming::Pool.interest(resources, exact));
        clients.connect(count, resources).await?;
        for round in 1..=rounds {
            clients.expect(round, count);
            origin.publish(round, round as usize % resources, 1)?;
            clients.arrived().await?;
        }
        server.terminate()?;
        let text = std::fs::read_to_string(&counts)?;
        if let (Kind::Relay, Some(keep)) = (kind, &self.keep) {
            let number = self.kept.fetch_add(1, Ordering::Relaxed);
            std::fs::copy(&counts, format!("{}.{number}", keep.display()))?;
        }
        std::fs::remove_file(&counts)?;
        let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).ok_or("callgrind counted nothing")?;
        Ok(total.trim().parse()?)
    }
}
