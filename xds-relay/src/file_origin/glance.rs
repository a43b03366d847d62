//! What can be seen of files without reading them.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::PathBuf;
use std::time::SystemTime;

/// How files look; `None` where their directory is missing.
pub(super) type Glance = Option<Seen>;

/// How each file looks, where that is known.
pub(super) type Seen = BTreeMap<PathBuf, Option<Look>>;

/// What the system says of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    length: u64,
    /// When its content was, where that is known.
    pub(super) written: Option<SystemTime>,
    /// Device, inode, and when anything of it changed, as far as the system knows files by them: a link that leads elsewhere may
    /// lead to a file of the same length and time, such as those of an image that is built to be the same each time.
    which: (u64, u64, i64, i64),
}

pub(super) fn glance(files: Vec<PathBuf>) -> Seen {
    let look = |file: PathBuf| {
        let metadata = std::fs::metadata(&file).ok();
        (file, metadata.as_ref().map(Look::of))
    };
    files.into_iter().map(look).collect()
}

impl Look {
    fn of(metadata: &Metadata) -> Self {
        Self { length: metadata.len(), written: metadata.modified().ok(), which: which(metadata) }
    }

    #[cfg(test)]
    pub(super) fn written(at: SystemTime) -> Self {
        Self { written: Some(at), ..Self::default() }
    }
}

#[cfg(unix)]
fn which(metadata: &Metadata) -> (u64, u64, i64, i64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn which(_: &Metadata) -> (u64, u64, i64, i64) {
    Default::default()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_link_that_leads_to_a_file_of_the_same_length_and_time_is_seen_to_lead_elsewhere() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for (revision, text) in [("v1", "one"), ("v2", "two")] {
            fs::create_dir(path(revision)).unwrap();
            let file = path(revision).join("a.yaml");
            fs::write(&file, text).unwrap();
            File::open(file).unwrap().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
        }
        let seen = || glance(vec![path("now/a.yaml")]);
        symlink("v1", path("now")).unwrap();
        let before = seen();
        assert_eq!(before, seen());
        symlink("v2", path("next")).unwrap();
        fs::rename(path("next"), path("now")).unwrap();
        assert_ne!(before, seen());
    }
}
