//! How long is waited for what may be slow.

use std::time::Duration;

/// Nobody waits longer for having waited more often.
const MOST_STEPS: u32 = 12;

/// After so many times that it was not long enough: twice as long each time.
pub(super) fn after(first: Duration, late: u32) -> Duration {
    first.saturating_mul(1 << late.min(MOST_STEPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_twice_as_long_each_time_and_has_an_end() {
        let seconds = |late| after(Duration::from_secs(2), late).as_secs();
        assert_eq!([0, 1, 2, 3, 12, 13, u32::MAX].map(seconds), [2, 4, 8, 16, 8192, 8192, 8192]);
        assert_eq!(after(Duration::MAX, 1), Duration::MAX);
    }
}
