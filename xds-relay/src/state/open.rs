//! Opening what a relay keeps in a directory: whatever is wrong with it, it is said, and the relay runs.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use crate::config::Config;
use crate::relay_core::NodeGrouping;
use crate::state::identity::Identities;
use crate::state::kept::State;
use crate::state::redb::Redb;
use crate::state::store::StoreError;

/// How long a process that is ending may have the file still.
const LOCKED: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(50);
/// How long a disk may take for all of it.
const READS: Duration = Duration::from_secs(20);

const FILE: &str = "state.redb";
/// What could not be read, the last time that was so.
const ASIDE: &str = "state.redb.aside";

/// What is kept in the directory of a configuration: none if it names none, or if that cannot be used.
pub(crate) async fn open(config: &Config, grouping: &dyn NodeGrouping) -> Option<State> {
    let directory = config.state.as_ref()?.path.clone();
    let shown = directory.display().to_string();
    let identities = Identities::new(config, grouping);
    let reading = tokio::task::spawn_blocking(move || read(&directory, &identities));
    let why = match tokio::time::timeout(READS, reading).await {
        Ok(Ok(Ok(state))) => {
            let (scopes, damaged) = (state.waiting(), state.damaged());
            let seconds = state.age().map(|age| age.as_secs());
            tracing::info!(state = shown, scopes, seconds, "what was known before was read");
            if damaged > 0 {
                tracing::warn!(state = shown, damaged, "some of it is not what was written, and is left out");
            }
            return Some(state);
        }
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(_)) => "reading it failed".to_owned(),
        Err(_) => format!("it was not read in {} s", READS.as_secs()),
    };
    tracing::error!(state = shown, "nothing is kept: {why}");
    None
}

fn read(directory: &Path, identities: &Identities) -> Result<State, StoreError> {
    private_directory(directory)?;
    let (file, aside) = (directory.join(FILE), directory.join(ASIDE));
    match read_file(&file, identities) {
        Err(error @ (StoreError::Corrupt(_) | StoreError::Format(_))) => {
            fs::rename(&file, &aside)?;
            tracing::error!(file = %file.display(), aside = %aside.display(), "it was put aside: {error}");
            read_file(&file, identities)
        }
        other => other,
    }
}

fn read_file(file: &Path, identities: &Identities) -> Result<State, StoreError> {
    let until = Instant::now() + LOCKED;
    let mut said = false;
    loop {
        match Redb::open(file) {
            Err(StoreError::Locked) if Instant::now() < until => {
                if !std::mem::replace(&mut said, true) {
                    let seconds = LOCKED.as_secs();
                    tracing::warn!(file = %file.display(), "another process has it: it is waited for, at most {seconds} s");
                }
                std::thread::sleep(RETRY);
            }
            opened => return State::read(opened?, identities.clone(), Instant::now(), SystemTime::now()),
        }
    }
}

/// Whether there can be a file in a directory, which is left as it was.
///
/// # Errors
/// Why not.
pub(crate) fn check(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return tempfile::tempfile_in(directory).map(drop);
    }
    private_directory(directory)?;
    fs::remove_dir(directory)
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
