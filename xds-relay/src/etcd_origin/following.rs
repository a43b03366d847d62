//! Who lists an origin's keys and is told what is done to them: a thread that waits for a store.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use xdstp_client::federation::Held;
use xdstp_client::state::{Revision, Store, StoreError};

use super::contents::Contents;
use super::follower::{Follower, Next};
use super::key::RESOURCES;
use super::standing::Standing;
use super::value::Reader;
use crate::file_origin::{Descriptors, Served};
use crate::lock::lock;

/// How long is waited after a failure, the first time and at most.
const SOONEST: Duration = Duration::from_millis(200);
const LATEST: Duration = Duration::from_secs(5);
/// How long is waited for changes before it is looked whether to stop.
const TURN: Duration = Duration::from_millis(500);
/// How often etcd is asked whether it is there: a watch is silent while it is not.
const ASKED: Duration = Duration::from_secs(10);
/// Nothing is under it.
const NOTHING: &str = "res//";

/// An origin is followed for as long as this lives.
pub(crate) struct Following {
    stop: Arc<Stop>,
}

/// Whom it is told.
pub(crate) trait Told: Send + 'static {
    /// All that the origin has from now on.
    fn content(&mut self, held: Vec<Held>);

    /// How it is, if otherwise than before.
    fn standing(&mut self, standing: &Standing);

    /// So many values were refused.
    fn refused(&mut self, values: u64);
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
    pub(crate) fn start(
        store: Arc<dyn Store>,
        (types, served): (Descriptors, Served),
        told: impl Told,
    ) -> io::Result<Self> {
        let stop = Arc::<Stop>::default();
        let follower = Follower::new(Contents::new(Reader::new(types), served));
        let thread = Thread { store, follower, told, stop: stop.clone(), standing: None, pause: SOONEST };
        thread::Builder::new().name("etcd-origin".into()).spawn(|| thread.run())?;
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
    follower: Follower,
    told: T,
    stop: Arc<Stop>,
    standing: Option<Standing>,
    /// How long is waited after the next failure.
    pause: Duration,
}

impl<T: Told> Thread<T> {
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
        let next = self.follower.listed(&self.store.list(RESOURCES)?, Instant::now());
        self.tell(None);
        match next {
            Next::List(at) => Ok(at),
            Next::Watch(after) => self.watch(after),
        }
    }

    /// The same, once all was listed.
    fn watch(&mut self, after: Revision) -> Result<Instant, StoreError> {
        let mut watch = self.store.watch(RESOURCES, after)?;
        self.pause = SOONEST;
        let mut asked = Instant::now();
        loop {
            let events = watch.next(TURN)?;
            if self.stop.wait(Duration::ZERO) {
                return Ok(Instant::now());
            }
            let now = Instant::now();
            if !events.is_empty() {
                let next = self.follower.told(&events, now);
                self.tell(None);
                if let Some(Next::List(at)) = next {
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
        if let Some(held) = self.follower.news() {
            self.told.content(held);
        }
        match self.follower.newly_refused() {
            0 => {}
            refused => self.told.refused(refused),
        }
        let standing = Standing {
            away: away.map(ToString::to_string),
            refused: self.follower.refused(),
            held_back: self.follower.held_back(),
        };
        if self.standing.as_ref() != Some(&standing) {
            self.told.standing(&standing);
            self.standing = Some(standing);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

    use xdstp_client::state::{Commit, Compare, Listing, Memory, Op, Watch};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// One that is away at times.
    #[derive(Clone, Default)]
    struct Flaky {
        store: Memory,
        is_away: Arc<AtomicBool>,
    }

    impl Flaky {
        fn reached(&self) -> Result<&Memory, StoreError> {
            match self.is_away.load(Ordering::SeqCst) {
                true => Err(StoreError::Away("nobody there".to_owned())),
                false => Ok(&self.store),
            }
        }

        fn put(&self, name: &str) {
            let key = format!("res/envoy.config.cluster.v3.Cluster/{name}");
            let text = "{'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster}";
            assert!(matches!(self.store.commit(&[Op::put(key, text)], &[]), Ok(Commit::Done(_))));
        }
    }

    impl Store for Flaky {
        fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
            self.reached()?.list(prefix)
        }

        fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
            self.reached()?.watch(prefix, after)
        }

        fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
            self.reached()?.commit(ops, compares)
        }
    }

    #[derive(Debug, PartialEq, Eq)]
    enum Heard {
        Names(Vec<String>),
        Trouble(Option<String>),
        Refused(u64),
    }

    impl Told for Sender<Heard> {
        fn content(&mut self, held: Vec<Held>) {
            let names = held.iter().map(|(_, name, _)| name.as_str().to_owned()).collect();
            let _ = self.send(Heard::Names(names));
        }

        fn standing(&mut self, standing: &Standing) {
            let _ = self.send(Heard::Trouble(standing.trouble(false)));
        }

        fn refused(&mut self, values: u64) {
            let _ = self.send(Heard::Refused(values));
        }
    }

    fn follow(store: &Flaky) -> (Following, Receiver<Heard>) {
        let (told, heard) = channel();
        let read = (Descriptors::built_in().unwrap(), Served::default());
        (Following::start(Arc::new(store.clone()), read, told).unwrap(), heard)
    }

    #[test]
    fn who_is_away_at_first_is_tried_until_all_is_known_and_then_each_change_comes() {
        let store = Flaky::default();
        store.is_away.store(true, Ordering::SeqCst);
        store.put("a");
        let (following, heard) = follow(&store);
        let trouble = "etcd is away, and nothing is known: it is away: nobody there".to_owned();
        assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Trouble(Some(trouble)));
        store.is_away.store(false, Ordering::SeqCst);
        assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Names(vec!["a".to_owned()]));
        assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Trouble(None));
        store.put("b");
        assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Names(vec!["a".to_owned(), "b".to_owned()]));
        // Its thread ends, and says nothing any more.
        drop(following);
        assert_eq!(heard.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_value_that_is_refused_is_told_and_nothing_else() {
        let store = Flaky::default();
        assert!(store.commit(&[Op::put("res/odd", "x")], &[]).is_ok());
        let (_following, heard) = follow(&store);
        assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Names(vec![]));
        assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Refused(1));
        let words =
            "a value is refused: res/odd: expected res/TYPE/NAME, such as res/envoy.config.cluster.v3.Cluster/web";
        assert_eq!(heard.recv_timeout(LONG).unwrap(), Heard::Trouble(Some(words.to_owned())));
    }
}
