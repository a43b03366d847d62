//! What has a relay that runs release what its origins have.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use xdstp_client::state::{Etcd, Redb, Store, StoreError};

use crate::config::{self, Config, Rollout};
use crate::error::Error;
use crate::etcd::etcd_options;
use crate::relay_core::{Following, RelayCore, ReleaseStore, RolloutError};
use crate::releases::{Act, Applied, By, Control, Order, StoredError, Turns};
use crate::replicas::tell;

/// Where releases are kept, in the directory of `state`. It is no part of what is known there, which is put aside where it is
/// damaged: what is frozen is not to be forgotten.
const FILE: &str = "releases.redb";
/// Where the copy of those is that are in etcd.
const COPY: &str = "releases-copy.redb";
/// How long a relay that starts waits for one that ends.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(200);

/// Has a relay release what its origins have, by stages, beside what its configuration says (`rollout`); and has what is released
/// frozen, rolled back, and so on.
///
/// ```
/// # async fn released() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use xds_relay::config::Rollout;
/// use xds_relay::releases::{Act, Stage, Stages, Who};
/// use xds_relay::{ExampleMesh, Relay, state::Memory};
///
/// let mesh = ExampleMesh::unpack()?;
/// let mut config = mesh.config()?;
/// (config.listen, config.admin) = ("127.0.0.1:0".parse()?, None);
/// let relay = Relay::bind(config).await?;
///
/// let tenth = Stage { who: Who::Percent("10%".parse()?), hold: Duration::from_secs(300) };
/// let releaser = relay.releaser();
/// releaser.roll_out(Rollout::new(None, Stages::new([tenth])), Arc::new(Memory::default()))?;
/// assert!(releaser.control(None)?.stable().is_none(), "it takes the first release once it runs, and all has settled");
/// let error = releaser.order(None, Act::Freeze, "ann", "a quiet weekend").unwrap_err();
/// assert_eq!(error.to_string(), "this scope has no release yet");
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(released()).unwrap();
/// ```
#[derive(Clone)]
pub struct Releaser(Arc<RelayCore>);

impl Releaser {
    pub(crate) fn new(core: Arc<RelayCore>) -> Self {
        Self(core)
    }

    /// From now on what the origin of a scope has is released by stages, and kept in a store. Of what is kept what is stable is served
    /// at once, whether the origin has anything or not; before the first release nothing is known of the scope.
    ///
    /// # Errors
    /// The origin is one that is asked for what clients want, there are releases of the scope already, or the store cannot be read.
    pub fn roll_out(&self, rollout: Rollout, store: Arc<dyn Store>) -> Result<(), RolloutError> {
        self.0.roll_out(rollout, store, Instant::now())
    }

    /// The same in a store that other relays have, too, such as [`Etcd`], which says whose turn it is to publish. What the others do is
    /// heard.
    ///
    /// # Errors
    /// As [`roll_out`](Self::roll_out).
    pub fn roll_out_in_turn<S: Store + Turns>(&self, rollout: Rollout, store: Arc<S>) -> Result<(), RolloutError> {
        let following = Following::begin(store.clone()).map_err(StoredError::from)?;
        self.0.roll_out_on(rollout, ReleaseStore::shared(store.clone(), store), Instant::now())?;
        tell(following, &self.0).map_err(|error| StoredError::from(StoreError::from(error)).into())
    }

    /// Does what a person orders of the releases of an authority, or of old-style names: who it is, and why. It takes as long as the
    /// store takes.
    ///
    /// # Errors
    /// Why it is not done.
    pub fn order(&self, authority: Option<&str>, act: Act, by: &str, why: &str) -> Result<Applied, RolloutError> {
        let order = Order::new(act, By::Person(by.to_owned()), why, SystemTime::now());
        self.0.order_release(authority, &order, Instant::now())
    }

    /// What holds for the releases of an authority, or of old-style names.
    ///
    /// # Errors
    /// There are none.
    pub fn control(&self, authority: Option<&str>) -> Result<Control, RolloutError> {
        self.0.release_control(authority)
    }
}

