//! When what a scope has is a release.

use std::time::{Duration, Instant};

/// How often the quiet time may pass while there are changes: an origin that never rests is released, too.
const AT_MOST: u32 = 10;

/// Says when a scope has settled: nothing changed for a while, or it never rests. It has no clock: every call says when it is, and
/// [`handle_timeout`](Self::handle_timeout) is to be called at [`poll_timeout`](Self::poll_timeout).
///
/// ```
/// use std::time::{Duration, Instant};
/// use xds_relay::releases::Settling;
///
/// let (quiet, start) = (Duration::from_secs(2), Instant::now());
/// let mut settling = Settling::new(quiet);
/// settling.changed(start);
/// settling.changed(start + quiet / 2);
/// assert!(!settling.handle_timeout(start + quiet));
/// assert_eq!(settling.poll_timeout(), Some(start + quiet / 2 + quiet));
/// assert!(settling.handle_timeout(start + 2 * quiet));
/// assert_eq!(settling.poll_timeout(), None);
/// ```
#[derive(Clone, Debug)]
pub struct Settling {
    quiet: Duration,
    /// The first change that is in no release yet, and the last.
    since: Option<(Instant, Instant)>,
}

impl Settling {
    /// It settles when nothing changed for as long as that; at the latest ten times that after the first change.
    pub fn new(quiet: Duration) -> Self {
        Self { quiet, since: None }
    }

    /// Something of the scope changed.
    pub fn changed(&mut self, now: Instant) {
        let first = self.since.map_or(now, |(first, _)| first);
        self.since = Some((first, now));
    }

    /// When it will have settled if nothing changes; none if nothing has.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (first, last) = self.since?;
        // What cannot be reckoned is now: a release too many is no harm.
        let quiet = last.checked_add(self.quiet).unwrap_or(last);
        let latest = self.quiet.checked_mul(AT_MOST).and_then(|most| first.checked_add(most));
        Some(latest.map_or(quiet, |latest| quiet.min(latest)))
    }

    /// Whether it has settled: what there is now is a release, and what changes from now on is of the next.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        let is_due = self.poll_timeout().is_some_and(|due| due <= now);
        if is_due {
            self.since = None;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes at every `step`, and when each release is taken.
    fn releases(quiet: u64, changes: impl IntoIterator<Item = u64>, until: u64) -> Vec<u64> {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut settling = Settling::new(Duration::from_millis(quiet));
        let mut changes = changes.into_iter().peekable();
        let mut taken = Vec::new();
        for now in 0..=until {
            if settling.handle_timeout(at(now)) {
                taken.push(now);
            }
            while changes.next_if_eq(&now).is_some() {
                settling.changed(at(now));
            }
        }
        taken
    }

    #[test]
    fn it_settles_once_it_was_quiet_for_long_enough() {
        assert_eq!(releases(20, [], 100), [0_u64; 0]);
        assert_eq!(releases(20, [3], 100), [23]);
        assert_eq!(releases(20, [3, 13, 32], 100), [52]);
        assert_eq!(releases(20, [3, 13, 40], 100), [33, 60]);
        assert_eq!(releases(0, [3, 4], 100), [4, 5]);
    }

    #[test]
    fn what_never_rests_settles_after_ten_times_that() {
        assert_eq!(releases(20, (0..500).step_by(10), 460), [200, 400]);
        assert_eq!(releases(20, 0..500, 460), [200, 400]);
    }

    #[test]
    fn a_time_beyond_all_clocks_is_no_error() {
        let mut settling = Settling::new(Duration::MAX);
        let now = Instant::now();
        settling.changed(now);
        assert_eq!(settling.poll_timeout(), Some(now));
    }
}
