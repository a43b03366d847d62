//! How long to wait before the next attempt.

use std::time::Duration;

/// Exponential backoff with full jitter, as Envoy does it (rule 90).
///
/// ```
/// use std::time::Duration;
/// use xdstp_client::Backoff;
///
/// let mut backoff = Backoff::default();
/// assert_eq!(backoff.next(0), Duration::ZERO);
/// assert_eq!(backoff.next(u64::MAX), Duration::from_secs(1));
/// backoff.reset();
/// assert_eq!(backoff.next(u64::MAX), Duration::from_millis(500));
/// ```
#[derive(Clone, Debug)]
pub struct Backoff {
    base: Duration,
    max: Duration,
    attempts: u32,
}

impl Default for Backoff {
    /// From 500 ms to 30 s.
    fn default() -> Self {
        Self::new(Duration::from_millis(500), Duration::from_secs(30))
    }
}

impl Backoff {
    /// The first wait is up to `base` long; each further one up to twice as long, and never longer than `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, attempts: 0 }
    }

    /// The next wait. `random` is uniform over its whole range.
    pub fn next(&mut self, random: u64) -> Duration {
        let ceiling = self.base.saturating_mul(1_u32.checked_shl(self.attempts).unwrap_or(u32::MAX)).min(self.max);
        self.attempts = self.attempts.saturating_add(1);
        ceiling.mul_f64(random as f64 / u64::MAX as f64)
    }

    /// The same, as long as waits get: what is wrong does not pass by itself.
    pub fn longest(&mut self, random: u64) -> Duration {
        self.attempts = u32::MAX;
        self.next(random)
    }

    /// The peer answered: the next wait is short again.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_090_waits_double_up_to_a_bound_with_full_jitter() {
        let mut backoff = Backoff::default();
        let longest: Vec<_> = (0..40).map(|_| backoff.next(u64::MAX).as_millis()).collect();
        assert_eq!(longest[..8], [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        assert_eq!(longest[39], 30_000);
        assert_eq!(backoff.next(u64::MAX / 2).as_millis(), 15_000);
        assert_eq!(backoff.next(0), Duration::ZERO);
    }

    #[test]
    fn the_longest_wait_is_over_like_any() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.longest(u64::MAX).as_secs(), 30);
        assert_eq!(backoff.longest(u64::MAX / 2).as_secs(), 15);
        backoff.reset();
        assert_eq!(backoff.next(u64::MAX).as_millis(), 500);
    }
}
