//! An engine for one machine: a file of redb.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use redb::backends::InMemoryBackend;
use redb::{Builder, Database, DatabaseError, ReadableTable, StorageBackend as _, TableDefinition};

use self::reached::{FileId, Reached};
use crate::federation::lock;
use crate::state::changes::{Changes, Watch};
use crate::state::store::{Commit, Compare, Entry, Listing, Op, Revision, Store, StoreError};

mod reached;

/// By key: when it was put, and what.
const VALUES: TableDefinition<'_, &str, (Revision, &[u8])> = TableDefinition::new("values");
const REVISION: TableDefinition<'_, (), Revision> = TableDefinition::new("revision");

const CACHE: usize = 16 << 20;

/// What the engine says is large.
#[derive(Debug)]
struct Failure(Box<redb::Error>);

impl<E: Into<redb::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Box::new(error.into()))
    }
}

/// A store in a file. It is locked while this lives; every commit is synced.
///
/// ```
/// use xdstp_client::state::{Op, Redb, Store};
///
/// let directory = tempfile::tempdir()?;
/// let file = directory.path().join("state.redb");
/// let _ = Redb::open(&file)?.commit(&[Op::put("a", "1")], &[])?;
/// assert_eq!(Redb::open(&file)?.list("")?.entries[0].value, "1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Redb {
    path: PathBuf,
    /// None after an error, until it is opened anew: it does nothing any more after one.
    database: Mutex<Option<Arc<Open>>>,
    changes: Arc<Changes>,
    reached: Reached,
    went_back: Option<(Revision, Revision)>,
}

#[derive(Debug)]
struct Open {
    /// None when it is dropped.
    database: Option<Database>,
    file: FileId,
}

impl Drop for Open {
    fn drop(&mut self) {
        // It writes as it ends, and may give up on that as on anything else.
        let database = self.database.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
    }
}

impl Redb {
    /// Opens a file, or makes one that only its user may read.
    ///
    /// # Errors
    /// It is locked, damaged, of another format, or the file system says no.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        let reached = Reached::beside(&path);
        if fs::metadata(&path).map_or(true, |there| there.len() == 0) {
            reached.forget();
        }
        let open = Open::at(&path)?;
        let revision = open.revision()?;
        let went_back = reached.last().filter(|last| *last > revision).map(|last| (revision, last));
        let (database, changes) = (Mutex::new(Some(Arc::new(open))), Changes::since(revision));
        Ok(Self { path, database, changes, reached, went_back })
    }

    /// Opens what is in a file that may not be written: what is committed is not kept.
    ///
    /// # Errors
    /// It is damaged, of another format, or the file system says no.
    pub(crate) fn read_only(path: &Path) -> Result<Self, StoreError> {
        let content = fs::read(path)?;
        let database = guarded(|| {
            let backend = InMemoryBackend::new();
            backend.set_len(content.len() as u64)?;
            backend.write(0, &content)?;
            made(|builder| builder.create_with_backend(backend))
        })?;
        let open = Open { database: Some(database), file: FileId::of(&File::open(path)?)? };
        let changes = Changes::since(open.revision()?);
        let (path, reached) = (path.to_owned(), Reached::nowhere());
        Ok(Self { path, database: Mutex::new(Some(Arc::new(open))), changes, reached, went_back: None })
    }

    /// Its revision, and the one that it had before, if that was higher: the engine goes back to what was committed before what
    /// is damaged, and a file may be replaced by an older one.
    pub fn went_back(&self) -> Option<(Revision, Revision)> {
        self.went_back
    }

    /// Does something with the database. After an error that is opened anew by the next.
    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, Failure>) -> Result<T, StoreError> {
        let open = {
            let mut open = lock(&self.database);
            match &*open {
                Some(database) => database.clone(),
                // What would be made anew has nothing of what was there.
                None if !self.path.exists() => return Err(StoreError::Gone),
                None => open.insert(Arc::new(Open::at(&self.path)?)).clone(),
            }
        };
        open.guarded(work).inspect_err(|_| *lock(&self.database) = None)
    }

    /// What is written to a file that was removed is lost, and the system does not say so.
    fn is_there(&self) -> Result<(), StoreError> {
        let open = lock(&self.database).clone();
        match open {
            Some(open) if !open.file.is_at(&self.path) => Err(StoreError::Gone),
            _ => Ok(()),
        }
    }
}

