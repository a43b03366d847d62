//! What happens in a history: drawn from its seed before it runs, so that steps can be left out.

use crate::random::Random;
use crate::shortest::shortest;

pub(crate) const RELAYS: usize = 2;
/// Of the relays' own stream, and of a node group's.
pub(crate) const NAMES: [&str; 3] = ["x", "xdstp://a/envoy.config.cluster.v3.Cluster/z", "y"];
/// In seconds.
const TTLS: [u32; 3] = [6, 21, 60];
const STEPS: u64 = 24;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A new content, and for how many seconds it lives.
    Put { name: usize, ttl: Option<u32> },
    /// The origin reads, and says nothing.
    Silence(bool),
    /// There is no way to the origin.
    Away(bool),
    /// A relay is killed, and another one takes its place after so many seconds: with what that one kept, or with nothing.
    Restart { relay: usize, keeps: bool, after: u32 },
    /// A client comes that was not there.
    Join(usize),
    /// The stream of a client breaks; it comes back.
    Return(usize),
    /// So many seconds pass.
    Wait(u32),
}

#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) steps: Vec<Step>,
}

impl History {
    pub(crate) fn random(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let puts = (0..NAMES.len()).map(|name| Step::Put { name, ttl: Some(random.pick(&TTLS)) });
        let mut steps: Vec<_> = puts.collect();
        steps.push(Step::Wait(1));
        for _ in 0..STEPS / 2 + random.below(STEPS) {
            steps.push(step(random));
            steps.push(Step::Wait(random.pick(&[0, 0, 1, 3, 8])));
        }
        Self { steps }
    }

    /// The shortest that still fails.
    pub(crate) fn shrunk(&self, fails: impl Fn(&Self) -> bool) -> Self {
        Self { steps: shortest(&self.steps, |steps| fails(&Self { steps: steps.to_vec() })) }
    }
}

fn step(random: &mut Random) -> Step {
    match random.below(100) {
        0..24 => Step::Put { name: random.index(NAMES.len()), ttl: (!random.one_in(4)).then(|| random.pick(&TTLS)) },
        24..34 => Step::Silence(random.one_in(2)),
        34..46 => Step::Away(random.one_in(2)),
        46..62 => {
            Step::Restart { relay: random.index(RELAYS), keeps: random.one_in(2), after: random.pick(&[0, 1, 5, 30]) }
        }
        62..72 => Step::Join(random.index(RELAYS)),
        72..80 => Step::Return(random.index(super::CLIENTS.len())),
        _ => Step::Wait(random.pick(&[1, 5, 10, 30, 70])),
    }
}
