//! Who lists an origin's keys and is told what is done to them: a thread that waits for a store.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use xdstp_client::state::{Event, Listing, Op, Revision, Store, StoreError};

use super::key::{RESOURCES, no_text};
use super::value::Reader;
use crate::keyed_origin::{
    Change, Contents, Followed, Follower, GRACE, Keeper, Next, READ_LOOKED, READ_WITHIN, Teller, Told,
};
use crate::lock::lock;

/// As people call it.
pub(super) const KEEPER: &str = "etcd";
/// How long is waited after a failure, the first time and at most.
const SOONEST: Duration = Duration::from_millis(200);
const LATEST: Duration = Duration::from_secs(5);
/// How long is waited for changes before it is looked whether to stop.
const TURN: Duration = Duration::from_millis(500);
/// How often etcd is asked whether it is there: a watch is silent while it is not.
const ASKED: Duration = Duration::from_secs(10);
/// The keys of an origin are one part.
const ALL: &str = "";
/// Nothing is under it.
const NOTHING: &str = "res//";

/// An origin is followed for as long as this lives.
pub(crate) struct Following {
    stop: Arc<Stop>,
}

#[derive(Debug, Default)]
struct Stop {
    is_raised: Mutex<bool>,
    raised: Condvar,
}

impl Stop {
    /// Whether it is time to stop, at the latest after this.
    fn wait(&self, at_most: Duration) -> bool {
        let is_raised = lock(&self.is_raised);
        let waited = self.raised.wait_timeout_while(is_raised, at_most, |is_raised| !*is_raised);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Following {
    /// Begins; nobody waits for what the store says.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(super) fn start(
        store: Arc<dyn Store>,
        reader: Reader,
        keeper: Option<Keeper>,
        told: impl Told,
    ) -> io::Result<Self> {
        let stop = Arc::<Stop>::default();
        let follower = Follower::new(Contents::new(reader.clone()), [ALL]);
        let followed = Arc::new(Mutex::new(Followed::new(follower, Teller::new(told, KEEPER))));
        let thread =
            Thread { store, followed: followed.clone(), stop: stop.clone(), pause: SOONEST, is_unwatched: false };
        let named = || thread::Builder::new().name("etcd-origin".into());
        if let Some(keeper) = keeper {
            let (stop, waits) = (stop.clone(), followed.clone());
            let (begin, begun) = mpsc::channel();
            // A store that does not answer says nothing, not even that.
            named().spawn(move || {
                // Before it is asked it has no time to answer.
                if begun.recv().is_ok() && !stop.wait(GRACE) {
                    lock(&waits).fall_back();
                }
            })?;
            named().spawn(move || {
                keeper.keep(&followed, &reader, (ALL, ""));
                thread.wait_for_kept();
                // Who waits has ended only if all has.
                let _ = begin.send(());
                thread.run();
            })?;
        } else {
            named().spawn(|| thread.run())?;
        }
        Ok(Self { stop })
    }
}

impl Drop for Following {
    /// Who waits for a store just then ends when that has answered, and nobody waits for him.
    fn drop(&mut self) {
        *lock(&self.stop.is_raised) = true;
        self.stop.raised.notify_all();
    }
}

struct Thread<T> {
    store: Arc<dyn Store>,
    followed: Arc<Mutex<Followed<Reader, T>>>,
    stop: Arc<Stop>,
    /// How long is waited after the next failure.
    pause: Duration,
    /// All could be listed, and then not be watched.
    is_unwatched: bool,
}

impl<T: Told> Thread<T> {
    /// Until what was known before is read, but not for ever.
    fn wait_for_kept(&self) {
        let until = Instant::now() + READ_WITHIN;
        while !lock(&self.followed).follower.was_read() && Instant::now() < until {
            if self.stop.wait(READ_LOOKED) {
                return;
            }
        }
    }

    fn run(mut self) {
        while !self.stop.wait(Duration::ZERO) {
            let wait = match self.follow() {
                Ok(list_at) => list_at.saturating_duration_since(Instant::now()),
                Err(error) => {
                    match error {
                        StoreError::Compacted => {
                            tracing::warn!("what was done meanwhile is not known: all is listed again");
                        }
                        error => self.tell(Some(&error)),
                    }
                    let wait = self.pause;
                    self.pause = (wait * 2).min(LATEST);
                    wait
                }
            };
            if self.stop.wait(wait) {
                return;
            }
        }
    }

    /// Until when to wait before all is listed again.
    fn follow(&mut self) -> Result<Instant, StoreError> {
        let listing = self.store.list(RESOURCES)?;
        let next = listed(&mut lock(&self.followed).follower, &listing, Instant::now());
        match next {
            // Else whoever may list, and may not watch, would be well for a moment, over and over.
            Next::Watch if self.is_unwatched => lock(&self.followed).tell(),
            _ => self.tell(None),
        }
        match next {
            Next::List(at) => Ok(at),
            Next::Watch => self.watch(listing.revision),
        }
    }

    /// The same, once all was listed.
    fn watch(&mut self, after: Revision) -> Result<Instant, StoreError> {
        let watched = self.store.watch(RESOURCES, after);
        let was_unwatched = std::mem::replace(&mut self.is_unwatched, watched.is_err());
        let mut watch = watched?;
        if was_unwatched {
            self.tell(None);
        }
        self.pause = SOONEST;
        let mut asked = Instant::now();
        loop {
            let events = watch.next(TURN)?;
            if self.stop.wait(Duration::ZERO) {
                return Ok(Instant::now());
            }
            let now = Instant::now();
            if !events.is_empty() {
                let next = told(&mut lock(&self.followed).follower, &events, now);
                self.tell(None);
                if let Next::List(at) = next {
                    return Ok(at);
                }
            } else if now.saturating_duration_since(asked) >= ASKED {
                let away = self.store.list(NOTHING).err();
                asked = Instant::now();
                self.tell(away.as_ref());
            }
        }
    }

    fn tell(&mut self, away: Option<&StoreError>) {
        let followed = &mut *lock(&self.followed);
        followed.away = away.map(|error| (ALL.to_owned(), error.to_string())).into_iter().collect();
        followed.tell();
    }
}

/// All that there is, at one revision.
pub(super) fn listed(follower: &mut Follower<Reader>, listing: &Listing, now: Instant) -> Next {
    let put = listing.entries.iter().map(|entry| Op::Put(entry.key.clone(), entry.value.clone()));
    // What is refused for its key needs no value.
    let refused = listing.no_text.iter().map(|key| Op::put(no_text(key), ""));
    follower.listed(ALL, put.chain(refused).map(change).collect(), now)
}

/// What was done since, whole revisions: each is one change.
pub(super) fn told(follower: &mut Follower<Reader>, events: &[Event], now: Instant) -> Next {
    for events in events.chunk_by(|one, other| one.revision == other.revision) {
        let changes: Vec<_> = events.iter().map(|event| change(event.op.clone())).collect();
        if let next @ Next::List(_) = follower.told(ALL, &changes, now) {
            return next;
        }
    }
    Next::Watch
}

/// A resource has one key: none comes before another.
fn change(op: Op) -> Change {
    match op {
        Op::Put(key, value) => Change::Put { key, rank: String::new(), value },
        Op::Delete(key) => Change::Delete(key),
    }
}

#[cfg(test)]
mod tests;
