//! The connections of clients: not so many that the relay has no descriptors for anything else, and a shortage of them ends
//! nothing.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;

use crate::lock::lock;
use crate::metrics::AUDIT;
use crate::relay_core::{Identity, RelayCore};
use crate::seats::{Full, Seat, Seats};
use crate::socket::{self, Io};

/// How long nothing is accepted after the system had nothing to accept it with.
const PAUSE: Duration = Duration::from_millis(100);

/// Where connections are accepted.
pub(crate) trait Listener: Unpin {
    /// What a connection is.
    type Io: Accepted;

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Io>>;
}

/// A connection on which nothing was said yet.
pub(crate) trait Accepted: Unpin {
    /// Where it comes from, as far as one client is told from others by that.
    fn client(&self) -> Option<IpAddr>;

    /// Has small messages not wait for others.
    fn hurry(&self);
}

impl Accepted for Io {
    fn client(&self) -> Option<IpAddr> {
        Self::client(self)
    }

    fn hurry(&self) {
        Self::hurry(self);
    }
}

impl Listener for socket::Listener {
    type Io = Io;

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Io>> {
        Self::poll_accept(self, cx)
    }
}

/// Where connections are to be accepted next, in place of where they are. Clones are the same.
pub(crate) struct Next<L = socket::Listener>(Arc<Mutex<Waiting<L>>>);

struct Waiting<L> {
    listener: Option<L>,
    accepts: Option<Waker>,
}

/// The connections that clients make. Where there are as many as there may be, one without a stream makes room for who comes, and where
/// all have one who comes is closed at once.
pub(crate) struct Incoming<L: Listener = socket::Listener> {
    listener: L,
    next: Next<L>,
    /// The one before, until nobody waits there any more.
    left: Option<L>,
    seats: Arc<Seats>,
    /// Who waits for a seat that is given away.
    newcomer: Option<L::Io>,
    core: Arc<RelayCore>,
    pause: Option<Pin<Box<Sleep>>>,
    /// Words about it are said once.
    short: bool,
}

impl<L> Next<L> {
    /// Connections are accepted there from now on. Those that were made before stay.
    pub(crate) fn set(&self, listener: L) {
        let accepts = {
            let mut waiting = lock(&self.0);
            waiting.listener = Some(listener);
            waiting.accepts.take()
        };
        accepts.into_iter().for_each(Waker::wake);
    }

    fn take(&self, cx: &Context<'_>) -> Option<L> {
        let mut waiting = lock(&self.0);
        waiting.accepts = Some(cx.waker().clone());
        waiting.listener.take()
    }
}

impl<L> Default for Next<L> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Waiting { listener: None, accepts: None })))
    }
}

impl<L> Clone for Next<L> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<L: Listener> Incoming<L> {
    /// Where somebody waits: first of all at the one that is left.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<L::Io>> {
        if let Some(next) = self.next.take(cx) {
            self.left = Some(std::mem::replace(&mut self.listener, next));
            self.pause = None;
        }
        match self.left.as_ref().map(|left| left.poll_accept(cx)) {
            Some(Poll::Ready(accepted)) => return Poll::Ready(accepted),
            Some(Poll::Pending) => self.left = None,
            None => {}
        }
        self.listener.poll_accept(cx)
    }
}

impl<L: Listener> Incoming<L> {
    /// At most `limit` connections at a time; from `next` once there is one.
    pub(crate) fn new(listener: L, next: Next<L>, limit: usize, core: Arc<RelayCore>) -> Self {
        tracing::info!(limit, "so many connections clients may have");
        let seats = Seats::new(limit);
        let counted = seats.clone();
        core.tell_use("connections", move || (counted.taken(), counted.most()));
        Self { listener, next, left: None, seats, newcomer: None, core, pause: None, short: false }
    }

    /// A seat for who comes; none where all are taken for good.
    fn poll_seat(&mut self, cx: &mut Context<'_>, io: &L::Io) -> Poll<Option<Seat>> {
        let core = &self.core;
        let client = (io.client(), core.part_of_one_client(self.seats.most()));
        match ready!(self.seats.poll_take(cx, client, || core.metrics().idle_connection_closed())) {
            Ok(seat) => {
                self.short = false;
                return Poll::Ready(Some(seat));
            }
            Err(Full::All) => {
                self.core.metrics().downstream_refused("connections");
                let limit = self.seats.most();
                self.say_once(format_args!(
                    "no more connections are taken: {limit} have a stream (limits.connections, ulimit -n)"
                ));
            }
            Err(Full::OfClient) => {
                self.core.metrics().downstream_refused("one_client");
                let (address, most) = client;
                let address = address.map_or_else(String::new, |address| Identity::of_address(address).to_string());
                tracing::warn!(
                    target: AUDIT, client = %address,
                    "a connection is refused: more than {} connections of one client (limits.one_client of limits.connections of the relay)",
                    most.unwrap_or_default()
                );
            }
        }
        Poll::Ready(None)
    }

