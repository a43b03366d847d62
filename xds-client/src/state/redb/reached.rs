//! What a file is known by from outside, as the engine does not: how far it had come, and which file it is.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::state::store::Revision;

/// The revision that a file came to, in another one beside it. That is not synced: after a loss of power it may be behind, and
/// never ahead.
#[derive(Debug)]
pub(super) struct Reached(Option<PathBuf>);

/// Which file it is, whatever its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileId(u64, u64);

impl Reached {
    pub(super) fn beside(path: &Path) -> Self {
        Self(Some(path.with_extension("revision")))
    }

    pub(super) fn nowhere() -> Self {
        Self(None)
    }

    pub(super) fn last(&self) -> Option<Revision> {
        fs::read_to_string(self.0.as_ref()?).ok()?.trim().parse().ok()
    }

    /// What cannot be noted is not: nothing is the worse for it, but for what is damaged later.
    pub(super) fn note(&self, revision: Revision) {
        if let Some(path) = &self.0 {
            let _ = fs::write(path, format!("{revision}\n"));
        }
    }

    pub(super) fn forget(&self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

impl FileId {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|there| Self::read(&there))
    }

    /// Whether this is the file at a path.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|there| Self::read(&there) == *self)
    }

    #[cfg(unix)]
    fn read(there: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self(there.dev(), there.ino())
    }

    /// A file that is open stays where it is.
    #[cfg(not(unix))]
    fn read(_: &fs::Metadata) -> Self {
        Self(0, 0)
    }
}
