//! How old a stream may get.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Between three and five quarters of `age`, evenly over the range of `random`.
pub(crate) fn jittered(age: Duration, random: u64) -> Duration {
    age / 4 * 3 + (age / 2).mul_f64(random as f64 / u64::MAX as f64)
}

/// Enough for jitter: every `RandomState` has keys of its own.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_093_streams_that_began_together_do_not_end_together() {
        const HOUR: Duration = Duration::from_secs(3600);
        let mut ends = [0; 10];
        for _ in 0..10_000 {
            let age = jittered(HOUR, random());
            assert!((HOUR / 4 * 3..=HOUR / 4 * 5).contains(&age));
            ends[((age - HOUR / 4 * 3).as_secs() / 180).min(9) as usize] += 1;
        }
        assert!(ends.iter().all(|tenth| (700..1300).contains(tenth)), "{ends:?}");
    }
}
