//! What happens in a history: drawn from its seed before it runs, so that steps can be left out.

mod referring;

use xdstp_uri::ResourceName;

use crate::random::Random;
use crate::world::{GROUPS, ORIGINS, Of, Place, SERVERS, Setup, World, place_of};

/// Numbers stand for clients, types, names, interests and origins of the [`World`]; those of origins go on with their second
/// servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Subscribe(usize, Of, usize),
    Unsubscribe(usize, Of, usize),
    Put {
        of: Of,
        name: usize,
        at: At,
        bad: bool,
        /// One bit each.
        aliases: u64,
    },
    Remove {
        of: Of,
        name: usize,
        at: At,
    },
    /// Something refers to other clusters now, one bit each: they are there first, and what nobody refers to any more goes
    /// last, with so many ms between any two of these changes. Without them it goes itself.
    Switch {
        of: Of,
        name: usize,
        at: At,
        to: u64,
        pace: u64,
        /// What goes, goes first: that is no order.
        backwards: bool,
    },
    /// For so many ms something that others refer to changes all the time.
    Busy {
        of: Of,
        name: usize,
        at: At,
        ms: u64,
    },
    /// The stream of a client breaks; it comes back.
    CutClient(usize),
    /// Every stream to an origin breaks.
    CutOrigin(usize),
    /// The same, and no new one for so many ms.
    Outage(usize, u64),
    /// A replica of an origin starts anew, with the content alone.
    Restart(usize, usize),
    /// The relay starts anew, and knows nothing.
    RestartRelay,
    /// An origin reads, and says nothing for so many ms.
    Silence(usize, u64),
    /// A balancer without an origin behind it: for so many ms every stream ends as it begins.
    HangUp(usize, u64),
    /// Where each type has a stream of its own: that of one to an origin ends, and so does each as it begins for so many ms.
    EndType(usize, Of, u64),
    /// For so many ms what an origin says takes long to come in, byte by byte.
    Slow(usize, u64),
    /// The second origin is another from now on, or there is none until it is again; if it `rests`, once all has come to rest, and
    /// nobody is told anything for it.
    Lead {
        away: bool,
        rests: bool,
    },
    Wait(u64),
    /// Whoever is away returns, and all comes to rest.
    Settle,
}

/// Where the origins have something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Old-style names are what an origin has for one node group, others are the same for everybody.
    Usual(usize),
    /// In the wildcard of a node group, whatever its name is.
    Wildcard(usize),
}

impl At {
    pub(crate) fn place(self, setup: &Setup, name: &ResourceName) -> Place {
        match self {
            Self::Wildcard(group) if setup.xdstp_in_wildcards => Place::wildcard(group),
            Self::Usual(group) | Self::Wildcard(group) => place_of(name, group),
        }
    }
}

impl Step {
    /// Which type it is about.
    fn of(&self) -> Option<Of> {
        match *self {
            Self::Subscribe(_, of, _) | Self::Unsubscribe(_, of, _) => Some(of),
            Self::Put { of, .. } | Self::Remove { of, .. } => Some(of),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) setup: Setup,
    /// For what the links do by themselves.
    pub(crate) seed: u64,
    pub(crate) steps: Vec<Step>,
}

const STEPS: u64 = 50;

impl History {
    pub(crate) fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let setup = Setup::random(&mut random);
        let types: Vec<Of> = (0..1 + random.below(2)).map(|_| random.index(World::UNRELATED)).collect();
        // Few names meet more often: more happens to each.
        let names: Vec<_> = (0..random.pick(&[2, 3, 6])).map(|_| random.index(World::NAMES)).collect();
        let steps = (0..STEPS / 2 + random.below(STEPS)).map(|_| step(&mut random, &setup, &types, &names)).collect();
        Self { setup, seed, steps }
    }

