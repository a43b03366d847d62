//! Histories whose resources refer to each other.

use super::{At, History, STEPS, Step};
use crate::random::Random;
use crate::world::{GROUPS, ORIGINS, Of, REFERRED, REFERRERS, Setup, World};

/// Names that may refer to each other: of one origin, with several authorities, or of two.
const FAMILIES: [&[usize]; 5] = [&[0, 1], &[2, 3, 6], &[4, 5], &[2, 4, 7], &[0, 1, 2]];

/// What a history is about.
struct About {
    referrers: Vec<Of>,
    names: &'static [usize],
    wild: bool,
}

impl History {
    /// Clients ask for all of a few names first, and then origins go on from one of them to another.
    pub(crate) fn referring(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let setup = Setup::referring(&mut random);
        let referrers = (0..1 + random.below(2)).map(|_| random.pick(&REFERRERS)).collect();
        let about = About { referrers, names: random.pick(&FAMILIES), wild: random.one_in(3) };
        let mut steps = Vec::new();
        for client in 0..GROUPS.len() {
            let followed: &[Of] = if setup.follows[client] { &[] } else { &REFERRED };
            for of in followed.iter().chain(&about.referrers) {
                steps.extend(about.asks(&mut random, client, *of));
            }
        }
        steps.extend(about.referrers.iter().map(|of| about.switch(&mut random, &setup, *of)));
        steps.push(Step::Settle);
        steps.extend((0..STEPS / 2 + random.below(STEPS)).map(|_| about.step(&mut random, &setup)));
        Self { setup, seed, steps }
    }
}

impl About {
    /// By the wildcard, by name, or both.
    fn asks(&self, random: &mut Random, client: usize, of: Of) -> Vec<Step> {
        let how = random.below(3);
        let names = self.names.iter().copied().filter(|_| how > 0);
        let wildcard = (how < 2).then_some(World::WILDCARD);
        names.chain(wildcard).map(|what| Step::Subscribe(client, of, what)).collect()
    }

    fn at(&self, random: &mut Random) -> At {
        let group = random.index(2);
        if self.wild && !random.one_in(4) { At::Wildcard(group) } else { At::Usual(group) }
    }

    fn switch(&self, random: &mut Random, setup: &Setup, of: Of) -> Step {
        let bit = |random: &mut Random| 1 << random.pick(self.names);
        let to = match random.below(10) {
            0 => 0,
            1..3 => bit(random) | bit(random),
            _ => bit(random),
        };
        let pace = random.pick(&[0, 0, 0, 1, 100, 800]);
        // Not with a history where nothing is in the way.
        let backwards = random.one_in(6) && !setup.calm;
        Step::Switch { of, name: random.pick(self.names), at: self.at(random), to, pace, backwards }
    }

    fn step(&self, random: &mut Random, setup: &Setup) -> Step {
        let of = random.pick(&self.referrers);
        let (client, origin) = (random.index(GROUPS.len()), random.index(ORIGINS));
        match random.below(if setup.calm { 75 } else { 100 }) {
            0..50 => self.switch(random, setup, of),
            50..58 => {
                let of = if random.one_in(2) { of } else { random.pick(&REFERRED) };
                Step::Busy { of, name: random.pick(self.names), at: self.at(random), ms: random.pick(&[2000, 20_000]) }
            }
            58..70 => Step::Wait(random.pick(&[1, 100, 1000, 5000, 40_000])),
            70..75 => Step::Settle,
            75..79 => Step::CutClient(client),
            79..82 => Step::CutOrigin(origin),
            82..84 => Step::Outage(origin, random.pick(&[100, 3000, 60_000])),
            84..86 => Step::Restart(origin, random.index(2)),
            86..88 if setup.relay_restarts => Step::RestartRelay,
            86..88 => Step::Silence(origin, random.pick(&[1000, 20_000])),
            88..90 => Step::Slow(origin, random.pick(&[1000, 60_000])),
            90..95 => Step::Subscribe(client, self.any(random), self.interest(random)),
            _ => Step::Unsubscribe(client, self.any(random), self.interest(random)),
        }
    }

    fn any(&self, random: &mut Random) -> Of {
        let of = random.pick(&self.referrers);
        random.pick(&[of, REFERRED[0], REFERRED[1]])
    }

    fn interest(&self, random: &mut Random) -> usize {
        let other = World::NAMES + random.index(World::INTERESTS - World::NAMES);
        let name = random.pick(self.names);
        random.pick(&[name, World::WILDCARD, other])
    }
}
