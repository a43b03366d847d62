//! The configuration's file, read again while the relay runs: on SIGHUP, and when it changed.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use xds_relay::{Config, Reloader};

/// How often the file is looked at. What two looks in a row find is read: a file may be written in several steps, and what
/// there is of it in between may be a configuration, too.
const LOOK: Duration = Duration::from_secs(1);

/// Reads the file again for as long as it is awaited. What it says is not good changes nothing.
pub(crate) async fn follow<E>(
    file: PathBuf,
    load: impl Fn() -> Result<Config, E> + Clone + Send + 'static,
    started_with: Config,
    reloader: Reloader,
    place: impl Fn(xds_relay::Error) -> E,
    mut hangup: impl AsyncFnMut(),
) where
    E: std::error::Error + Send + 'static,
{
    let mut looks = Looks::new(started_with);
    loop {
        let asked = tokio::select! {
            () = hangup() => true,
            () = sleep(LOOK) => false,
        };
        let (load, file, known) = (load.clone(), file.clone(), looks.known_stamp());
        // A disk may not answer.
        let looked = spawn_blocking(move || {
            let stamp = stamp(&file);
            // Nobody has written there since it was read.
            (asked || stamp.is_none() || stamp != known).then(|| (stamp, load()))
        });
        let Ok(Some((stamp, found))) = looked.await else { continue };
        let is_due = looks.find(stamp, found.as_ref().map_err(ToString::to_string));
        if !asked && !is_due {
            continue;
        }
        if asked {
            tracing::info!("SIGHUP: the configuration is read again");
        }
        let failed = match found {
            Ok(config) => {
                let (reloader, applying) = (reloader.clone(), config.clone());
                match spawn_blocking(move || reloader.apply(applying)).await {
                    Ok(Ok(_)) => {
                        looks.applied(config);
                        None
                    }
                    Ok(Err(error)) => Some(place(error)),
                    Err(error) => {
                        tracing::error!("the configuration was not read again: {error}");
                        continue;
                    }
                }
            }
            Err(error) => Some(error),
        };
        if let Some(error) = failed {
            looks.failed();
            if asked { reloader.refuse_asked(&error) } else { reloader.refuse(&error) }
        }
    }
}

/// When a file was written, and which it is.
type Stamp = (SystemTime, u64, u64);

fn stamp(file: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(file).ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let number = 0;
    Some((metadata.modified().ok()?, metadata.len(), number))
}

/// What looks at a file found.
struct Looks {
    /// The last look, and whether the one before it found the same.
    last: Option<Result<Config, String>>,
    /// When the file was written that two looks found the same in, which counts.
    stamp: Option<Stamp>,
    applied: Config,
    failed: bool,
}

impl Looks {
    fn new(applied: Config) -> Self {
        Self { last: None, stamp: None, applied, failed: false }
    }

    /// The file that need not be read again.
    fn known_stamp(&self) -> Option<Stamp> {
        self.stamp.filter(|_| !self.failed)
    }

    /// Whether what was found is to count: two looks found it, and it does not count yet.
    fn find(&mut self, stamp: Option<Stamp>, found: Result<&Config, impl Display>) -> bool {
        let found = found.cloned().map_err(|error| error.to_string());
        let settled = self.last.as_ref() == Some(&found);
        let counts = !self.failed && found.as_ref().is_ok_and(|config| *config == self.applied);
        self.stamp = stamp.filter(|_| settled && counts);
        self.last = Some(found);
        settled && !counts
    }

    fn applied(&mut self, config: Config) {
        (self.applied, self.failed) = (config, false);
    }

    /// It is tried again: a file that it names may be good by then.
    fn failed(&mut self) {
        self.failed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(linger: &str) -> Config {
        Config::parse("relay.yaml", &format!("origins: [{{ name: a, server: 'a:1' }}]\nlinger: {linger}")).unwrap()
    }

    const NOT_GOOD: Result<&Config, &str> = Err("it is not good");

    #[test]
    fn what_two_looks_find_counts_once() {
        let (first, second) = (config("1s"), config("2s"));
        let mut looks = Looks::new(first.clone());
        let mut find = |found: &Config| looks.find(None, Ok::<_, String>(found));
        assert_eq!([find(&first), find(&first)], [false; 2], "it counts from the start");
        assert_eq!([find(&second), find(&first), find(&first)], [false; 3], "half of it was written");
        assert_eq!([find(&second), find(&second)], [false, true]);
        looks.applied(second.clone());
        assert!(!looks.find(None, Ok::<_, String>(&second)));
    }

    #[test]
    fn what_is_not_good_is_tried_again_and_what_counts_is_what_is_good_by_then() {
        let first = config("1s");
        let mut looks = Looks::new(first.clone());
        assert!(!looks.find(None, NOT_GOOD));
        assert!(looks.find(None, NOT_GOOD));
        looks.failed();
        assert!(looks.find(None, NOT_GOOD), "a file that it names may be there now");
        assert!(!looks.find(None, Ok::<_, String>(&first)));
        assert!(looks.find(None, Ok::<_, String>(&first)), "that nothing is wrong any more is said, too");
        looks.applied(first.clone());
        assert!(!looks.find(None, Ok::<_, String>(&first)));
    }

    #[test]
    fn a_file_is_not_read_again_once_all_that_it_says_counts() {
        let (first, second) = (config("1s"), config("2s"));
        let stamp = |second| Some((SystemTime::UNIX_EPOCH + Duration::from_secs(second), 1, 1));
        let mut looks = Looks::new(first.clone());
        looks.find(stamp(1), Ok::<_, String>(&first));
        assert_eq!(looks.known_stamp(), None, "it may have been written while it was read");
        looks.find(stamp(1), Ok::<_, String>(&first));
        assert_eq!(looks.known_stamp(), stamp(1));
        looks.find(stamp(2), Ok::<_, String>(&second));
        assert_eq!(looks.known_stamp(), None);
        looks.find(stamp(2), NOT_GOOD);
        looks.failed();
        assert_eq!(looks.known_stamp(), None);
    }
}
