//! What relays know of their origins, in etcd beside what each of them keeps by itself.

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;
use xdstp_client::state::{Etcd, StoreError};

use crate::config::{Config, KnownIn};
use crate::error::Error;
use crate::etcd::etcd_options;
use crate::relay_core::{KnownSharing, RelayCore};
use crate::state::{self, State};

/// How often it is looked what is to be done.
const EVERY: Duration = Duration::from_secs(1);
/// How long the relay waits for what others knew before it starts without.
const PATIENCE: Duration = Duration::from_secs(3);

/// What others knew, read or being read.
pub(crate) struct Opening(Receiver<Result<KnownSharing, StoreError>>);

/// Begins what a configuration says is shared: nothing, if it does not. What others knew is waited for, if that is soon read.
///
/// # Errors
/// Etcd cannot be spoken to as the configuration says, or the keys of secrets are not good.
pub(crate) async fn open(config: &Config, state: Option<&Arc<State>>) -> Result<Option<Opening>, Error> {
    let Some(of) = config.state.as_ref().filter(|of| of.last_known_good == KnownIn::Shared) else { return Ok(None) };
    let (Some(etcd), Some(state)) = (&of.etcd, state) else { return Ok(None) };
    let (options, keys, state) = (etcd_options(etcd, "state.etcd")?, state::keys(config)?, state.clone());
    let ((opened, opening), (tell, told)) = (mpsc::channel(), oneshot::channel());
    let learn = move || {
        let learned = Etcd::open(options).map(|etcd| {
            let mut sharing = KnownSharing::new(Arc::new(etcd), keys);
            sharing.learn(&state, Instant::now(), SystemTime::now());
            sharing
        });
        let _ = opened.send(learned);
        let _ = tell.send(());
    };
    thread(learn)?;
    if tokio::time::timeout(PATIENCE, told).await.is_err() {
        let seconds = PATIENCE.as_secs();
        tracing::warn!(
            "what other relays knew was not read within {seconds} s: the relay starts, and has it once it was read"
        );
    }
    Ok(Some(Opening(opening)))
}

/// Goes on with it, on a thread of its own, for as long as there is that relay.
///
/// # Errors
/// The system has no thread for it.
pub(crate) fn go_on(opening: Opening, core: &Arc<RelayCore>) -> Result<(), Error> {
    let core = Arc::downgrade(core);
    thread(move || match opening.0.recv() {
        Ok(Ok(sharing)) => run(sharing, &core),
        Ok(Err(error)) => tracing::error!("nothing is shared with other relays: {error}"),
        Err(_) => {}
    })
}

fn thread(run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let started = thread::Builder::new().name("shared-known".to_owned()).spawn(run);
    started.map(drop).map_err(|error| Error::Field {
        field: "state.last_known_good".to_owned(),
        reason: format!("the system has no thread for it: {error}"),
    })
}

fn run(mut sharing: KnownSharing, core: &Weak<RelayCore>) {
    while let Some(core) = core.upgrade() {
        sharing.step(&core, Instant::now(), SystemTime::now());
        drop(core);
        thread::sleep(EVERY);
    }
}
