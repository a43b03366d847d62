//! Calls that are answered by one member or another, in time.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::failure::Failure;
use super::history::Seen;
use super::link::{Connection, Link};
use super::messages::{Header, RangeRequest, RangeResponse, TxnRequest, TxnResponse};
use super::patience;
use super::rpc::Calls;

/// How long one member has to answer what another may be asked as well: at first, and longer each time that this was not enough.
const EACH: Duration = Duration::from_secs(2);
/// How long is waited before all members are tried again: at first, and at most.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Who calls. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) link: Arc<Link>,
    deadline: Duration,
    /// How long one member has: at first, and at most.
    each: Duration,
    longest: Duration,
}

/// What was answered.
struct Tried<A> {
    answer: A,
    /// What had been seen of the cluster before it was asked.
    before: Seen,
    connection: Connection,
}

/// Whether it may be done twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Yes,
    /// It may, and what is not answered in time is asked for otherwise, by who asked.
    Otherwise,
    No,
}

impl Client {
    pub(super) fn new(link: Link, deadline: Duration) -> Self {
        Self { link: Arc::new(link), deadline, each: EACH, longest: deadline }
    }

    /// The same, which has less time for each member, always.
    pub(super) fn hurried(&self, each: Duration) -> Self {
        let each = each.min(EACH);
        Self { each, longest: each, ..self.clone() }
    }

    /// The same, where so many answers were late already.
    pub(super) fn patient(&self, late: u32) -> Self {
        Self { each: self.patience(late), ..self.clone() }
    }

    fn patience(&self, late: u32) -> Duration {
        patience::after(self.each, late).min(self.longest)
    }

    /// What is in a range of keys, and in which history that is. Of several keys it is [`Late`](Failure::Late) that they do not come in
    /// time: fewer may.
    pub(super) async fn range(&self, asked: &RangeRequest) -> Result<(RangeResponse, Seen), Failure> {
        let range = |calls: Calls| {
            let asked = asked.clone();
            async move { calls.unary::<_, RangeResponse>("/etcdserverpb.KV/Range", asked).await }
        };
        let again = if asked.limit > 1 { Again::Otherwise } else { Again::Yes };
        self.noted(again, range, |answer| answer.header.as_ref()).await
    }

    /// What became of a transaction: it is tried again only where it was surely not begun.
    pub(super) async fn txn(&self, asked: &TxnRequest) -> Result<TxnResponse, Failure> {
        let txn = |calls: Calls| {
            let asked = asked.clone();
            async move { calls.unary::<_, TxnResponse>("/etcdserverpb.KV/Txn", asked).await }
        };
        let (answer, _) = self.noted(Again::No, txn, |answer| answer.header.as_ref()).await?;
        Ok(answer)
    }

    /// What may be done twice, and of which members may know more than others.
    pub(super) async fn ask<Q, A>(&self, method: &'static str, asked: Q) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let ask = |calls: Calls| {
            let asked = asked.clone();
            async move { calls.unary(method, asked).await }
        };
        self.tried(Again::Yes, ask).await.map(|tried| tried.answer)
    }

    /// The first answer of a stream.
    pub(super) async fn ask_first<Q, A>(&self, method: &'static str, asked: Q) -> Result<A, Failure>
    where
        Q: Message + Clone + Unpin + 'static,
        A: Message + Default + 'static,
    {
        let ask = |calls: Calls| {
            let asked = asked.clone();
            async move {
                let answers = calls.streaming(method, asked).await?.message().await;
                let answer = answers.map_err(|status| Failure::of(&status))?;
                answer.ok_or_else(|| Failure::Unsure("it ended without an answer".to_owned()))
            }
        };
        self.tried(Again::Yes, ask).await.map(|tried| tried.answer)
    }

    /// What is begun by several calls of one connection, and may be begun twice.
    pub(super) async fn begin<A, F: Future<Output = Result<A, Failure>>>(
        &self,
        call: impl Fn(Calls) -> F,
    ) -> Result<(A, Connection), Failure> {
        self.tried(Again::Yes, call).await.map(|tried| (tried.answer, tried.connection))
    }

    async fn noted<A, F: Future<Output = Result<A, Failure>>>(
        &self,
        again: Again,
        call: impl Fn(Calls) -> F,
        header: impl Fn(&A) -> Option<&Header>,
    ) -> Result<(A, Seen), Failure> {
        let Tried { answer, before, .. } = self.tried(again, call).await?;
        let header = header(&answer).ok_or_else(|| Failure::Unsure("an answer does not say whose it is".to_owned()))?;
        let seen = self.link.history().note(before, header);
        Ok((answer, seen))
    }

    /// Calls until it is answered, or the time is over.
    async fn tried<A, F: Future<Output = Result<A, Failure>>>(
        &self,
        again: Again,
        call: impl Fn(Calls) -> F,
    ) -> Result<Tried<A>, Failure> {
        let until = Instant::now() + self.deadline;
        let mut last = Failure::Elsewhere(format!("nobody answered within {:?}", self.deadline));
        let (mut pause, mut late) = (PAUSE, 0);
        loop {
            let connection = match timeout_at(until, self.link.connection()).await {
                Err(_) => return Err(last),
                Ok(Ok(connection)) => Some(connection),
                Ok(Err(Failure::Elsewhere(why))) => {
                    last = Failure::Elsewhere(why);
                    None
                }
                Ok(Err(refused)) => return Err(refused),
            };
            if let Some(connection) = connection {
                let before = self.link.history().seen();
                let patience = if again == Again::No { self.deadline } else { self.patience(late) };
                match self.once(&connection, until.min(Instant::now() + patience), &call).await {
                    Ok(answer) => return Ok(Tried { answer, before, connection }),
                    Err(Failure::Elsewhere(why)) => last = Failure::Elsewhere(why),
                    Err(Failure::Unsure(why)) if again != Again::No => last = Failure::Elsewhere(why),
                    Err(Failure::Late) if again == Again::No => return Err(Failure::Unsure(Failure::LATE.to_owned())),
                    Err(Failure::Late) if again == Again::Yes => {
                        last = Failure::Elsewhere(Failure::LATE.to_owned());
                        late += 1;
                    }
                    // Who does not know us when we were introduced just now will not the next time.
                    Err(Failure::Stranger(why)) if last == Failure::Stranger(why.clone()) => return Err(last),
                    Err(Failure::Stranger(why)) => last = Failure::Stranger(why),
                    // It was answered, and nobody knows how.
                    Err(Failure::TooLarge | Failure::Nonsense(_)) if again == Again::No => {
                        return Err(Failure::Unsure("it was answered in a way that cannot be read".to_owned()));
                    }
                    Err(other) => return Err(other),
                }
            }
            let next = Instant::now() + pause;
            if next >= until {
                return Err(last);
            }
            sleep_until(next).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn once<A, F: Future<Output = Result<A, Failure>>>(
        &self,
        connection: &Connection,
        until: Instant,
        call: impl Fn(Calls) -> F,
    ) -> Result<A, Failure> {
        let answer = timeout_at(until, call(connection.calls.clone())).await.unwrap_or(Err(Failure::Late));
        match &answer {
            Err(Failure::Elsewhere(_) | Failure::Unsure(_) | Failure::Late) => self.link.leave(connection).await,
            Err(Failure::Stranger(_)) => self.link.introduce_again(connection).await,
            _ => {}
        }
        answer
    }
}
