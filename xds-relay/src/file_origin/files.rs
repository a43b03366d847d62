//! Which files of a directory hold resources.

use std::collections::{BTreeSet, HashSet};
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
/// How many entries of any kind one looks at: those that are nothing to read take time, too.
const MAX_ENTRIES: usize = 1_000_000;

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
    list_within(directory, with_directories, MAX_ENTRIES)
}

fn list_within(directory: &Path, with_directories: bool, most_entries: usize) -> Result<Listing, FileError> {
    let mut looking = Looking {
        top: None,
        listing: Listing::default(),
        read: HashSet::new(),
        links: BTreeSet::new(),
        entries_left: most_entries,
        most_entries,
    };
    if with_directories {
        looking.top = Some(canonical(directory)?);
    }
    looking.visit(directory, 0)?;
    // What has a name of its own has been read by it. Links are followed in the order of their paths.
    while let Some((link, depth)) = looking.links.pop_first() {
        looking.visit(&link, depth)?;
    }
    looking.listing.files.sort_unstable();
    Ok(looking.listing)
}

struct Looking {
    /// Where one began, without links, if directories are looked for.
    top: Option<PathBuf>,
    listing: Listing,
    /// The directories that were read, without links.
    read: HashSet<PathBuf>,
    /// Links to directories, and how deep they are, that are yet to be followed.
    links: BTreeSet<(PathBuf, usize)>,
    entries_left: usize,
    most_entries: usize,
}

impl Looking {
    fn visit(&mut self, directory: &Path, depth: usize) -> Result<(), FileError> {
        let refused = |reason: String| Err(FileError::of_file(directory, reason));
        let unreadable = |error: io::Error| FileError::of_file(directory, error.to_string());
        if let Some(top) = &self.top {
            let itself = canonical(directory)?;
            // What is around the origin is not its own, and what has been read is not read by another name, too.
            if (depth > 0 && top.starts_with(&itself)) || !self.read.insert(itself) {
                return Ok(());
            }
        }
        self.listing.directories.insert(directory.to_owned());
        if depth > MAX_DEPTH {
            return refused(format!("more than {MAX_DEPTH} directories within each other"));
        }
        if self.listing.directories.len() > MAX_DIRECTORIES {
            return refused(format!("more than {MAX_DIRECTORIES} directories"));
        }
        for entry in std::fs::read_dir(directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let Some(left) = self.entries_left.checked_sub(1) else {
                return refused(format!("more than {} entries, whatever they are", self.most_entries));
            };
            self.entries_left = left;
            let path = entry.path();
            if path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b".")) {
                continue;
            }
            if self.top.is_some() && is_directory(&path)? {
                if entry.file_type().map_err(unreadable)?.is_symlink() {
                    self.links.insert((path, depth + 1));
                } else {
                    self.visit(&path, depth + 1)?;
                }
            } else if path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known)) {
                // A link that leads nowhere, or a directory, is kept: reading it says so.
                self.listing.files.push(path);
            }
            if self.top.is_some() && self.listing.files.len() > MAX_FILES {
                return refused(format!("more than {MAX_FILES} files"));
            }
        }
        Ok(())
    }
}

fn canonical(directory: &Path) -> Result<PathBuf, FileError> {
    std::fs::canonicalize(directory).map_err(|error| FileError::of_file(directory, error.to_string()))
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

    #[cfg(unix)]
    #[test]
    fn what_is_around_an_origin_is_not_read_by_a_link_to_it() {
        use std::os::unix::fs::symlink;
        let around = tempfile::tempdir().unwrap();
        let mesh = around.path().join("config/mesh");
        fs::create_dir_all(mesh.join("sub")).unwrap();
        for file in ["relay.yaml", "config/other.yaml", "config/mesh/a.yaml"] {
            fs::write(around.path().join(file), "").unwrap();
        }
        symlink("../..", mesh.join("up")).unwrap();
        symlink("../..", mesh.join("sub/up")).unwrap();
        symlink("/", mesh.join("root")).unwrap();
        assert_eq!(listed(&mesh).unwrap(), ["a.yaml"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_is_read_once_by_its_own_name_or_the_first_link() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["v1/deep", "v2", ".hidden/in"] {
            fs::create_dir_all(path(name)).unwrap();
            fs::write(path(name).join("a.yaml"), "").unwrap();
        }
        symlink("v2", path("current")).unwrap();
        symlink("../v2", path("v1/next")).unwrap();
        symlink("v1/deep", path("a")).unwrap();
        symlink(".hidden/in", path("y")).unwrap();
        symlink(".hidden", path("z")).unwrap();
        symlink(".hidden/in", path("zz")).unwrap();
        assert_eq!(listed(directory.path()).unwrap(), ["v1/deep/a.yaml", "v2/a.yaml", "y/a.yaml"]);
    }

    #[test]
    fn the_number_of_entries_is_bounded_whatever_they_are() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("sub")).unwrap();
        for name in ["a.txt", ".b", "sub/c.yaml", "sub/d"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let told = |with_directories, most| {
            list_within(directory.path(), with_directories, most).err().map(|error| error.reason)
        };
        assert_eq!((told(false, 3), told(true, 5)), (None, None));
        assert_eq!(told(false, 2).unwrap(), "more than 2 entries, whatever they are");
        assert_eq!(told(true, 4).unwrap(), "more than 4 entries, whatever they are");
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
