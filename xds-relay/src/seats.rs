//! The seats of connections: there are so many, and who is longest without a stream gives his to who comes.
//!
//! A connection has a stream once something was asked on one, and until none is open. Whoever only connects, or opens streams on which
//! nothing is asked, keeps nobody out; and who has a stream keeps his seat, whoever comes.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::lock::lock;

/// All of them.
pub(crate) struct Seats {
    most: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// How many were taken so far, or left idle, which orders them.
    moments: u64,
    taken: HashMap<u64, Sitting>,
    /// Those without a stream, by when they were without one.
    idle: BTreeSet<(u64, u64)>,
    clients: HashMap<IpAddr, OfClient>,
    /// Who was told to give his seat away, and has not yet.
    leaving: Option<u64>,
    newcomer: Option<Waker>,
}

/// The connections from one address.
#[derive(Default)]
struct OfClient {
    taken: usize,
    idle: BTreeSet<(u64, u64)>,
}

struct Sitting {
    client: Option<IpAddr>,
    calls: u32,
    has_asked: bool,
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
        if table.leaving.is_some() {
            table.newcomer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let of_client = client.and_then(|client| table.clients.get(&client));
        let full = match (of_client, most) {
            (Some(of_client), Some(most)) if of_client.taken >= most => Full::OfClient,
            _ if table.taken.len() >= self.most => Full::All,
            _ => return Poll::Ready(Ok(self.sit(&mut table, client))),
        };
        let idle = match full {
            Full::OfClient => of_client.map(|of_client| &of_client.idle),
            Full::All => Some(&table.idle),
        };
        let Some((_, longest)) = idle.and_then(BTreeSet::first).copied() else { return Poll::Ready(Err(full)) };
        table.leaving = Some(longest);
        table.newcomer = Some(cx.waker().clone());
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
        let sitting = Sitting { client, calls: 0, has_asked: false, idle_since, must_leave: false, waker: None };
        table.taken.insert(number, sitting);
        client.into_iter().for_each(|client| table.clients.entry(client).or_default().taken += 1);
        table.is_idle(client, (idle_since, number));
        Seat(Place { seats: self.clone(), number })
    }
}

impl Table {
    fn is_idle(&mut self, client: Option<IpAddr>, since: (u64, u64)) {
        self.idle.insert(since);
        if let Some(client) = client.and_then(|client| self.clients.get_mut(&client)) {
            client.idle.insert(since);
        }
    }

    fn is_not_idle(&mut self, client: Option<IpAddr>, since: (u64, u64)) {
        self.idle.remove(&since);
        if let Some(client) = client.and_then(|client| self.clients.get_mut(&client)) {
            client.idle.remove(&since);
        }
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
        table.is_not_idle(client, (idle_since, *number));
        if let Some(client) = client
            && let Some(of_client) = table.clients.get_mut(&client)
        {
            of_client.taken -= 1;
            if of_client.taken == 0 {
                table.clients.remove(&client);
            }
        }
        if table.leaving == Some(*number) {
            table.leaving = None;
        }
        let newcomer = table.newcomer.take();
        drop(table);
        newcomer.into_iter().for_each(Waker::wake);
    }
}

impl Place {
    /// A call begins.
    pub(crate) fn begins(&self) {
        if let Some(sitting) = lock(&self.seats.table).taken.get_mut(&self.number) {
            sitting.calls = sitting.calls.saturating_add(1);
        }
    }

    /// Something is asked on one: from now on there is a stream.
    pub(crate) fn asks(&self) {
        let table = &mut *lock(&self.seats.table);
        let Some(sitting) = table.taken.get_mut(&self.number) else { return };
        if sitting.calls == 0 || mem::replace(&mut sitting.has_asked, true) {
            return;
        }
        let (client, since) = (sitting.client, sitting.idle_since);
        table.is_not_idle(client, (since, self.number));
    }

    /// A call is over.
    pub(crate) fn ends(&self) {
        let table = &mut *lock(&self.seats.table);
        let Some(sitting) = table.taken.get_mut(&self.number) else { return };
        sitting.calls = sitting.calls.saturating_sub(1);
        if sitting.calls > 0 || !mem::replace(&mut sitting.has_asked, false) {
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