    /// The same of a world in which an origin has two servers: either of these goes and comes back by itself.
    pub(crate) fn several(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x7365_7276);
        let Self { steps, .. } = Self::random(seed);
        let setup = Setup::several(&mut random);
        let mut history = Self { setup, seed, steps };
        for step in &mut history.steps {
            match step {
                Step::CutOrigin(server)
                | Step::Outage(server, _)
                | Step::Restart(server, _)
                | Step::Silence(server, _)
                | Step::HangUp(server, _)
                | Step::Slow(server, _) => *server += ORIGINS * random.index(SERVERS),
                // There are outages enough for both.
                Step::CutClient(_) if random.one_in(2) => {
                    *step = Step::Outage(random.index(ORIGINS * SERVERS), random.pick(&[100, 3000, 60_000]));
                }
                _ => {}
            }
        }
        history
    }

    /// The same of a world in which the second origin comes and goes.
    pub(crate) fn led(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x6c65_6164);
        let Self { mut steps, .. } = Self::random(seed);
        let setup = Setup::led(&mut random);
        for step in &mut steps {
            match step {
                // A relay that knows nothing does not know either that there was another.
                Step::RestartRelay => *step = Step::Lead { away: random.one_in(3), rests: random.one_in(4) },
                Step::Wait(_) | Step::CutClient(_) | Step::Restart(..) if random.one_in(2) => {
                    *step = Step::Lead { away: random.one_in(3), rests: random.one_in(4) };
                }
                // Most are about names of its authority.
                Step::Put { name, .. } | Step::Remove { name, .. } if random.one_in(2) => *name = World::LED[*name % 2],
                Step::Subscribe(.., what) | Step::Unsubscribe(.., what) if random.one_in(2) => {
                    *what = if random.one_in(3) { World::GLOB_OF_LED } else { World::LED[*what % 2] };
                }
                _ => {}
            }
        }
        Self { setup, seed, steps }
    }

    /// The same of a world in which origins have a method for each type: most of what breaks is the stream of one.
    pub(crate) fn apart(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x6170_6172);
        let Self { steps, .. } = Self::random(seed);
        let setup = Setup::apart(&mut random);
        let types: Vec<Of> = steps.iter().filter_map(Step::of).collect();
        let mut broken = Vec::with_capacity(steps.len());
        for step in steps {
            match step {
                Step::CutOrigin(server) | Step::Outage(server, _) | Step::CutClient(server) if random.one_in(2) => {
                    let of = if types.is_empty() { 0 } else { random.pick(&types) };
                    let ms = random.pick(&[0, 0, 3000, 60_000]);
                    broken.push(Step::EndType(server % ORIGINS, of, ms));
                    // Whoever comes then brings along what only this type's stream could say anything of.
                    if ms > 40_000 && random.one_in(2) {
                        broken.extend([Step::RestartRelay, Step::Wait(40_000)]);
                    }
                }
                step => broken.push(step),
            }
        }
        let steps = broken;
        Self { setup, seed, steps }
    }

    /// The same, of every second one whose resources refer to each other, with a relay that looks at few names at a time.
    pub(crate) fn pausing(seed: u64) -> Self {
        let mut history = if seed.is_multiple_of(2) { Self::random(seed) } else { Self::referring(seed) };
        history.setup.names_per_turn = 1 + seed as usize / 2 % 3;
        history
    }

    /// The shortest history that still fails, by leaving out steps.
    pub(crate) fn shrunk(&self, fails: impl Fn(&Self) -> bool) -> Self {
        let mut least = self.clone();
        let mut chunk = least.steps.len().max(1);
        while chunk > 0 {
            let (mut at, before) = (0, least.steps.len());
            while at < least.steps.len() {
                let mut shorter = least.clone();
                shorter.steps.drain(at..(at + chunk).min(least.steps.len()));
                if fails(&shorter) {
                    least = shorter;
                } else {
                    at += chunk;
                }
            }
            // Once single steps go, what went before may go too.
            let again = chunk == 1 && least.steps.len() < before;
            chunk = if again { 1 } else { chunk / 2 };
        }
        least
    }
}

fn step(random: &mut Random, setup: &Setup, types: &[Of], names: &[usize]) -> Step {
    let (of, name) = (random.pick(types), random.pick(names));
    let (client, origin) = (random.index(GROUPS.len()), random.index(ORIGINS));
    let group = random.index(2);
    let wild = setup.xdstp_in_wildcards && random.one_in(2);
    let at = if wild { At::Wildcard(group) } else { At::Usual(group) };
    let aliases = if setup.aliases { random.below(World::ALL_ALIASES + 1) } else { 0 };
    let interest = if random.one_in(2) { name } else { World::NAMES + random.index(World::INTERESTS - World::NAMES) };
    match random.below(100) {
        0..26 => Step::Subscribe(client, of, interest),
        26..40 => Step::Unsubscribe(client, of, interest),
        40..62 => Step::Put { of, name, at, bad: random.one_in(6), aliases },
        62..72 => Step::Remove { of, name, at },
        72..77 => Step::CutClient(client),
        77..80 => Step::CutOrigin(origin),
        80..84 => Step::Outage(origin, random.pick(&[100, 3000, 60_000])),
        84..86 => Step::Restart(origin, random.index(2)),
        86..90 if setup.relay_restarts => Step::RestartRelay,
        90..91 => Step::Silence(origin, random.pick(&[1000, 20_000, 100_000])),
        91..92 => Step::HangUp(origin, random.pick(&[1000, 60_000])),
        92..93 => Step::Slow(origin, random.pick(&[1000, 60_000])),
        86..90 => Step::CutClient(client),
        93..98 => Step::Wait(random.pick(&[1, 10, 100, 1000, 40_000])),
        _ => Step::Settle,
    }
}
