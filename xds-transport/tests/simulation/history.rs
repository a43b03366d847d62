//! What happens in a history: drawn from its seed before it runs, so that steps can be left out.

use xds_transport::Protocol;

use crate::random::Random;
use crate::variants::Form;
use crate::world::{Of, Setup, World};

/// Numbers stand for types, names and interests of the [`World`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Subscribe(Of, usize),
    Unsubscribe(Of, usize),
    /// With the TTL, in ms.
    Put(Of, usize, u8, Option<u64>),
    Remove(Of, usize),
    /// One change: a cluster takes the place of another, for the route that used it.
    Replace {
        new: usize,
        old: usize,
        route: usize,
        body: u8,
    },
    /// The origin has an error of a name or a glob.
    Fail(Of, usize, i32),
    /// The origin has all of a glob.
    Answer(Of, usize),
    /// The origin has a resource from another, for so many ms.
    Lend(Of, usize, u8, u64),
    /// The origin sends a resource again as it is.
    Touch(Of, usize),
    /// The link breaks; the two ends notice after so many ms.
    Cut {
        client: u64,
        server: u64,
    },
    /// Nothing arrives in one direction for so many ms.
    Stall {
        up: bool,
        ms: u64,
    },
    /// No connection can be made for so many ms.
    Outage(u64),
    /// A replica starts anew, with the content alone.
    Restart(usize),
    Wait(u64),
    /// The link heals, and all comes to rest.
    Settle,
}

#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) setup: Setup,
    /// For what the link does by itself.
    pub(crate) seed: u64,
    pub(crate) steps: Vec<Step>,
}

const STEPS: u64 = 60;
/// `NOT_FOUND`, `PERMISSION_DENIED`, `UNAVAILABLE`.
const CODES: [i32; 3] = [5, 7, 14];

impl History {
    pub(crate) fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let setup = Setup::random(&mut random);
        let mut types: Vec<Of> = (0..World::KINDS).filter(|_| random.one_in(2)).collect();
        types.push(random.index(World::KINDS));
        // Few names meet more often: more happens to each.
        let names: Vec<_> = match random.pick(&[2, 3, World::NAMES]) {
            World::NAMES => (0..World::NAMES).collect(),
            few => (0..few).map(|_| random.index(World::NAMES)).collect(),
        };
        let mut steps: Vec<_> =
            (0..STEPS / 2 + random.below(STEPS)).map(|_| step(&mut random, &setup, &types, &names)).collect();
        // Every other history has these too: the rest of it, and the others, are as they were without.
        if random.one_in(2) {
            for _ in 0..1 + random.below(STEPS / 8) {
                let rare = rare(&mut random, &setup, &types, &names);
                let at = random.index(steps.len());
                steps.splice(at..at, rare);
            }
        }
        Self { setup, seed, steps }
    }

    /// The same with an origin that looks at few names at a time.
    pub(crate) fn pausing(seed: u64) -> Self {
        let mut history = Self::random(seed);
        history.setup.looks = 1 + seed as usize % 3;
        history
    }

    /// The same of names that have variants. What these live for is not theirs to say yet.
    pub(crate) fn varied(seed: u64) -> Self {
        let mut history = Self::random(seed);
        let plain = history.setup.protocol == Protocol::Delta;
        history.setup.variants = Some(Form { draft: seed % 2 == 1, plain, on_wire: seed / 2 % 2 == 1 });
        history.setup.ttl = false;
        history.steps.retain_mut(|step| {
            if let Step::Put(.., ttl) = step {
                *ttl = None;
            }
            !matches!(step, Step::Lend(..))
        });
        history
    }

    /// The shortest history that still fails, by leaving out steps.
    pub(crate) fn shrunk(&self, fails: impl Fn(&Self) -> bool) -> Self {
        let mut least = self.clone();
        let (mut chunk, mut before) = (least.steps.len().max(1), usize::MAX);
        while chunk > 0 {
            let mut at = 0;
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
            before = least.steps.len();
            chunk = if again { 1 } else { chunk / 2 };
        }
        least
    }
}

/// What an origin says that is none itself, or not well.
fn rare(random: &mut Random, setup: &Setup, types: &[Of], names: &[usize]) -> Vec<Step> {
    let (of, name) = (random.pick(types), random.pick(names));
    let body = random.below(u64::from(World::BODIES)) as u8;
    let glob = World::NAMES + random.index(World::INTERESTS - World::NAMES - 1);
    match random.below(3) {
        0 if setup.ttl => vec![Step::Lend(of, name, body, random.pick(&World::TTLS))],
        1 if setup.errors => {
            vec![Step::Fail(of, glob, random.pick(&CODES)), Step::Wait(random.pick(&[1, 1000])), Step::Answer(of, glob)]
        }
        2 if setup.errors => {
            let (denied, unavailable) = (Step::Fail(of, name, CODES[1]), Step::Fail(of, name, CODES[2]));
            vec![denied, Step::Wait(1000), Step::Put(of, name, body, None), unavailable]
        }
        _ => Vec::new(),
    }
}

fn step(random: &mut Random, setup: &Setup, types: &[Of], names: &[usize]) -> Step {
    let of = random.pick(types);
    let name = random.pick(names);
    // Collections are few among the interests, and worth as much as the names.
    let interest = if random.one_in(2) {
        random.pick(names)
    } else {
        World::NAMES + random.index(World::INTERESTS - World::NAMES)
    };
    match random.below(100) {
        0..22 => Step::Subscribe(of, interest),
        22..38 => Step::Unsubscribe(of, interest),
        38..44 => {
            let body = random.below(u64::from(World::BODIES)) as u8;
            Step::Replace { new: name, old: random.pick(names), route: random.pick(names), body }
        }
        44..52 if setup.errors => Step::Fail(of, interest.min(World::INTERESTS - 2), random.pick(&CODES)),
        44..60 => {
            let body = random.below(u64::from(World::BODIES)) as u8;
            let ttl = (setup.ttl && random.one_in(2)).then(|| random.pick(&World::TTLS));
            Step::Put(of, name, body, ttl)
        }
        60..70 => Step::Remove(of, name),
        70..72 => Step::Touch(of, name),
        72..79 => Step::Cut { client: random.below(300), server: random.below(300) },
        79..82 => Step::Stall { up: random.one_in(2), ms: random.below(3000) },
        82..84 => Step::Outage(random.below(3000)),
        84..86 => Step::Restart(random.index(2)),
        86..96 => Step::Wait(random.pick(&[1, 10, 100, 1000, 20_000])),
        _ => Step::Settle,
    }
}
