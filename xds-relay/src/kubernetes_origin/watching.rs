//! One collection: it is listed page by page, at one version, and watched from there, over and over.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::time::{self, timeout_at};
use xdstp_client::Backoff;

use super::answer::Answer;
use super::api::Api;
use super::collection::Collection;
use super::failure::Failure;
use super::leaving::Leaving;
use super::lines::Lines;
use super::object::{self, Page, Told as Event};
use super::value::Reader;
use crate::keyed_origin::{Change, Followed, Next, Told, shown};
use crate::lock::lock;

/// How many objects a page has at most, and how many bytes: where it has more, it is to have fewer objects.
const PAGE: usize = 250;
const PAGE_BYTES: usize = 32 << 20;
/// What a whole list may have, and in how many pages.
const LIST_BYTES: usize = 512 << 20;
const PAGES: usize = 100_000;
/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a watch is asked for, in seconds: so long, and anything up to half as long again, that not all come back at once.
const WATCHED: u64 = 120;
/// How much longer it may take: who says nothing by then is not there any more.
const MARGIN: Duration = Duration::from_secs(15);
/// After so many watches that told nothing, all is listed anew.
const FAILURES: u32 = 3;
/// After so long it is, whatever was told: what a server lost, or an earlier state of it, shows.
const RELISTED: Duration = Duration::from_secs(60 * 60);
/// How much is told together, in bytes.
const TOGETHER: usize = 1 << 20;
/// A watch that was there for so long was a good one.
const LONG: Duration = Duration::from_secs(30);

/// Who follows a collection.
pub(super) struct Watching<T> {
    api: Arc<Api>,
    collection: Collection,
    part: String,
    origin: Arc<Mutex<Followed<Reader, T>>>,
    leaving: Leaving,
    backoff: Backoff,
    /// How many objects the next page is to have.
    page: usize,
    /// Since when the watch is, that was asked for last.
    answered: Option<Instant>,
}

/// Why a watch is over.
enum Over {
    /// It has had its time, or the connection its end: it goes on from there.
    Ended,
    /// All is to be listed, not before this moment.
    List(Instant),
}

impl<T: Told> Watching<T> {
    pub(super) fn new(api: Arc<Api>, collection: Collection, origin: Arc<Mutex<Followed<Reader, T>>>) -> Self {
        let part = collection.part();
        let backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
        Self { api, collection, part, origin, leaving: Leaving::default(), backoff, page: PAGE, answered: None }
    }

    /// For as long as it is awaited.
    pub(super) async fn run(mut self) {
        loop {
            match self.list().await {
                Ok((values, version)) => {
                    self.page = PAGE;
                    // The list says what is there.
                    self.leaving.take();
                    let at = match self.listed(values) {
                        Next::List(at) => at,
                        Next::Watch => self.watch(version).await,
                    };
                    time::sleep_until(at.into()).await;
                }
                Err(Failure::TooMuch(most)) if self.page > 1 => {
                    tracing::warn!("{}: a page of {} objects has more than {most} bytes", self.part, self.page);
                    self.page /= 2;
                }
                Err(failure) => self.failed(&failure).await,
            }
        }
    }

    fn listed(&mut self, values: Vec<Change>) -> Next {
        let origin = &mut *lock(&self.origin);
        let next = origin.follower.listed(&self.part, values, now());
        if next != Next::Watch {
            origin.away.remove(&self.part);
        }
        // Else whoever may list, and may not watch, would be well for a moment, over and over.
        origin.tell();
        next
    }

    /// All values, and the version that they are of.
    async fn list(&mut self) -> Result<(Vec<Change>, String), Failure> {
        let (mut values, mut version, mut more) = (Vec::new(), None, None);
        let mut bytes = 0;
        for _ in 0..PAGES {
            let (page, size) = self.page(more.as_deref()).await?;
            bytes += size;
            if bytes > LIST_BYTES {
                return Err(Failure::Bad(format!(
                    "a list of more than {LIST_BYTES} bytes: expected a narrower selector"
                )));
            }
            if version.as_ref().is_some_and(|version| *version != page.version) {
                return Err(Failure::Bad("pages of several versions".to_owned()));
            }
            values.extend(page.objects.into_iter().flat_map(|object| object.values(self.collection.kind)));
            more = page.more;
            if more.is_none() {
                return Ok((values, page.version));
            }
            version = Some(page.version);
        }
        Err(Failure::Bad(format!("a list of more than {PAGES} pages")))
    }

    async fn page(&mut self, more: Option<&str>) -> Result<(Page, usize), Failure> {
        let path = self.collection.page(self.page, more);
        let until = time::Instant::now() + PATIENCE;
        let answer = self.api.ask(&path).await?;
        let Ok(whole) = timeout_at(until, answer.whole(PAGE_BYTES)).await else {
            // Only an answer that has begun may be too long for its line: who says nothing has no trouble with its length.
            self.page = (self.page / 2).max(1);
            return Err(Failure::Silent(PATIENCE));
        };
        let bytes = whole?;
        let page = object::page(&bytes, self.collection.kind, self.collection.namespace.as_deref())?;
        Ok((page, bytes.len()))
    }

