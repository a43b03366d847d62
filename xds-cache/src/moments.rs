//! When something changed: as a number of changes, and as a time in four bytes, because there are as many as a cache has names,
//! and an `Option<Instant>` is four times that.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// One counter per cache: the moment of a change. 0 is before the first.
pub(crate) type Seq = u64;

/// Later than every change.
pub(crate) const NEVER: Seq = Seq::MAX;

/// Of so many milliseconds, one more than it is after the first: enough for 13 years.
pub(crate) type Moment = NonZeroU32;
const UNIT: u32 = 100;

/// What moments count from: the first time that there was one.
#[derive(Default)]
pub(crate) struct Moments(Option<Instant>);

impl Moments {
    /// What is before the first is the first.
    pub(crate) fn of(&mut self, time: Instant) -> Moment {
        let first = *self.0.get_or_insert(time);
        let after = time.saturating_duration_since(first).as_millis() / u128::from(UNIT);
        Moment::MIN.saturating_add(u32::try_from(after).unwrap_or(u32::MAX))
    }

    /// The time that it was made of, to a tenth of a second before.
    pub(crate) fn time(&self, moment: Moment) -> Option<Instant> {
        let after = Duration::from_millis(UNIT.into()).checked_mul(moment.get() - 1)?;
        self.0?.checked_add(after)
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
        let moment = moments.of(first);
        for after in [0, 100, 1000, 1000 << 18].map(Duration::from_millis) {
            let within = moments.of(first + after + Duration::from_millis(99));
            assert_eq!(moments.of(first + after), within);
            assert_eq!(moments.time(within), Some(first + after));
        }
        assert_eq!((moments.time(moment), Moments::default().time(moment)), (Some(first), None));
    }
}
