//! What is done to a range of keys, told as it is done, by one member or another.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tokio::select;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tonic::Streaming;

use super::client::Client;
use super::failure::Failure;
use super::history::History;
use super::link::Connection;
use super::messages::{RangeRequest, RangeResponse, WatchCreateRequest, WatchRequest, WatchResponse};
use super::range::KeyRange;
use super::revisions::{Put, Revisions};
use super::rpc::Calls;
use crate::backoff::Backoff;
use crate::state::changes::Changes;
use crate::state::store::{Op, Revision, StoreError};
use crate::upstream::random;

const RANGE: &str = "/etcdserverpb.KV/Range";
/// How long is waited before a watch is begun again: at first, and at most.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long nothing may be told while all else is answered: who watches is to list again then, and finds out that he cannot watch.
const LOST: Duration = Duration::from_secs(30);

/// A watch that has begun.
pub(super) struct Watching {
    pub(super) client: Client,
    range: KeyRange,
    /// How much of each key is the store's prefix.
    cut: usize,
    changes: Arc<Changes>,
    /// All that was done until then was told.
    after: Revision,
    /// Of which history that is.
    number: u64,
    /// What was put last of it.
    last: Option<Put>,
    begun: Option<Begun>,
    backoff: Backoff,
    is_lost: bool,
    /// Since when it was begun again and again, and nothing came of it.
    lost_since: Option<Instant>,
    pub(super) lost_after: Duration,
}

struct Begun {
    answers: Streaming<WatchResponse>,
    number: u64,
    connection: Connection,
}

impl Watching {
    /// Begins to tell `changes` what is done after a revision.
    pub(super) async fn begin(
        client: Client,
        range: KeyRange,
        cut: usize,
        after: Revision,
        changes: Arc<Changes>,
    ) -> Result<Self, Failure> {
        let begun = begin(&client, &range, after, None).await?;
        let (number, backoff) = (begun.number, Backoff::new(PAUSE, LONGEST_PAUSE));
        let (last, begun, lost_after) = (None, Some(begun), LOST);
        let (is_lost, lost_since) = (false, None);
        Ok(Self { client, range, cut, changes, after, number, last, begun, backoff, is_lost, lost_since, lost_after })
    }

    /// Goes on until nobody watches any more. All that comes is read, whoever is slow: what is not read would stop others.
    pub(super) async fn go_on(mut self, dropped: oneshot::Receiver<()>) {
        let mut numbers = self.client.link.history().numbers();
        let number = self.number;
        let changes = self.changes.clone();
        select! {
            _ = dropped => {}
            () = self.tell() => changes.forget(),
            _ = numbers.wait_for(|current| *current != number) => changes.forget(),
        }
    }

    /// Ends when what was done cannot be told any more.
    async fn tell(&mut self) {
        loop {
            let begun = match self.begun.take() {
                Some(begun) => Ok(begun),
                None => begin(&self.client, &self.range, self.after, self.last.as_ref()).await,
            };
            let failure = match begun {
                Ok(begun) if begun.number != self.number => return,
                Ok(Begun { answers, connection, .. }) => {
                    self.note(None);
                    let began = Instant::now();
                    let failure = self.hear(answers).await;
                    // What was quiet for so long may have had nothing to tell.
                    self.lost_since.take_if(|_| began.elapsed() >= self.lost_after);
                    self.client.link.leave(&connection).await;
                    failure
                }
                Err(failure) => failure,
            };
            // What cannot be told by anybody is to be listed again.
            if matches!(failure, Failure::Compacted | Failure::Nonsense(_) | Failure::TooLarge) {
                tracing::info!("changes of {:?} in etcd are lost: {}", self.prefix(), StoreError::from(failure));
                return;
            }
            let words = StoreError::from(failure.clone());
            self.note(Some(failure));
            let since = *self.lost_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= self.lost_after && self.is_answered().await {
                tracing::warn!("all but the changes of {:?} in etcd is answered: {words}", self.prefix());
                return;
            }
            sleep(self.backoff.next(random())).await;
        }
    }

    /// Whether all that is asked at once is answered. If not, it goes on from where it was when that is over.
    async fn is_answered(&self) -> bool {
        let KeyRange { key, end: range_end } = self.range.clone();
        let asked = RangeRequest { key, range_end, limit: 1, keys_only: true, ..RangeRequest::default() };
        self.client.range(&asked).await.is_ok()
    }

