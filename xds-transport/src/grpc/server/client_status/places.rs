//! Places of answers about clients, from when one is made until it was read: so many at a time, and of each client one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::grpc::server::turns::{Turn, Turns};

/// How many answers there may be, made or read.
const AT_A_TIME: usize = 4;

/// All of them.
#[derive(Clone)]
pub(super) struct Places {
    all: Turns,
    clients: Clients,
}

/// The turns of each client that has a place or waits for one, and for how many calls.
type Clients = Arc<Mutex<HashMap<u64, (Turns, usize)>>>;

/// One of them, until it is dropped.
pub(super) struct Place {
    all: Turns,
    _turn: Turn,
    _own: Option<Own>,
}

/// The turn of a call among those of its client.
struct Own {
    clients: Clients,
    client: u64,
    turn: Option<Turn>,
}

impl Places {
    pub(super) fn new() -> Self {
        Self { all: Turns::new(AT_A_TIME), clients: Clients::default() }
    }

    /// When it is the turn of a call of its client, and of its client. Without one it is of a client of its own.
    pub(super) async fn next(&self, client: Option<u64>) -> Place {
        let own = match client {
            Some(client) => Some(self.own(client).await),
            None => None,
        };
        let turn = self.all.of(client).next().come().await;
        Place { all: self.all.clone(), _turn: turn, _own: own }
    }

    /// How many nobody has.
    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.all.left()
    }

    async fn own(&self, client: u64) -> Own {
        let turns = {
            let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            let (turns, calls) = clients.entry(client).or_insert_with(|| (Turns::new(1), 0));
            *calls += 1;
            turns.clone()
        };
        // It leaves its client behind where it is dropped while it waits.
        let mut own = Own { clients: self.clients.clone(), client, turn: None };
        own.turn = Some(turns.next().come().await);
        own
    }
}

impl Place {
    /// Whether anybody waits for one.
    pub(super) fn is_waited_for(&self) -> bool {
        self.all.are_waited_for()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // Whose turn is next is woken before its client is looked for.
        self.turn = None;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, calls)) = clients.get_mut(&self.client) {
            *calls -= 1;
            if *calls == 0 {
                clients.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Waiting = Pin<Box<dyn Future<Output = Place>>>;

    fn ask(places: &Places, client: Option<u64>) -> Waiting {
        let places = places.clone();
        Box::pin(async move { places.next(client).await })
    }

    fn come(waiting: &mut Waiting) -> Option<Place> {
        match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    #[test]
    fn each_client_has_one_at_a_time_and_all_have_so_many() {
        let places = Places::new();
        let mut of_one: Vec<_> = (0..3).map(|_| ask(&places, Some(1))).collect();
        let first = come(&mut of_one[0]).expect("it is the first");
        assert!(come(&mut of_one[1]).is_none() && come(&mut of_one[2]).is_none());
        assert!(!first.is_waited_for(), "others find room");
        let mut others: Vec<_> = (2..).take(AT_A_TIME).map(|client| ask(&places, Some(client))).collect();
        let have: Vec<_> = others.iter_mut().map(come).collect();
        assert_eq!(have.iter().flatten().count(), AT_A_TIME - 1);
        assert!(first.is_waited_for());
        drop(first);
        let last = come(others.last_mut().unwrap()).expect("who waited longest is next");
        assert!(come(&mut of_one[1]).is_none(), "all are taken again");
        drop((have, last));
        let second = come(&mut of_one[1]).expect("there is room");
        assert!(come(&mut of_one[2]).is_none());
        // Who goes while it waits is not waited for.
        drop((of_one, second, others));
        assert!(places.clients.lock().unwrap().is_empty());
        assert_eq!(places.all.left(), AT_A_TIME);
    }

    #[test]
    fn who_is_of_no_client_is_one_of_its_own() {
        let places = Places::new();
        let mut asked: Vec<_> = (0..=AT_A_TIME).map(|_| ask(&places, None)).collect();
        let have: Vec<_> = asked.iter_mut().filter_map(come).collect();
        assert_eq!(have.len(), AT_A_TIME);
    }
}
