//! Opening what is kept in a directory: whatever is wrong with it, it is said, and the program runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::state::format::Moment;
use crate::state::identity::Identities;
use crate::state::kept::{Opened, Opener, State, WasRead};
use crate::state::keys::Keys;
use crate::state::redb::Redb;
use crate::state::store::StoreError;

/// How long a process that is ending may have the file still.
const LOCKED: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(50);
const FILE: &str = "state.redb";
/// What could not be read, the last time that was so.
const ASIDE: &str = "state.redb.aside";

impl State {
    /// What is kept in a file of [`Redb`] in a directory, which is made if it is not there. It is opened by
    /// [`open_now`](Self::open_now) or [`keep`](Self::keep). What cannot be read is put aside, and said.
    pub fn in_directory(directory: impl Into<PathBuf>, identities: Identities, keys: Option<Arc<Keys>>) -> Self {
        let (directory, said) = (directory.into(), AtomicBool::new(false));
        let opener: Opener = Box::new(move |identities, at, was_read| {
            let opening = Opens { identities, keys: keys.clone(), at, said: &said };
            opening.read(&directory, was_read)
        });
        Self::opened_by(opener, identities, Moment::of_the_system())
    }

    /// Opens it, if it is not open: it takes as long as the disk takes.
    pub fn open_now(&self) {
        self.try_open(Moment::of_the_system());
    }
}

/// What it takes to open a file.
struct Opens<'a> {
    identities: &'a Identities,
    keys: Option<Arc<Keys>>,
    at: Moment,
    /// That another process is waited for, which is said once.
    said: &'a AtomicBool,
}

impl Opens<'_> {
    fn opened(&self, store: Redb) -> Result<Opened, StoreError> {
        Opened::of(Arc::new(store), self.identities, self.keys.clone(), self.at)
    }

    fn read(&self, directory: &Path, was_read: WasRead) -> Result<Opened, StoreError> {
        private_directory(directory)?;
        let (file, aside) = (directory.join(FILE), directory.join(ASIDE));
        match self.read_file(&file) {
            Err(error @ (StoreError::Corrupt(_) | StoreError::Format(_))) => {
                fs::rename(&file, &aside)?;
                tracing::error!(file = %file.display(), aside = %aside.display(), "it was put aside: {error}");
                self.read_file(&file)
            }
            // What may not be written may be good.
            Err(StoreError::Io(error)) if !was_read && is_full_or_closed(&error) && file.exists() => {
                let opened = self.opened(Redb::read_only(&file)?)?;
                Ok(Opened { store: Err(StoreError::Io(error)), ..opened })
            }
            other => other,
        }
    }

    fn read_file(&self, file: &Path) -> Result<Opened, StoreError> {
        let until = Instant::now() + LOCKED;
        loop {
            match Redb::open(file) {
                Err(StoreError::Locked) if Instant::now() < until => {
                    if !self.said.swap(true, Ordering::Relaxed) {
                        let seconds = LOCKED.as_secs();
                        tracing::warn!(file = %file.display(), "another process has it: it is waited for, at most {seconds} s");
                    }
                    std::thread::sleep(RETRY);
                }
                opened => {
                    let store = opened?;
                    let went_back = store.went_back();
                    let mut opened = self.opened(store)?;
                    if let Some((is, was)) = went_back {
                        opened.read.damaged += 1;
                        tracing::error!(
                            file = %file.display(),
                            "it is older than it was: {} of {was} commits are lost, and what is served of it may be older, too",
                            was - is
                        );
                    }
                    return Ok(opened);
                }
            }
        }
    }
}

fn is_full_or_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), ReadOnlyFilesystem | PermissionDenied | StorageFull | QuotaExceeded | FileTooLarge)
}

/// There are keys in what clients are sent.
fn private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if fs::metadata(directory)?.permissions().mode() & 0o022 != 0 {
            let directory = directory.display();
            tracing::warn!(%directory, "others may write there, and so say what clients are served: expected mode 700");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::store::{Op, Store as _};

    #[test]
    fn what_may_not_be_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE);
        let _ = Redb::open(&file).unwrap().commit(&[Op::put("a", "1")], &[]).unwrap();
        let before = fs::read(&file).unwrap();
        let store = Redb::read_only(&file).unwrap();
        assert_eq!(store.list("").unwrap().entries[0].value, "1");
        drop(store);
        assert_eq!(fs::read(&file).unwrap(), before);
        fs::write(&file, "no database").unwrap();
        assert!(matches!(Redb::read_only(&file), Err(StoreError::Corrupt(_))));
    }

    #[test]
    fn only_what_is_closed_or_full_is_only_read() {
        for (number, is_so) in [(13, true), (27, true), (28, true), (30, true), (5, false), (2, false)] {
            assert_eq!(is_full_or_closed(&io::Error::from_raw_os_error(number)), is_so, "{number}");
        }
        let identities = Identities::new(vec![Some("a".to_owned())], None, String::new());
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(FILE)).unwrap();
        assert!(matches!(
            Opens { identities: &identities, keys: None, at: Moment::of_the_system(), said: &AtomicBool::new(false) }
                .read(directory.path(), false),
            Err(StoreError::Io(_))
        ));
    }
}