    /// Says once that nothing is told, and why, and once that it is again.
    fn note(&mut self, lost: Option<Failure>) {
        let was_lost = std::mem::replace(&mut self.is_lost, lost.is_some());
        match lost {
            Some(failure) if !was_lost => {
                tracing::warn!("changes of {:?} in etcd are not told: {}", self.prefix(), StoreError::from(failure));
            }
            None if was_lost => tracing::info!("changes of {:?} in etcd are told again", self.prefix()),
            _ => {}
        }
    }

    fn prefix(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.range.key)
    }

    /// Passes on what is told, until there is no more.
    async fn hear(&mut self, mut answers: Streaming<WatchResponse>) -> Failure {
        let mut revisions = Revisions::after(self.after, self.last.take());
        let failure = loop {
            let answer = match answers.message().await {
                Ok(Some(answer)) => answer,
                Ok(None) => break Failure::Elsewhere("it ended".to_owned()),
                Err(status) => break Failure::of(&status),
            };
            self.backoff.reset();
            self.lost_since = None;
            let record = |revision, ops: &[Op]| self.changes.record(revision, ops);
            if let Err(failure) = revisions.take(answer, self.cut, record) {
                break failure;
            }
        };
        self.after = revisions.done();
        self.last = revisions.into_last();
        failure
    }
}

async fn begin(client: &Client, range: &KeyRange, after: Revision, last: Option<&Put>) -> Result<Begun, Failure> {
    let history = client.link.history();
    if !history.may_have(after) {
        return Err(Failure::Compacted);
    }
    let begun = client.begin(|calls| begin_by(calls, history.clone(), range.clone(), after, last.cloned())).await;
    begun.map(|((answers, number), connection)| Begun { answers, number, connection })
}

async fn begin_by(
    calls: Calls,
    history: Arc<History>,
    range: KeyRange,
    after: Revision,
    last: Option<Put>,
) -> Result<(Streaming<WatchResponse>, u64), Failure> {
    // 0 stands for now. Nothing is done before 1.
    let revision = i64::try_from(after.max(1)).map_err(|_| Failure::Compacted)?;
    let KeyRange { key, end: range_end } = range;
    // A watch would say nothing of a revision that is still to come, as it is where etcd was put back.
    let there = RangeRequest { key: key.clone(), range_end: range_end.clone(), limit: 1, revision, keys_only: true };
    let before = history.seen();
    let there: RangeResponse = calls.unary(RANGE, there).await?;
    let header = there.header.ok_or(Failure::Nonsense("an answer does not say whose it is"))?;
    let number = history.note(before, &header).number;
    if let Some(last) = last {
        is_still_so(&calls, last).await?;
    }
    // From that revision on, which is known: what comes after it is kept whole for as long as it is kept itself.
    let create = WatchCreateRequest { key, range_end, start_revision: revision, progress_notify: true, fragment: true };
    let watch = WatchRequest { create: Some(create) };
    let mut answers: Streaming<WatchResponse> = calls.streaming("/etcdserverpb.Watch/Watch", watch).await?;
    let first = answers.message().await.map_err(|status| Failure::of(&status))?;
    match first {
        Some(first) if first.compact_revision > 0 => Err(Failure::Compacted),
        Some(first) if first.canceled => Err(Failure::Elsewhere(first.cancel_reason)),
        Some(first) if first.created => Ok((answers, number)),
        _ => Err(Failure::Elsewhere("it did not begin".to_owned())),
    }
}

/// A cluster that was put back, and has come further since than it was, has put something else then.
async fn is_still_so(calls: &Calls, Put { key, revision }: Put) -> Result<(), Failure> {
    let asked = RangeRequest { key, limit: 1, revision, keys_only: true, ..RangeRequest::default() };
    match calls.unary::<_, RangeResponse>(RANGE, asked).await {
        Ok(there) if there.kvs.first().is_some_and(|kv| kv.mod_revision == revision) => Ok(()),
        Ok(_) => Err(Failure::Compacted),
        // That is not known any more, and what was done since is.
        Err(Failure::Compacted) => Ok(()),
        Err(failure) => Err(failure),
    }
}
