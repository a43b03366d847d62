//! Which files of a directory hold resources.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::error::FileError;

const EXTENSIONS: &[&str] = &["yaml", "yml", "json"];
/// How deep directories may be within each other.
const MAX_DEPTH: usize = 16;
/// How many there may be: each is watched by itself.
const MAX_DIRECTORIES: usize = 1000;
/// How many files there may be in all of them.
const MAX_FILES: usize = 100_000;

/// The files of a directory that hold resources, as [`load`](super::load()) reads them, in the order of their names.
///
/// ```
/// use xds_relay::file_origin::resource_files;
///
/// let directory = tempfile::tempdir()?;
/// for name in ["b.yaml", "a.json", ".hidden.yaml", "README.md"] {
///     std::fs::write(directory.path().join(name), "")?;
/// }
/// let files = resource_files(directory.path())?;
/// assert_eq!(files, ["a.json", "b.yaml"].map(|name| directory.path().join(name)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The directory cannot be read.
pub fn resource_files(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    list(directory, false).map(|listing| listing.files)
}

/// What is in a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// Those with resources, in the order of their paths.
    pub(super) files: Vec<PathBuf>,
    /// The directory, and those below it if they were looked for.
    pub(super) directories: BTreeSet<PathBuf>,
}

/// Looks for the files of a directory and, where that is asked for, of those below it.
///
/// # Errors
/// A directory cannot be read, a link leads nowhere, or there is more than the bounds allow.
pub(super) fn list(directory: &Path, with_directories: bool) -> Result<Listing, FileError> {
    let mut listing = Listing::default();
    visit(directory, &mut Within { with_directories, above: Vec::new() }, &mut listing)?;
    listing.files.sort_unstable();
    Ok(listing)
}

struct Within {
    with_directories: bool,
    /// The directories that one is within, without links.
    above: Vec<PathBuf>,
}

fn visit(directory: &Path, within: &mut Within, listing: &mut Listing) -> Result<(), FileError> {
    let refused = |reason: String| Err(FileError::of_file(directory, reason));
    let unreadable = |error: io::Error| FileError::of_file(directory, error.to_string());
    if within.with_directories {
        let itself = std::fs::canonicalize(directory).map_err(unreadable)?;
        // A link to what is above: all that is there is read already.
        if within.above.contains(&itself) {
            return Ok(());
        }
        within.above.push(itself);
    }
    listing.directories.insert(directory.to_owned());
    if within.above.len() > MAX_DEPTH + 1 {
        return refused(format!("more than {MAX_DEPTH} directories within each other"));
    }
    if listing.directories.len() > MAX_DIRECTORIES {
        return refused(format!("more than {MAX_DIRECTORIES} directories"));
    }
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b".")) {
            continue;
        }
        if within.with_directories && is_directory(&path)? {
            visit(&path, within, listing)?;
        } else if path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known)) {
            // A link that leads nowhere, or a directory, is kept: reading it says so.
            listing.files.push(path);
        }
        if within.with_directories && listing.files.len() > MAX_FILES {
            return refused(format!("more than {MAX_FILES} files"));
        }
    }
    within.above.pop();
    Ok(())
}

/// What a link that leads nowhere would lead to nobody knows: it may be a directory whose resources are not gone.
fn is_directory(path: &Path) -> Result<bool, FileError> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(metadata.is_dir()),
        // Nothing is left of it.
        Err(error) if error.kind() == io::ErrorKind::NotFound && std::fs::symlink_metadata(path).is_err() => Ok(false),
        Err(error) => Err(FileError::of_file(path, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn listed(directory: &Path) -> Result<Vec<String>, String> {
        let relative = |file: &PathBuf| file.strip_prefix(directory).unwrap().display().to_string();
        let listing = list(directory, true).map_err(|error| {
            let file = error.file.strip_prefix(directory).unwrap().display().to_string();
            format!("{file}: {}", error.reason)
        })?;
        Ok(listing.files.iter().map(relative).collect())
    }

    #[test]
    fn the_files_of_all_directories_are_in_the_order_of_their_paths() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["b/c", "a", ".hidden", "..data", "b.yaml"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        for name in [
            "b/c/z.yaml",
            "b/a.yml",
            "c.yaml",
            "a/1.json",
            "a/1.txt",
            ".hidden/x.yaml",
            "..data/x.yaml",
            "b.yaml/y.yaml",
        ] {
            fs::write(path(name), "").unwrap();
        }
        assert_eq!(listed(directory.path()).unwrap(), ["a/1.json", "b/a.yml", "b/c/z.yaml", "b.yaml/y.yaml", "c.yaml"]);
        let flat: Vec<_> = resource_files(directory.path()).unwrap();
        assert_eq!(flat, ["b.yaml", "c.yaml"].map(path), "a directory that is called as a file is told as one");
        let listing = list(directory.path(), true).unwrap();
        let directories = ["", "a", "b", "b/c", "b.yaml"].map(path);
        assert_eq!(listing.directories, BTreeSet::from(directories));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_but_not_in_circles() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir_all(path("..1/sub/deep")).unwrap();
        fs::write(path("..1/sub/a.yaml"), "").unwrap();
        symlink("..1", path("..data")).unwrap();
        symlink("..data/sub", path("sub")).unwrap();
        symlink("..", path("..1/sub/deep/up")).unwrap();
        symlink(directory.path(), path("..1/sub/deep/top")).unwrap();
        assert_eq!(listed(directory.path()).unwrap(), ["sub/a.yaml"]);

        symlink("nowhere", path("gone")).unwrap();
        let error = listed(directory.path()).unwrap_err();
        assert!(error.starts_with("gone: No such file"), "{error}");
    }

    #[test]
    fn depth_and_number_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let deepest: PathBuf = (0..MAX_DEPTH).map(|_| "d").collect();
        fs::create_dir_all(directory.path().join(&deepest)).unwrap();
        fs::write(directory.path().join(&deepest).join("a.yaml"), "").unwrap();
        assert_eq!(listed(directory.path()).unwrap().len(), 1);
        fs::create_dir(directory.path().join(&deepest).join("d")).unwrap();
        let error = listed(directory.path()).unwrap_err();
        assert_eq!(error, format!("{}/d: more than 16 directories within each other", deepest.display()));

        let directory = tempfile::tempdir().unwrap();
        for number in 1..MAX_DIRECTORIES {
            fs::create_dir(directory.path().join(number.to_string())).unwrap();
        }
        assert_eq!(listed(directory.path()).unwrap(), [""; 0]);
        fs::create_dir(directory.path().join("more")).unwrap();
        assert!(listed(directory.path()).unwrap_err().ends_with(": more than 1000 directories"));
    }
}
