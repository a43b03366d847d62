//! What a relay keeps where it survives a restart: the last that its origins said, served again while they are away.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use xdstp_client::state::{
    Commit, Compare, Entry, Event, Identities, Keeping, Keys, KeysError, Limits, Listing, Memory, Op, Redb, Revision,
    Saved, State, Store, StoreError, Watch,
};

use crate::config::{self, Config, KnownIn, OriginKind, Secrets};
use crate::error::Error;
use crate::relay_core::{NodeGrouping, RelayCore};
use crate::text_file::{self, Unread};

/// How long the relay waits for what was known before it starts without.
const PATIENCE: Duration = Duration::from_secs(3);

/// What tells the scopes of a relay from those of another, whatever changes in its configuration that does not concern them. An origin is
/// known by its name: servers that take the place of others go on with what those said.
pub fn identities(config: &Config, grouping: &dyn NodeGrouping) -> Identities {
    // Who it is, and who speaks for it.
    let told = |origin: &config::Origin| match &origin.kind {
        OriginKind::Server { servers, protocol } => {
            let servers = servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let mut told = format!("{} {:?} {}", protocol.as_str(), origin.xdstp, origin.name);
            // What is kept from before there was such a thing stays.
            if !origin.node_metadata.is_empty() {
                told = format!("{told} {}", serde_json::Value::Object(origin.node_metadata.clone()));
            }
            Some((told, servers))
        }
        OriginKind::Files { .. } | OriginKind::Etcd { .. } | OriginKind::Kubernetes { .. } | OriginKind::Embedded => {
            None
        }
    };
    let (origins, servers) = config.origins.iter().map(|origin| told(origin).unzip()).unzip();
    Identities::new(origins, grouping.identity(), format!("{:?}", config.node)).with_servers(servers)
}

/// What secrets are kept with: none if they are not kept.
///
/// # Errors
/// The file of the keys is not good.
pub fn keys(config: &Config) -> Result<Option<Arc<Keys>>, KeysError> {
    let Some(Secrets::Encrypted(file)) = config.state.as_ref().map(|state| &state.secrets) else { return Ok(None) };
    let text = text_file::read(file).map_err(|error| match error {
        Unread::File(reason) => KeysError::Unreadable { file: file.clone(), reason: reason.into() },
        Unread::Text(_) => {
            KeysError::Bad { file: file.clone(), line: 1, problem: "no text; expected a key in each line" }
        }
    })?;
    let keys = Keys::parse(file, &text)?;
    warn_of_readers(file);
    Ok(Some(Arc::new(keys)))
}

/// What is kept in the directory of a configuration: none if it names none. It is to be [read](read).
///
/// # Errors
/// The keys that secrets are to be kept with are not good.
pub(crate) fn open(config: &Config, grouping: &dyn NodeGrouping) -> Result<Option<Arc<State>>, Error> {
    let Some(state) = &config.state else { return Ok(None) };
    only_releases(config)?;
    bear_limits();
    let state = Arc::new(State::in_directory(&state.path, identities(config, grouping), keys(config)?));
    Ok(Some(state))
}

/// Reads what was known before, if that is done within a moment: it goes on if it is not.
pub(crate) async fn read(state: &Arc<State>) {
    let opening = state.clone();
    if tokio::time::timeout(PATIENCE, tokio::task::spawn_blocking(move || opening.open_now())).await.is_err() {
        tracing::error!(
            "what was known before was not read within {} s: the relay starts without, and has it once it was read",
            PATIENCE.as_secs()
        );
    }
}

/// Etcd is for releases, and for what origins said last where that is shared.
///
/// # Errors
/// There is neither.
pub(crate) fn only_releases(config: &Config) -> Result<(), Error> {
    let is_for_nothing = |state: &config::State| state.etcd.is_some() && state.last_known_good == KnownIn::Own;
    if config.rollout.is_empty() && config.state.as_ref().is_some_and(is_for_nothing) {
        let reason =
            "nothing is kept in etcd: there is no rollout; expected that, last_known_good: shared, or a path alone";
        let reason = reason.to_owned();
        return Err(Error::Field { field: "state.etcd".to_owned(), reason });
    }
    Ok(())
}

/// Begins to write what a relay knows, if it keeps that anywhere.
pub(crate) fn keep(core: &Arc<RelayCore>) -> Option<Keeping> {
    core.state()?;
    let core = core.clone();
    let keeping = Keeping::start(move |now, wall| core.save(now, wall));
    keeping.inspect_err(|error| tracing::error!("nothing is kept: {error}")).ok()
}

/// Whether there can be a file in a directory, which is left as it was.
///
/// # Errors
/// Why not.
pub(crate) fn check(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return tempfile::tempfile_in(directory).map(drop);
    }
    fs::create_dir_all(directory)?;
    fs::remove_dir(directory)
}

/// A file that may not grow any more is an error of who writes it, and no reason to end the process: there is a handler, and
/// nothing that it does.
fn bear_limits() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let limit = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
        if let Err(error) = signal(limit) {
            tracing::warn!("a limit of the size of files would end the relay: {error}");
        }
    }
}

/// Who reads the keys reads all that is kept.
fn warn_of_readers(file: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if fs::metadata(file).is_ok_and(|there| there.permissions().mode() & 0o007 != 0) {
            tracing::warn!(file = %file.display(), "everybody may read the keys of what is kept: expected mode 600 or 640");
        }
    }
}
