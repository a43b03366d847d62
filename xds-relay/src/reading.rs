//! The configuration's file, read again while the relay runs: on SIGHUP, and when it changed.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use xds_relay::{Config, ReadOnce, Reloader};

/// How often the file is looked at. What two looks in a row find is read: a file may be written in several steps, and what
/// there is of it in between may be a configuration, too.
const LOOK: Duration = Duration::from_secs(1);

/// Reads the file again for as long as it is awaited. What it says is not good changes nothing.
pub(crate) async fn follow<E>(
    mut looks: Looks,
    load: impl Fn() -> Result<Config, E> + Clone + Send + 'static,
    reloader: Reloader,
    place: impl Fn(xds_relay::Error) -> E,
    mut hangup: impl AsyncFnMut(),
) where
    E: std::error::Error + Send + 'static,
{
    loop {
        let asked = tokio::select! {
            () = hangup() => true,
            () = sleep(LOOK) => false,
        };
        let (load, files, known) = (load.clone(), looks.files(), looks.known_stamps());
        // A disk may not answer.
        let looked = spawn_blocking(move || {
            let stamps = stamps(&files);
            // Nobody has written there since they were read.
            let is_known = stamps.first().is_some_and(Option::is_some) && known.as_ref() == Some(&stamps);
            (asked || !is_known).then(|| (stamps, load().map(Found::of)))
        });
        let Ok(Some((stamps, found))) = looked.await else { continue };
        let is_due = looks.find(stamps, found.as_ref().map_err(ToString::to_string));
        if !asked && !is_due {
            continue;
        }
        if asked {
            tracing::info!("SIGHUP: the configuration is read again");
        }
        let failed = match found {
            Ok(found) => {
                let (reloader, applying) = (reloader.clone(), found.config.clone());
                match spawn_blocking(move || reloader.apply(applying)).await {
                    Ok(Ok(_)) => {
                        looks.applied(found);
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

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    files.iter().map(|file| stamp(file)).collect()
}

/// What the file says, and what is in those that it names and that are not followed otherwise.
#[derive(Clone, PartialEq)]
struct Found {
    config: Config,
    read_once: ReadOnce,
}

impl Found {
    fn of(config: Config) -> Self {
        Self { read_once: ReadOnce::of(&config), config }
    }
}

/// What looks at a file found.
pub(crate) struct Looks {
    file: PathBuf,
    /// The last look, and whether the one before it found the same.
    last: Option<Result<Found, String>>,
    /// When the files were written that two looks found the same in, which counts.
    stamps: Option<Vec<Option<Stamp>>>,
    applied: Found,
    failed: bool,
}

impl Looks {
    /// At a file that counts as it is.
    pub(crate) fn new(file: PathBuf, applied: Config) -> Self {
        Self { file, last: None, stamps: None, applied: Found::of(applied), failed: false }
    }

    /// Those that are looked at: the file itself is the first.
    fn files(&self) -> Vec<PathBuf> {
        let named = self.applied.read_once.files().map(Path::to_owned);
        std::iter::once(self.file.clone()).chain(named).collect()
    }

    /// The files that need not be read again.
    fn known_stamps(&self) -> Option<Vec<Option<Stamp>>> {
        self.stamps.clone().filter(|_| !self.failed)
    }

    /// Whether what was found is to count: two looks found it, and it does not count yet.
    fn find(&mut self, stamps: Vec<Option<Stamp>>, found: Result<&Found, impl Display>) -> bool {
        let found = found.cloned().map_err(|error| error.to_string());
        let settled = self.last.as_ref() == Some(&found);
        let counts = !self.failed && found.as_ref().is_ok_and(|found| *found == self.applied);
        self.stamps = Some(stamps).filter(|_| settled && counts);
        self.last = Some(found);
        settled && !counts
    }

    fn applied(&mut self, found: Found) {
        (self.applied, self.failed) = (found, false);
    }

    /// It is tried again: a file that it names may be good by then.
    fn failed(&mut self) {
        self.failed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(linger: &str) -> Found {
        let text = format!("origins: [{{ name: a, server: 'a:1' }}]\nlinger: {linger}");
        Found::of(Config::parse("relay.yaml", &text).unwrap())
    }

    fn looks(found: &Found) -> Looks {
        Looks::new("relay.yaml".into(), found.config.clone())
    }

    const NOT_GOOD: Result<&Found, &str> = Err("it is not good");

    #[test]
    fn what_two_looks_find_counts_once() {
        let (first, second) = (config("1s"), config("2s"));
        let mut looks = looks(&first);
        let mut find = |found: &Found| looks.find(vec![], Ok::<_, String>(found));
        assert_eq!([find(&first), find(&first)], [false; 2], "it counts from the start");
        assert_eq!([find(&second), find(&first), find(&first)], [false; 3], "half of it was written");
        assert_eq!([find(&second), find(&second)], [false, true]);
        looks.applied(second.clone());
        assert!(!looks.find(vec![], Ok::<_, String>(&second)));
    }

    #[test]
    fn what_is_not_good_is_tried_again_and_what_counts_is_what_is_good_by_then() {
        let first = config("1s");
        let mut looks = looks(&first);
        assert!(!looks.find(vec![], NOT_GOOD));
        assert!(looks.find(vec![], NOT_GOOD));
        looks.failed();
        assert!(looks.find(vec![], NOT_GOOD), "a file that it names may be there now");
        assert!(!looks.find(vec![], Ok::<_, String>(&first)));
        assert!(looks.find(vec![], Ok::<_, String>(&first)), "that nothing is wrong any more is said, too");
        looks.applied(first.clone());
        assert!(!looks.find(vec![], Ok::<_, String>(&first)));
    }

    #[test]
    fn a_file_is_not_read_again_once_all_that_it_says_counts() {
        let (first, second) = (config("1s"), config("2s"));
        let stamp = |second| vec![Some((SystemTime::UNIX_EPOCH + Duration::from_secs(second), 1, 1))];
        let mut looks = looks(&first);
        looks.find(stamp(1), Ok::<_, String>(&first));
        assert_eq!(looks.known_stamps(), None, "it may have been written while it was read");
        looks.find(stamp(1), Ok::<_, String>(&first));
        assert_eq!(looks.known_stamps(), Some(stamp(1)));
        looks.find(stamp(2), Ok::<_, String>(&second));
        assert_eq!(looks.known_stamps(), None);
        looks.find(stamp(2), NOT_GOOD);
        looks.failed();
        assert_eq!(looks.known_stamps(), None);
    }

    #[test]
    fn files_that_are_read_at_the_start_alone_are_looked_at_too() {
        let directory = tempfile::tempdir().unwrap();
        let (file, rules) = (directory.path().join("relay.yaml"), directory.path().join("rules.yaml"));
        let found = |content: &str| {
            fs::write(&rules, content).unwrap();
            let text = "origins: [{ name: a, server: 'a:1' }]\naggregation: rules.yaml";
            Found::of(Config::parse(&file, text).unwrap())
        };
        let (first, second) = (found("first"), found("second"));
        fs::write(&rules, "first").unwrap();
        let mut looks = Looks::new(file.clone(), first.config.clone());
        assert_eq!(looks.files(), [file.clone(), rules.clone()]);
        let stamp = |second| vec![Some((SystemTime::UNIX_EPOCH, 1, 1)), Some((SystemTime::UNIX_EPOCH, second, 1))];
        let mut find =
            |second, found: &Found| (looks.find(stamp(second), Ok::<_, String>(found)), looks.known_stamps());
        assert_eq!(find(1, &first), (false, None));
        assert_eq!(find(1, &first), (false, Some(stamp(1))), "nothing is new in either");
        assert_eq!(find(2, &second), (false, None));
        assert_eq!(find(2, &second), (true, None), "the rules are others");
        looks.applied(second.clone());
        assert!(!looks.find(stamp(2), Ok::<_, String>(&second)));
    }
}
