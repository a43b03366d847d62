//! What has a relay that runs release what its origins have.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{sleep, timeout};
use xdstp_client::state::{Redb, Store, StoreError};

use crate::config::{Config, Rollout};
use crate::error::Error;
use crate::relay_core::{RelayCore, RolloutError};
use crate::releases::{Act, Applied, By, Control, Order};

/// Where releases are kept, in the directory of `state`. It is no part of what is known there, which is put aside where it is
/// damaged: what is frozen is not to be forgotten.
const FILE: &str = "releases.redb";
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
    let file = state.path.join(FILE);
    let unread = |reason: String| Error::Field {
        field: "rollout".to_owned(),
        reason: format!("what is released cannot be read from {}: {reason}", file.display()),
    };
    let open = async {
        loop {
            match open(&file).await.map_err(|error| unread(error.to_string()))? {
                Err(StoreError::Locked) => sleep(AGAIN).await,
                opened => return opened.map_err(|error| unread(error.to_string())),
            }
        }
    };
    let store = timeout(PATIENCE, open).await.unwrap_or_else(|_| Err(unread(StoreError::Locked.to_string())))?;
    let (core, rollouts) = (core.clone(), config.rollout.clone());
    let rolling = spawn_blocking(move || {
        let mut each = rollouts.into_iter();
        each.try_for_each(|rollout| core.roll_out(rollout, store.clone(), Instant::now()))
    });
    let rolled = rolling.await.map_err(|error| unread(error.to_string()))?;
    rolled.map_err(|error| match error {
        RolloutError::Stored(error) => unread(error.to_string()),
        other => Error::Field { field: "rollout".to_owned(), reason: other.to_string() },
    })
}

async fn open(file: &Path) -> Result<Result<Arc<dyn Store>, StoreError>, JoinError> {
    let file = file.to_owned();
    spawn_blocking(move || {
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