    /// Watches until all is to be listed again: not before that moment.
    async fn watch(&mut self, mut version: String) -> Instant {
        let (listed, mut failures) = (now(), 0);
        loop {
            let before = version.clone();
            self.answered = None;
            let over = self.watch_once(&mut version).await;
            let is_long = |answered| now().saturating_duration_since(answered) >= LONG;
            failures += 1;
            if version != before || self.answered.is_some_and(is_long) {
                self.backoff.reset();
                failures = 0;
            }
            match over {
                Ok(Over::List(at)) => return at,
                Ok(Over::Ended) => time::sleep(self.backoff.next(random())).await,
                Err(Failure::Gone) => {
                    tracing::warn!("{}: what was done meanwhile is not known: all is listed again", self.part);
                    return now() + self.backoff.next(random());
                }
                Err(failure) => self.failed(&failure).await,
            }
            if failures >= FAILURES || now().saturating_duration_since(listed) >= RELISTED {
                return now();
            }
        }
    }

    /// Watches once, and says after which version to go on.
    async fn watch_once(&mut self, version: &mut String) -> Result<Over, Failure> {
        let seconds = WATCHED + random() % (WATCHED / 2);
        let mut answer = self.api.ask(&self.collection.watch(version, seconds)).await?;
        self.is_there();
        let end = time::Instant::now() + Duration::from_secs(seconds) + MARGIN;
        let mut lines = Lines::default();
        loop {
            if self.leaving.due().is_some_and(|due| due <= now())
                && let Next::List(at) = self.leave()
            {
                return Ok(Over::List(at));
            }
            let bytes = tokio::select! {
                bytes = next(&mut answer) => bytes,
                () = until(self.leaving.due()) => continue,
                () = time::sleep_until(end) => return Err(Failure::Silent(Duration::from_secs(seconds) + MARGIN)),
            };
            // That a connection is cut is no fault of who is there again at once.
            let Some(bytes) = bytes else { return Ok(Over::Ended) };
            let mut taken = bytes.len();
            let mut told = lines.take(&bytes).and_then(|lines| self.told(&lines, version));
            // What has come already is told together: each telling is of all that there is.
            while taken < TOGETHER
                && matches!(told, Ok(Next::Watch))
                && let Some(bytes) = ready(&mut answer).await
            {
                taken += bytes.len();
                told = lines.take(&bytes).and_then(|lines| self.told(&lines, version));
            }
            lock(&self.origin).tell();
            if let Next::List(at) = told? {
                return Ok(Over::List(at));
            }
        }
    }

    /// Does what the lines say, in their order; each is one change.
    fn told(&mut self, lines: &[Vec<u8>], version: &mut String) -> Result<Next, Failure> {
        let (kind, namespace) = (self.collection.kind, self.collection.namespace.clone());
        for line in lines {
            let object = match object::line(line, kind, namespace.as_deref())? {
                Event::Bookmark(now) => {
                    *version = now;
                    continue;
                }
                Event::Deleted(object) => {
                    self.leaving.add(object.prefix(kind), now());
                    object.version().clone_into(version);
                    continue;
                }
                Event::Put(object) => object,
            };
            let (prefix, of) = (object.prefix(kind), object.version().to_owned());
            self.leaving.stays(&prefix);
            let values = object.values(kind);
            if let next @ Next::List(_) = lock(&self.origin).follower.replaced(&self.part, &prefix, values, now()) {
                return Ok(next);
            }
            *version = of;
        }
        Ok(Next::Watch)
    }

    /// What was deleted a moment ago goes, as one change.
    fn leave(&mut self) -> Next {
        let prefixes = self.leaving.take();
        let origin = &mut *lock(&self.origin);
        let next = origin.follower.removed(&self.part, &prefixes, now());
        origin.tell();
        next
    }

    fn is_there(&mut self) {
        self.answered = Some(now());
        self.leaving.wait(now());

        let origin = &mut *lock(&self.origin);
        origin.away.remove(&self.part);
        origin.tell();
    }

    /// Says why it is away, and waits for a while. Nothing else comes of it.
    async fn failed(&mut self, failure: &Failure) {
        {
            let origin = &mut *lock(&self.origin);
            origin.away.insert(self.part.clone(), shown(&failure.to_string()));
            origin.tell();
        }
        time::sleep(self.backoff.next(random()).max(failure.after())).await;
    }
}

/// What has come already, if anything has.
async fn ready(answer: &mut Answer) -> Option<bytes::Bytes> {
    tokio::select! {
        biased;
        bytes = next(answer) => bytes,
        () = std::future::ready(()) => None,
    }
}

/// What comes next, but for how it ends.
async fn next(answer: &mut Answer) -> Option<bytes::Bytes> {
    answer.next().await.ok().flatten()
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// By the clock that timers go by.
fn now() -> Instant {
    time::Instant::now().into_std()
}

/// Enough for jitter: every `RandomState` has keys of its own.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
