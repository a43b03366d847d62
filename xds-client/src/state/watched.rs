//! Whether a disk answers: who waits for it cannot say so.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::federation::lock;

/// How long it may take.
const LONG: Duration = Duration::from_secs(5);

/// Something that is done to it.
#[derive(Debug, Default)]
pub(crate) struct Watched(Mutex<Doing>);

#[derive(Debug, Default)]
struct Doing {
    since: Option<Instant>,
    said: bool,
}

/// It is being done; not for the first time, if that is being done already.
pub(crate) struct Busy<'a>(&'a Watched, bool);

impl Watched {
    pub(crate) fn begin(&self, now: Instant) -> Busy<'_> {
        let since = &mut lock(&self.0).since;
        let is_first = since.is_none();
        since.get_or_insert(now);
        Busy(self, is_first)
    }

    /// To be called every second or so: says once that it takes long.
    pub(crate) fn look(&self, now: Instant) {
        let doing = &mut *lock(&self.0);
        let long = doing.since.is_some_and(|since| now.saturating_duration_since(since) >= LONG);
        if long && !std::mem::replace(&mut doing.said, true) {
            tracing::error!("nothing is kept: the disk has not answered for {} s", LONG.as_secs());
        }
    }

    /// Whether that was said.
    pub(crate) fn hangs(&self) -> bool {
        lock(&self.0).said
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if !self.1 {
            return;
        }
        let doing = &mut *lock(&self.0.0);
        doing.since = None;
        if std::mem::take(&mut doing.said) {
            tracing::info!("the disk answers again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_hangs_that_does_not_answer_for_long_until_it_does() {
        let (watched, now) = (Watched::default(), Instant::now());
        let hangs = |after: u64| {
            watched.look(now + Duration::from_secs(after));
            watched.hangs()
        };
        assert!(!hangs(100));
        let busy = watched.begin(now);
        drop(watched.begin(now + Duration::from_secs(3)));
        assert!(!hangs(4) && hangs(5) && hangs(6));
        drop(busy);
        assert!(!hangs(100));
    }
}
