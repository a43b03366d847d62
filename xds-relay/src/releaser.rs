//! What has a relay that runs release what its origins have.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use xdstp_client::state::Store;

use crate::relay_core::{RelayCore, Rollout, RolloutError};
use crate::releases::{Act, Applied, By, Control, Order};

/// Has a relay release what its origins have, by stages; and has what is released frozen, rolled back, and so on. The configuration
/// does not say it yet.
///
/// ```
/// # async fn released() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use xds_relay::relay_core::Rollout;
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
