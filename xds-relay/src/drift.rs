//! Drift that is looked for without being asked for, where the configuration says so.

use std::future::pending;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::config::Drift;
use crate::relay_core::{DriftRounds, RelayCore};

/// How often it is looked whether something is to be done.
const LOOK: Duration = Duration::from_millis(250);

/// Looks for it, for as long as it is awaited.
pub(crate) async fn look(core: &Arc<RelayCore>, drift: Option<Drift>) {
    let Some(Drift { every, .. }) = drift else { return pending().await };
    let mut rounds = DriftRounds::new(core.clone(), every, random);
    loop {
        sleep(LOOK).await;
        let now = Instant::now().into_std();
        // A scope may be large, and nothing else waits for it.
        let looked = spawn_blocking(move || {
            rounds.poll(now);
            rounds
        });
        match looked.await {
            Ok(looked) => rounds = looked,
            Err(error) => {
                tracing::error!("drift is not looked for any more: {error}");
                return pending().await;
            }
        }
    }
}

/// Enough for jitter: every `RandomState` has keys of its own.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
