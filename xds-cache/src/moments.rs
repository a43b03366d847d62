//! Times in eight bytes: there are as many as a cache has names, and an `Option<Instant>` is twice that.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// One nanosecond more than it is after the first.
pub(crate) type Moment = NonZeroU64;

/// What moments count from: the first time that there was one.
#[derive(Default)]
pub(crate) struct Moments(Option<Instant>);

impl Moments {
    /// What is before the first is the first.
    pub(crate) fn of(&mut self, time: Instant) -> Moment {
        let first = *self.0.get_or_insert(time);
        let after = u64::try_from(time.saturating_duration_since(first).as_nanos()).unwrap_or(u64::MAX);
        Moment::MIN.saturating_add(after)
    }

    pub(crate) fn time(&self, moment: Moment) -> Option<Instant> {
        self.0?.checked_add(Duration::from_nanos(moment.get() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_the_time_it_was_made_of() {
        let mut moments = Moments::default();
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let first = Instant::now();
        for after in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(1 << 32)] {
            let moment = moments.of(first + after);
            assert_eq!(moments.time(moment), Some(first + after));
        }
        let moment = moments.of(first);
        let later = Moments::default().time(moment);
        assert_eq!((moments.time(moment), later), (Some(first), None));
    }
}
