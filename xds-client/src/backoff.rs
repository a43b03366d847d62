//! How long to wait before the next attempt.

use std::time::Duration;

/// After so many attempts nobody's waits are still growing.
const MOST_STEPS: u32 = 64;

/// Exponential backoff with jitter: as Envoy does it (rule 90), or as [gRPC](Self::grpc) does.
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
    growth: Growth,
    attempts: u32,
}

#[derive(Clone, Copy, Debug)]
enum Growth {
    /// Twice as long each time, and anything up to that.
    Doubled,
    /// 1.6 times as long each time, and a fifth more or less.
    Grpc,
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
        Self { base, max, growth: Growth::Doubled, attempts: 0 }
    }

    /// What clients of gRPC do: about a second, then 1.6 times as long each time up to two minutes, each a fifth more or
    /// less.
    ///
    /// ```
    /// use std::time::Duration;
    /// use xdstp_client::Backoff;
    ///
    /// let mut backoff = Backoff::grpc();
    /// assert_eq!(backoff.next(0), Duration::from_millis(800));
    /// assert_eq!(backoff.next(u64::MAX), Duration::from_millis(1920));
    /// ```
    pub fn grpc() -> Self {
        Self { growth: Growth::Grpc, ..Self::new(Duration::from_secs(1), Duration::from_secs(120)) }
    }

    /// The next wait. `random` is uniform over its whole range.
    pub fn next(&mut self, random: u64) -> Duration {
        let part = random as f64 / u64::MAX as f64;
        let (factor, jitter) = match self.growth {
            Growth::Doubled => (2.0_f64, part),
            Growth::Grpc => (1.6, 0.8 + 0.4 * part),
        };
        let times = factor.powi(i32::try_from(self.attempts.min(MOST_STEPS)).unwrap_or(0));
        self.attempts = self.attempts.saturating_add(1);
        let ceiling = Duration::try_from_secs_f64(self.base.as_secs_f64() * times).unwrap_or(self.max).min(self.max);
        Duration::try_from_secs_f64(ceiling.as_secs_f64() * jitter).unwrap_or(self.max)
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
    fn r049_clients_of_grpc_wait_a_second_and_then_longer_up_to_two_minutes_more_or_less() {
        let waits = |random| {
            let mut backoff = Backoff::grpc();
            (0..100).map(move |_| backoff.next(random).as_millis()).collect::<Vec<_>>()
        };
        let (least, middle, most) = (waits(0), waits(u64::MAX / 2), waits(u64::MAX));
        assert_eq!(middle[..5], [1000, 1600, 2560, 4096, 6553]);
        assert_eq!((least[0], most[0], middle[99], least[99], most[99]), (800, 1200, 120_000, 96_000, 144_000));
    }

    #[test]
    fn no_wait_is_too_short_or_too_long_to_be_counted() {
        for (base, max) in
            [(Duration::ZERO, Duration::ZERO), (Duration::ZERO, Duration::MAX), (Duration::MAX, Duration::MAX)]
        {
            let mut backoff = Backoff::new(base, max);
            assert!((0..2000).all(|_| backoff.next(0) == Duration::ZERO && backoff.next(u64::MAX) >= base));
        }
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
