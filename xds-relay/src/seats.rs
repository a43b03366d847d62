//! The seats of connections: there are so many, and of those without a stream one gives his to who comes: of the client that has most
//! of these the one that is longest without.
//!
//! A connection has a stream once its client was admitted to one and has asked something on it, and until none such is open. Whoever only
//! connects, or opens streams on which nothing is asked, or calls for which nobody is admitted, keeps nobody out; and who has a stream
//! keeps his seat, whoever comes.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::lock::lock;

/// All of them.
pub(crate) struct Seats {
    most: usize,
    table: Mutex<Table>,
}

/// Since when a seat is without a stream, and which it is.
type Idle = (u64, u64);

#[derive(Default)]
struct Table {
    /// How many were taken so far, or left idle, which orders them.
    moments: u64,
    taken: HashMap<u64, Sitting>,
    /// Those from this machine are one client.
    clients: HashMap<Option<IpAddr>, OfClient>,
    /// For each client with connections without a stream: how many it has, and the first of them.
    idle: BTreeSet<(usize, Reverse<Idle>)>,
    /// Who was told to give his seat away, and has not yet.
    leaving: Option<u64>,
    newcomer: Option<Waker>,
}

/// The connections from one address.
#[derive(Default)]
struct OfClient {
    taken: usize,
    idle: BTreeSet<Idle>,
}

struct Sitting {
    client: Option<IpAddr>,
    streams: u32,
    idle_since: u64,
    must_leave: bool,
    waker: Option<Waker>,
}

/// Why there is no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// All are taken by connections that have a stream.
    All,
    /// So are those that one client may have.
    OfClient,
}

/// What a connection sits on, until this is dropped.
pub(crate) struct Seat(Place);

/// Which seat it is: known to all that is done on the connection, and to some of it after that is over.
#[derive(Clone)]
pub(crate) struct Place {
    seats: Arc<Seats>,
    number: u64,
}

impl Seats {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, table: Mutex::default() })
    }

    /// How many there are.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        lock(&self.table).taken.len()
    }

    /// A seat for who comes from an address, of which all connections together may have so many. Pending while somebody gives his away;
    /// `told` is called where he is told to.
    pub(crate) fn poll_take(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        (client, most): (Option<IpAddr>, Option<usize>),
        told: impl FnOnce(),
    ) -> Poll<Result<Seat, Full>> {
        let mut table = lock(&self.table);
        let of_client = table.clients.get(&client).filter(|_| client.is_some());
        let full = match (of_client, most) {
            (Some(of_client), Some(most)) if of_client.taken >= most => Full::OfClient,
            _ if table.taken.len() >= self.most => Full::All,
            _ => return Poll::Ready(Ok(self.sit(&mut table, client))),
        };
        let longest = match full {
            Full::OfClient => of_client.and_then(|of_client| of_client.idle.first()),
            Full::All => table.idle.last().map(|(_, Reverse(first))| first),
        };
        let Some((_, longest)) = longest.copied() else { return Poll::Ready(Err(full)) };
        table.newcomer = Some(cx.waker().clone());
        // One for one: whoever is told leaves soon.
        if table.leaving.is_some() {
            return Poll::Pending;
        }
        table.leaving = Some(longest);
        let waker = table.taken.get_mut(&longest).and_then(|sitting| {
            sitting.must_leave = true;
            sitting.waker.take()
        });
        drop(table);
        told();
        waker.into_iter().for_each(Waker::wake);
        Poll::Pending
    }

    fn sit(self: &Arc<Self>, table: &mut Table, client: Option<IpAddr>) -> Seat {
        table.moments += 1;
        let (number, idle_since) = (table.moments, table.moments);
        let sitting = Sitting { client, streams: 0, idle_since, must_leave: false, waker: None };
        table.taken.insert(number, sitting);
        table.clients.entry(client).or_default().taken += 1;
        table.is_idle(client, (idle_since, number));
        Seat(Place { seats: self.clone(), number })
    }
}

impl Table {
    fn is_idle(&mut self, client: Option<IpAddr>, since: Idle) {
        self.of_client(client, |of_client| _ = of_client.idle.insert(since));
    }

    fn is_not_idle(&mut self, client: Option<IpAddr>, since: Idle) {
        self.of_client(client, |of_client| _ = of_client.idle.remove(&since));
    }

    /// Changes what one client has, and with it which has most.
    fn of_client(&mut self, client: Option<IpAddr>, change: impl FnOnce(&mut OfClient)) {
        let Some(of_client) = self.clients.get_mut(&client) else { return };
        if let Some(rank) = of_client.rank() {
            self.idle.remove(&rank);
        }
        change(of_client);
        self.idle.extend(of_client.rank());
        if of_client.taken == 0 {
            self.clients.remove(&client);
        }
    }
}

impl OfClient {
    fn rank(&self) -> Option<(usize, Reverse<Idle>)> {
        self.idle.first().map(|first| (self.idle.len(), Reverse(*first)))
    }
}

impl Seat {
    /// Which it is.
    pub(crate) fn place(&self) -> Place {
        self.0.clone()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Place { seats, number } = &self.0;
        let mut table = lock(&seats.table);
        let Some(Sitting { client, idle_since, .. }) = table.taken.remove(number) else { return };
        table.of_client(client, |of_client| {
            of_client.idle.remove(&(idle_since, *number));
            of_client.taken -= 1;
        });
        if table.leaving == Some(*number) {
            table.leaving = None;
        }
        let newcomer = table.newcomer.take();
        drop(table);
        newcomer.into_iter().for_each(Waker::wake);
    }
}

impl Place {
    /// There is one more stream. Whoever was told to leave a moment ago stays, and who waits for that looks for another.
    pub(crate) fn begins(&self) {
        let mut table = lock(&self.seats.table);
        let Some(sitting) = table.taken.get_mut(&self.number) else { return };
        sitting.streams = sitting.streams.saturating_add(1);
        if sitting.streams > 1 {
            return;
        }
        sitting.must_leave = false;
        let (client, since) = (sitting.client, sitting.idle_since);
        table.is_not_idle(client, (since, self.number));
        if table.leaving != Some(self.number) {
            return;
        }
        table.leaving = None;
        let newcomer = table.newcomer.take();
        drop(table);
        newcomer.into_iter().for_each(Waker::wake);
    }

    /// One is over.
    pub(crate) fn ends(&self) {
        let table = &mut *lock(&self.seats.table);
        let Some(sitting) = table.taken.get_mut(&self.number) else { return };
        sitting.streams = sitting.streams.saturating_sub(1);
        if sitting.streams > 0 {
            return;
        }
        table.moments += 1;
        sitting.idle_since = table.moments;
        let (client, since) = (sitting.client, sitting.idle_since);
        table.is_idle(client, (since, self.number));
    }

    /// Ready once somebody else is to have the seat, and this connection is to end.
    pub(crate) fn poll_leave(&self, cx: &mut Context<'_>) -> Poll<()> {
        match lock(&self.seats.table).taken.get_mut(&self.number) {
            Some(sitting) if !sitting.must_leave => {
                if sitting.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
                    sitting.waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}

#[cfg(test)]
mod tests;
