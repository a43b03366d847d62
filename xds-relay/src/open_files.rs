//! How many files this process may have open, connections among them.

/// As many as are any use: more would be as many clients as one process should not have.
const ENOUGH: u64 = 65_536;

/// Takes what there is to be had without asking anybody, up to [`ENOUGH`]: many systems give a process 1024, and let it take more.
#[cfg(unix)]
pub(crate) fn take_more() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let more = more(limit.current, limit.maximum);
    if more != limit.current {
        let before = std::mem::replace(&mut limit.current, more);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!("no more files may be open than before: {error}");
            limit.current = before;
        }
    }
    let number = |of: Option<u64>| of.map_or("any number of".to_owned(), |of| of.to_string());
    tracing::info!("{} files may be open, connections among them (ulimit -n)", number(limit.current));
}

#[cfg(not(unix))]
pub(crate) fn take_more() {}

/// What is more than there is now, where it may be; none is any number.
#[cfg(unix)]
fn more(now: Option<u64>, most: Option<u64>) -> Option<u64> {
    let wanted = most.map_or(ENOUGH, |most| most.min(ENOUGH));
    now.map(|now| now.max(wanted))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_taken_as_are_any_use_and_none_is_given_back() {
        assert_eq!(more(Some(1024), Some(1 << 20)), Some(65_536));
        assert_eq!(more(Some(1024), Some(4096)), Some(4096));
        assert_eq!(more(Some(1024), None), Some(65_536));
        assert_eq!(more(Some(100_000), Some(1 << 20)), Some(100_000));
        assert_eq!(more(None, None), None);
    }
}
