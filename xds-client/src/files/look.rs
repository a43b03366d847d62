//! What is seen of a file, and whether it may be.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file with more is not configuration.
const MAX_BYTES: u64 = 64 << 20;
/// Within so much of its last change a file may change again without looking any different.
const COARSE: Duration = Duration::from_secs(2);

/// The directories that files may be in.
#[derive(Debug)]
pub(super) struct Roots(pub(super) Vec<PathBuf>);

/// A file as it is without being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// All links followed.
    path: PathBuf,
    length: u64,
    modified: Option<SystemTime>,
    /// Which file it is, where files have numbers: another may have taken its place.
    number: u64,
}

impl Roots {
    /// What is at a path.
    ///
    /// # Errors
    /// Why it cannot be read, or may not be.
    pub(super) fn look(&self, path: &Path) -> Result<Seen, String> {
        // Whether a file is there that may not be read is nobody's to know.
        let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        // One that leads through a link is the directory that it leads to.
        let real_roots: Vec<_> = self.0.iter().filter_map(|root| root.canonicalize().ok()).collect();
        let is_in = |path: &Path, roots: &[PathBuf]| roots.iter().any(|root| path.starts_with(root));
        let refused = || "it is not in a directory of which files are read".to_owned();
        if !is_plain || !(is_in(path, &self.0) || is_in(path, &real_roots)) {
            return Err(refused());
        }
        let real = path.canonicalize().map_err(said)?;
        if !is_in(&real, &real_roots) {
            return Err(refused());
        }
        let metadata = real.metadata().map_err(said)?;
        if !metadata.is_file() {
            return Err("it is no file".to_owned());
        }
        let (length, modified, number) = (metadata.len(), metadata.modified().ok(), number(&metadata));
        Ok(Seen { path: real, length, modified, number })
    }
}

impl Seen {
    /// Its content.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) fn read(&self) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        File::open(&self.path).map_err(said)?.take(MAX_BYTES + 1).read_to_end(&mut content).map_err(said)?;
        if content.len() as u64 > MAX_BYTES {
            return Err(format!("it has more than {MAX_BYTES} bytes"));
        }
        Ok(content)
    }

    /// Whether it may have changed since, though it looks like this: its time is that of a clock that stands still for a while.
    pub(super) fn may_have_changed(&self, wall: SystemTime) -> bool {
        self.modified.is_none_or(|modified| wall.duration_since(modified).unwrap_or_default() < COARSE)
    }
}

/// In the same words wherever it is.
fn said(error: std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(unix)]
fn number(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn number(_: &Metadata) -> u64 {
    0
}