impl Store for Redb {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.with(|database| {
            let reading = database.begin_read()?;
            let mut entries = Vec::new();
            for found in reading.open_table(VALUES)?.range(prefix..)? {
                let (key, value) = found?;
                if !key.value().starts_with(prefix) {
                    break;
                }
                let (revision, value) = value.value();
                entries.push(Entry { key: key.value().to_owned(), value: Bytes::copy_from_slice(value), revision });
            }
            let revision = revision_in(&reading.open_table(REVISION)?)?;
            Ok(Listing { entries, revision, ..Listing::default() })
        })
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.changes.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        self.is_there()?;
        self.with(|database| {
            // One at a time: this waits for the one before.
            let writing = database.begin_write()?;
            let revision = {
                let mut values = writing.open_table(VALUES)?;
                for compare in compares {
                    let revision = values.get(compare.key.as_str())?.map_or(0, |value| value.value().0);
                    if revision != compare.revision {
                        return Ok(Commit::Conflict);
                    }
                }
                let mut revisions = writing.open_table(REVISION)?;
                let revision = revision_in(&revisions)? + 1;
                revisions.insert((), revision)?;
                for op in ops {
                    match op {
                        Op::Put(key, value) => _ = values.insert(key.as_str(), (revision, &**value))?,
                        Op::Delete(key) => _ = values.remove(key.as_str())?,
                    }
                }
                revision
            };
            writing.commit()?;
            self.reached.note(revision);
            self.changes.record(revision, ops);
            Ok(Commit::Done(revision))
        })
    }
}

impl Open {
    fn at(path: &Path) -> Result<Self, StoreError> {
        let file = private_file(path)?;
        let id = FileId::of(&file)?;
        let database = guarded(|| made(|builder| builder.create_file(file)))?;
        Ok(Self { database: Some(database), file: id })
    }

    fn revision(&self) -> Result<Revision, StoreError> {
        self.guarded(|database| revision_in(&database.begin_read()?.open_table(REVISION)?))
    }

    fn guarded<T>(&self, work: impl FnOnce(&Database) -> Result<T, Failure>) -> Result<T, StoreError> {
        let Some(database) = &self.database else { return Err(StoreError::Gone) };
        guarded(|| work(database))
    }
}

fn made(make: impl FnOnce(&Builder) -> Result<Database, DatabaseError>) -> Result<Database, Failure> {
    let mut builder = Builder::new();
    // What later versions of the engine can read.
    builder.set_cache_size(CACHE).create_with_file_format_v3(true);
    let database = make(&builder)?;
    let writing = database.begin_write()?;
    writing.open_table(VALUES)?;
    writing.open_table(REVISION)?;
    writing.commit()?;
    Ok(database)
}

fn revision_in(revisions: &impl ReadableTable<(), Revision>) -> Result<Revision, Failure> {
    Ok(revisions.get(())?.map_or(0, |revision| revision.value()))
}

/// There are keys in what clients are sent.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(file)
}

/// The engine panics over some damage to its file.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, StoreError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(told),
        Err(_) => Err(StoreError::Corrupt("the engine gave up on it".to_owned())),
    }
}

fn told(Failure(error): Failure) -> StoreError {
    match *error {
        redb::Error::DatabaseAlreadyOpen => StoreError::Locked,
        redb::Error::UpgradeRequired(version) => StoreError::Format(format!("version {version} of the engine's")),
        redb::Error::Io(error) => match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => StoreError::Corrupt(error.to_string()),
            _ => error.into(),
        },
        redb::Error::PreviousIo | redb::Error::LockPoisoned(_) => io::Error::other("it failed before").into(),
        other => StoreError::Corrupt(other.to_string()),
    }
}
