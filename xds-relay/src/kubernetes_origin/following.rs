//! Who lists an origin's objects and is told what is done to them: a thread, which waits for the API server.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::api::Api;
use super::collection::Collection;
use super::value::Reader;
use super::watching::Watching;
use crate::keyed_origin::{Contents, Followed, Follower, GRACE, Keeper, READ_LOOKED, READ_WITHIN, Teller, Told};
use crate::lock::lock;

/// As people call it.
pub(super) const KEEPER: &str = "Kubernetes";

/// An origin is followed for as long as this lives.
pub(crate) struct Following {
    _stop: oneshot::Sender<()>,
}

impl Following {
    /// Begins; nobody waits for what the API server says.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(super) fn start(
        api: Api,
        collections: Vec<Collection>,
        reader: Reader,
        keeper: Option<Keeper>,
        told: impl Told,
    ) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel::<()>();
        // What is read there takes its time: it is nobody else's.
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = follow(api, collections, reader, keeper, told) => {}
                }
            });
            // Whoever looks up a name just then is not waited for.
            runtime.shutdown_background();
        };
        thread::Builder::new().name("k8s-origin".into()).spawn(run)?;
        Ok(Self { _stop: stop })
    }
}

/// Follows all of them, for ever.
pub(super) async fn follow(
    api: Api,
    collections: Vec<Collection>,
    reader: Reader,
    keeper: Option<Keeper>,
    told: impl Told,
) {
    let contents = Contents::new(reader.clone());
    let follower = Follower::new(contents, collections.iter().map(Collection::part)).one_by_one();
    let origin = Arc::new(Mutex::new(Followed::new(follower, Teller::new(told, KEEPER))));
    let api = Arc::new(api);
    let mut all = JoinSet::new();
    if let Some(keeper) = keeper {
        for collection in &collections {
            keeper.keep(&origin, &reader, (&collection.part(), collection.selector()));
        }
        wait_for_kept(&origin).await;
        let origin = origin.clone();
        all.spawn(async move {
            sleep(GRACE).await;
            lock(&origin).fall_back();
        });
    }
    for collection in collections {
        all.spawn(Watching::new(api.clone(), collection, origin.clone()).run());
    }
    while let Some(ended) = all.join_next().await {
        if let Err(error) = ended {
            lock(&origin).lost(format!("it is followed no more: {error}"));
        }
    }
}

/// Until what was known before is read, but not for ever.
async fn wait_for_kept<T: Told>(origin: &Mutex<Followed<Reader, T>>) {
    let until = Instant::now() + READ_WITHIN;
    while !lock(origin).follower.was_read() && Instant::now() < until {
        sleep(READ_LOOKED).await;
    }
}
