//! How long things took, counted as histograms are.

use std::time::Duration;

/// How often something took how long. What is counted has fixed bounds, so that counts of one session can be added to those of
/// another, and takes no memory of its own.
///
/// ```
/// use std::time::Duration;
/// use xds_transport::server::Latencies;
///
/// let mut latencies = Latencies::default();
/// latencies.record(Duration::from_millis(5));
/// latencies.record(Duration::from_millis(7));
/// latencies.record(Duration::from_secs(60));
/// assert_eq!((latencies.count(), latencies.sum()), (3, Duration::from_millis(60_012)));
/// // As Prometheus has them: each counts what those before it do, too.
/// let buckets: Vec<_> = latencies.buckets().take(3).collect();
/// assert_eq!(buckets, [(0.001, 0), (0.005, 1), (0.01, 2)]);
/// assert_eq!(latencies.buckets().last(), Some((30.0, 2)), "what takes longer is in the count alone");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// The last is of what is above all bounds.
    counts: [u64; BOUNDS.len() + 1],
    micros: u64,
}

/// In microseconds, which what took just so long is within.
const BOUNDS: [u64; 11] =
    [1000, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000, 30_000_000];

impl Latencies {
    /// Something took so long.
    #[inline]
    pub fn record(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // Mostly it is among the first.
        let at = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
        self.counts.iter_mut().skip(at).take(1).for_each(|count| *count += 1);
        self.micros = self.micros.saturating_add(micros);
    }

    /// How much was counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long all of it took together, to the microsecond.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.micros)
    }

    /// The bounds in seconds, and how much took no longer than each.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut so_far = 0;
        BOUNDS.iter().zip(&self.counts).map(move |(bound, count)| {
            so_far += count;
            (Duration::from_micros(*bound).as_secs_f64(), so_far)
        })
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, other)| *count += other);
        self.micros = self.micros.saturating_add(other.micros);
    }

    /// What was counted beyond what `earlier` has.
    #[must_use]
    pub fn beyond(&self, earlier: &Self) -> Self {
        let mut beyond = self.clone();
        beyond
            .counts
            .iter_mut()
            .zip(earlier.counts)
            .for_each(|(count, earlier)| *count = count.saturating_sub(earlier));
        beyond.micros = self.micros.saturating_sub(earlier.micros);
        beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_before_is_not_counted_again() {
        let mut earlier = Latencies::default();
        earlier.record(Duration::from_millis(2));
        let mut now = earlier.clone();
        now.record(Duration::ZERO);
        now.record(Duration::MAX);
        let mut news = now.beyond(&earlier);
        assert_eq!(news.count(), 2);
        assert_eq!(news.buckets().next(), Some((0.001, 1)));
        assert_eq!(earlier.beyond(&now), Latencies::default(), "nothing is less than nothing");
        news.add(&earlier);
        assert_eq!(news.counts, now.counts);
    }
}
