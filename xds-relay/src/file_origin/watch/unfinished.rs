//! What it tells of those who write files, how these look.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::file_origin::glance::Seen;

/// How many resources each file holds.
pub(super) type Counts = BTreeMap<PathBuf, usize>;

/// When something was last put into the directory of a file, or taken out of it, where that is known. If that directory is gone
/// it is the one around it that lost something.
pub(super) fn changed(file: &Path, top: &Path) -> Option<SystemTime> {
    let around = file.ancestors().skip(1).take_while(|around| around.starts_with(top));
    around.map(std::fs::metadata).find_map(Result::ok)?.modified().ok()
}

/// Whether a file looks like one whose writer is not done: it has lost more than half of what it held less than `pause`
/// ago. A part of a list is a list, so that it reads well; and who writes a file anew may remove it first.
///
/// `changed` says when a file was last removed from where this one was: of one that is gone nothing else is known.
pub(super) fn is_half_written(
    seen: Option<&Seen>,
    changed: &dyn Fn(&Path) -> Option<SystemTime>,
    before: &Counts,
    counts: &Counts,
    pause: Duration,
    now: SystemTime,
) -> bool {
    // A time to come is that of another clock: it says nothing against it.
    let lately = |at: Option<SystemTime>| at.is_some_and(|at| now.duration_since(at).unwrap_or_default() < pause);
    let written = |file| seen.and_then(|seen| seen.get(file)).and_then(|look| look.as_ref()?.written);
    before.iter().any(|(file, before)| match counts.get(file) {
        Some(count) => *count * 2 < *before && lately(written(file)),
        None => *before > 0 && lately(changed(file)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_origin::glance::Look;

    #[test]
    fn a_file_that_lost_most_of_what_it_held_a_moment_ago_is_looked_at_again() {
        let (now, second) = (SystemTime::now(), Duration::from_secs(1));
        let decide = |before: &[(&str, usize)], counts: &[(&str, usize)], written: SystemTime| {
            let seen = counts.iter().map(|(file, _)| (PathBuf::from(file), Some(Look::written(written)))).collect();
            is_half_written(Some(&seen), &|_| Some(now - second), &held(before), &held(counts), second, now)
        };
        let just_now = now - Duration::from_millis(999);
        assert!(decide(&[("a", 301), ("b", 1000)], &[("a", 150), ("b", 1000)], just_now), "each file for itself");
        assert!(decide(&[("a", 1)], &[("a", 0)], now), "an empty list");
        assert!(decide(&[("a", 3)], &[("a", 1)], now + second), "another clock");
        assert!(!decide(&[("a", 3)], &[("a", 1)], now - second), "quiet for a second");
        assert!(!decide(&[("a", 2)], &[("a", 1)], now), "half is left");
        assert!(!decide(&[("a", 2)], &[("a", 3)], now));
        assert!(!decide(&[], &[("a", 3)], now), "a new file");
    }

    #[test]
    fn a_file_that_vanished_a_moment_ago_is_looked_for_again() {
        let (now, second) = (SystemTime::now(), Duration::from_secs(1));
        let decide = |before: &[(&str, usize)], changed: Option<SystemTime>| {
            is_half_written(Some(&Seen::new()), &|_| changed, &held(before), &held(&[("b", 3)]), second, now)
        };
        assert!(decide(&[("a", 1), ("b", 3)], Some(now - Duration::from_millis(999))));
        assert!(decide(&[("a", 1)], Some(now + second)), "another clock");
        assert!(!decide(&[("a", 1)], Some(now - second)), "gone for a second");
        assert!(!decide(&[("a", 0), ("b", 3)], Some(now)), "it held nothing");
        assert!(!decide(&[("b", 3)], Some(now)), "something else came or went");
        assert!(!decide(&[("a", 1)], None), "nobody knows when");
    }

    #[cfg(unix)]
    #[test]
    fn what_a_file_was_taken_out_of_says_when_or_what_is_around_that() {
        let directory = tempfile::tempdir().unwrap();
        let sub = directory.path().join("sub");
        std::fs::create_dir(&sub).unwrap();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for (path, seconds) in [(sub.as_path(), 1), (directory.path(), 2)] {
            std::fs::File::open(path).unwrap().set_modified(at(seconds)).unwrap();
        }
        let of = |file: &str| changed(&directory.path().join(file), directory.path());
        assert_eq!([of("sub/a"), of("a"), of("gone/b/a")], [1, 2, 2].map(|seconds| Some(at(seconds))));
        assert_eq!(changed(&directory.path().join("a"), &directory.path().join("gone")), None);
    }

    fn held(held: &[(&str, usize)]) -> Counts {
        held.iter().map(|(file, count)| (PathBuf::from(file), *count)).collect()
    }
}