/// Has a relay release what its configuration says.
///
/// # Errors
/// What is released cannot be read: what is frozen, or rolled back, would be served. Or an embedded origin has not all there is.
pub(crate) async fn roll_out(config: &Config, core: &Arc<RelayCore>) -> Result<(), Error> {
    let Some(state) = config.state.as_ref().filter(|_| !config.rollout.is_empty()) else { return Ok(()) };
    let (opened, place) = match &state.etcd {
        Some(etcd) => (open_shared(etcd, &state.path).await?, "state.etcd".to_owned()),
        None => {
            let file = state.path.join(FILE);
            (open_own(&file).await, file.display().to_string())
        }
    };
    let unread = |reason: String| Error::Field {
        field: "rollout".to_owned(),
        reason: format!("what is released cannot be read from {place}: {reason}"),
    };
    let (store, following) = opened.map_err(|error| unread(error.to_string()))?;
    let (rolled_out, rollouts) = (core.clone(), config.rollout.clone());
    let rolling = spawn_blocking(move || {
        let mut each = rollouts.into_iter();
        each.try_for_each(|rollout| rolled_out.roll_out_on(rollout, store.clone(), Instant::now()))
    });
    let rolled = rolling.await.map_err(|error| unread(error.to_string()))?;
    rolled.map_err(|error| match error {
        RolloutError::Stored(error) => unread(error.to_string()),
        other => Error::Field { field: "rollout".to_owned(), reason: other.to_string() },
    })?;
    following.map_or(Ok(()), |following| tell(following, core)).map_err(|error| unread(error.to_string()))
}

/// A store of releases; and what other relays do there is heard, if they have it, too.
type Opened = (ReleaseStore, Option<Following>);

/// One that several relays have, and need not answer: what is served is copied to a directory of this relay.
async fn open_shared(etcd: &config::Etcd, directory: &Path) -> Result<Result<Opened, StoreError>, Error> {
    let options = etcd_options(etcd, "state.etcd")?;
    let copy = open_copy(&directory.join(COPY)).await;
    let members: BTreeSet<_> = etcd.endpoints.iter().map(ToString::to_string).collect();
    let of = format!("{} {}", members.into_iter().collect::<Vec<_>>().join(","), etcd.prefix);
    let opened = blocking(move || {
        let etcd = Arc::new(Etcd::open(options)?);
        let (following, is_away) = match Following::begin(etcd.clone()) {
            Ok(following) => (following, false),
            Err(error) if error.may_pass() => (Following::later(etcd.clone()), true),
            // Whether that is borne is for each scope to say.
            Err(StoreError::Refused(_)) => (Following::later(etcd.clone()), false),
            Err(error) => return Err(error),
        };
        Ok((ReleaseStore::shared(etcd.clone(), etcd).with_copy(copy, &of).away(is_away), Some(following)))
    });
    Ok(opened.await)
}

/// The copy of what is elsewhere: it is never needed as long as that is there.
async fn open_copy(file: &Path) -> Option<Arc<dyn Store>> {
    let mut opened = open_patiently(file).await;
    if let Err(StoreError::Corrupt(_) | StoreError::Format(_)) = opened {
        tracing::error!(file = %file.display(), "it is made anew: it cannot be read");
        opened = match fs::remove_file(file) {
            Ok(()) => open_patiently(file).await,
            Err(error) => Err(error.into()),
        };
    }
    opened.inspect_err(|error| tracing::error!(file = %file.display(), "no copy of releases is kept: {error}")).ok()
}

/// One that is this relay's alone.
async fn open_own(file: &Path) -> Result<Opened, StoreError> {
    open_patiently(file).await.map(|store| (ReleaseStore::own(store), None))
}

/// Who is about to end may have it still.
async fn open_patiently(file: &Path) -> Result<Arc<dyn Store>, StoreError> {
    let open = async {
        loop {
            match open(file).await {
                Err(StoreError::Locked) => sleep(AGAIN).await,
                opened => return opened,
            }
        }
    };
    timeout(PATIENCE, open).await.unwrap_or(Err(StoreError::Locked))
}

async fn blocking<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    spawn_blocking(run).await.unwrap_or_else(|error| Err(io::Error::other(error).into()))
}

async fn open(file: &Path) -> Result<Arc<dyn Store>, StoreError> {
    let file = file.to_owned();
    blocking(move || {
        file.parent().map_or(Ok(()), fs::create_dir_all)?;
        let store = Redb::open(&file)?;
        if let Some((is, was)) = store.went_back() {
            tracing::error!(file = %file.display(), is, was, "it is older than it was: what was ordered since is forgotten");
        }
        let store: Arc<dyn Store> = Arc::new(store);
        Ok(store)
    })
    .await
}