    fn say_once(&mut self, words: std::fmt::Arguments<'_>) {
        if !std::mem::replace(&mut self.short, true) {
            tracing::warn!("{words}");
        }
    }
}

impl<L: Listener> Stream for Incoming<L> {
    /// With its seat.
    type Item = io::Result<(L::Io, Seat)>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<(L::Io, Seat)>>> {
        loop {
            if let Some(io) = self.newcomer.take() {
                match self.poll_seat(cx, &io) {
                    Poll::Ready(Some(seat)) => {
                        io.hurry();
                        return Poll::Ready(Some(Ok((io, seat))));
                    }
                    Poll::Ready(None) => {}
                    Poll::Pending => {
                        self.newcomer = Some(io);
                        return Poll::Pending;
                    }
                }
            }
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match ready!(self.poll_accept(cx)) {
                Ok(io) => self.newcomer = Some(io),
                Err(error) if is_of_the_connection(&error) => {}
                Err(error) => {
                    // The connection waits where it is, and accepting it again at once would be all that is done.
                    self.say_once(format_args!("connections wait, none can be accepted: {error}"));
                    self.pause = Some(Box::pin(sleep(PAUSE)));
                }
            }
        }
    }
}

/// It was over before it was accepted.
fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio::time::timeout;

    use super::*;
    use crate::config::Config;
    use crate::metrics::{Gauges, Metrics};
    use crate::relay_core::EveryNode;

    /// Accepts these or fails, and then has nothing to accept.
    struct Coming(Mutex<VecDeque<io::Result<From>>>);

    /// A connection from there.
    #[derive(Debug, PartialEq)]
    struct From(Option<IpAddr>);

    impl Accepted for From {
        fn client(&self) -> Option<IpAddr> {
            self.0
        }

        fn hurry(&self) {}
    }

    impl Listener for Coming {
        type Io = From;

        fn poll_accept(&self, _: &mut Context<'_>) -> Poll<io::Result<From>> {
            self.0.lock().unwrap().pop_front().map_or(Poll::Pending, Poll::Ready)
        }
    }

    fn incoming(coming: impl Iterator<Item = io::Result<From>>, limit: usize) -> Incoming<Coming> {
        let config = Config::parse("relay.yaml", "origins: [{ name: up, server: 'a:1' }]").unwrap();
        let dialer = Box::new(crate::origins::Connections::new(&config).unwrap());
        let core = RelayCore::new(&config, Box::new(EveryNode), dialer, Arc::new(Metrics::new([])));
        Incoming::new(Coming(Mutex::new(coming.collect())), Next::default(), limit, core)
    }

    /// How many failures are yet to come after one look, and after another a pause later.
    async fn left(failures: Vec<io::Error>) -> [usize; 2] {
        let mut incoming = incoming(failures.into_iter().map(Err), 10);
        let mut look = async || {
            let nobody = timeout(PAUSE * 3 / 2, std::future::poll_fn(|cx| Pin::new(&mut incoming).poll_next(cx)));
            assert!(nobody.await.is_err());
            incoming.listener.0.lock().unwrap().len()
        };
        [look().await, look().await]
    }

    /// Half of those that there may be.
    #[test]
    fn one_address_has_its_part_and_who_comes_from_this_machine_whatever_is_left() {
        let [one, other] = [1, 2].map(|last| Some(IpAddr::from([10, 0, 0, last])));
        let coming = [one, one, one, other, None, None, None, one];
        let mut incoming = incoming(coming.into_iter().map(|from| Ok(From(from))), 5);
        let cx = &mut Context::from_waker(Waker::noop());
        let mut seats = Vec::new();
        while let Poll::Ready(Some(Ok((io, seat)))) = Pin::new(&mut incoming).poll_next(cx) {
            seat.place().begins();
            seats.push((io.0, seat));
        }
        let accepted: Vec<_> = seats.iter().map(|(from, _)| *from).collect();
        assert_eq!(accepted, [one, one, other, None, None]);
        let metrics = incoming.core.metrics().render(&Gauges::default());
        for (limit, refused) in [("one_client", 2), ("connections", 1)] {
            let line = format!("xds_relay_downstream_refused_total{{limit=\"{limit}\"}} {refused}\n");
            assert!(metrics.contains(&line), "{metrics}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_was_over_holds_up_no_other_and_a_shortage_all_for_a_while() {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
        let over = [ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted].map(io::Error::from);
        assert_eq!(left(over.into()).await, [0, 0]);
        // ENFILE, EMFILE.
        let short = [23, 24].into_iter().cycle().take(10).map(io::Error::from_raw_os_error);
        // One at once and one after a pause; then two more in three halves of a pause.
        assert_eq!(left(short.collect()).await, [8, 6]);
    }
}
