//! What happens between the relay and its origins.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use xds_transport::Protocol;
use xds_transport::server::{self, Settings};

use xdstp_client::upstream::Consumer as _;

use crate::hops::{FarEnd, UpHop, Wire};
use crate::messages::{Request, Response, describe_request, describe_response};
use crate::network::Network;
use crate::random::Random;
use crate::world::ORIGINS;

/// The longest that a slow answer is on its way, in ms.
const SLOWEST: u64 = 40_000;
/// The time between two of its bytes.
const BYTE: u64 = 5000;

impl Network<'_> {
    pub(super) fn cut_origin(&mut self, server: usize) {
        for far in self.up.iter_mut().filter(|hop| hop.number() == server).filter_map(|hop| hop.far.as_mut()) {
            far.cut(&mut self.random, self.now);
        }
    }

    /// The origin learns that a stream is over.
    pub(super) fn end(&mut self, hop: &mut UpHop) {
        if let Some(mut far) = hop.far.take() {
            let cache = self.origins.cache(hop.origin, far.replica, hop.group);
            far.servers().for_each(|server| server.close(cache));
        }
    }

    /// When something happens by itself between the relay and an origin.
    pub(super) fn next_up(&self, hop: &UpHop) -> Option<u64> {
        let silent_until = self.silent_until[hop.number()];
        let silent = silent_until > self.now;
        let arrives = hop.far.as_ref().and_then(|far| far.wires().filter_map(Wire::next).min());
        // What is long on its way comes byte by byte.
        let byte = arrives.filter(|at| *at > self.now + BYTE).map(|_| self.now + BYTE);
        let full = hop.far.as_ref().is_some_and(|far| far.wires().any(|wire| !wire.down.has_room(self.window())));
        let timeout = hop.poll_timeout(silent || full).map(|at| self.ms(at));
        [timeout, arrives, byte, silent.then_some(silent_until)].into_iter().flatten().min()
    }

    pub(super) fn drive_up(&mut self, hop: &mut UpHop) -> Result<bool, String> {
        let (now, away) = (self.instant(), self.away_until[hop.number()] > self.now);
        let mut progress = hop.nudged.upgrade().is_some_and(|nudged| nudged.take());
        if hop.far.as_ref().and_then(|far| far.wire.noticed_at).is_some_and(|at| at <= self.now) {
            progress = true;
            self.end(hop);
            disconnected(hop, now, &mut self.random);
        }
        hop.turn(now);
        progress |= hop.feed.has_more_commands();
        if hop.machine.should_connect(now) {
            progress = true;
            if away {
                disconnected(hop, now, &mut self.random);
            } else if self.hangs_up_until[hop.number()] > self.now {
                let connection = hop.machine.connected(now);
                hop.feed.connection(now, connection);
                disconnected(hop, now, &mut self.random);
            } else {
                let several = self.world.setup.servers[hop.origin] > 1;
                let any = if several { hop.server } else { self.random.index(2) };
                let replica = hop.replica.unwrap_or(any);
                let server = server::Stream::new(hop.protocol, Settings::default());
                hop.far = Some(FarEnd { replica, server, wire: Wire::default(), apart: BTreeMap::new() });
                let connection = hop.machine.connected(now);
                hop.feed.connection(now, connection);
                self.say(|| format!("relay connects to {replica} of origin {}", hop.origin));
            }
            hop.turn(now);
        }
        if hop.apart {
            return Ok(self.drive_apart(hop)? || progress);
        }
        let label = format!("{}.{}/{:?}", hop.origin, hop.server, hop.group);
        let UpHop { far: Some(far), machine, feed, protocol, .. } = hop else { return Ok(progress) };
        while !feed.has_more_commands()
            && let Some(message) = machine.poll_transmit(now)
        {
            let request = Request::decode(*protocol, &message);
            self.say(|| format!("relay -> origin {label} {}", describe_request(&request)));
            may_refuse(request)?;
            far.wire.up.send(self.arrival(), "", message);
            progress = true;
        }
        let from = From {
            origin: hop.origin,
            server: hop.server,
            replica: far.replica,
            group: hop.group,
            protocol: *protocol,
        };
        progress |= self.answer(from, &mut far.server, &mut far.wire)?;
        if hop.far.as_ref().is_some_and(|far| far.wire.down.next().is_some()) {
            hop.machine.received(now);
            hop.feed.received(now);
        }
        while let Some(far) = &mut hop.far
            && let Some(message) = far.wire.down.receive(self.now)
        {
            if let Some(connection) = hop.machine.handle_message(now, message).map_err(|error| error.to_string())? {
                (hop.answered, hop.fails) = (true, false);
                hop.feed.connection(now, connection);
            }
            hop.deliver(now);
            hop.turn(now);
            progress = true;
        }
        Ok(progress)
    }

    /// The far end of a stream reads what has arrived, and says what it has to say.
    pub(super) fn answer(&mut self, from: From, server: &mut server::Stream, wire: &mut Wire) -> Result<bool, String> {
        let (now, mut progress) = (self.instant(), false);
        let From { origin, server: of, replica, group, protocol } = from;
        let number = origin + ORIGINS * of;
        let silent = self.silent_until[number] > self.now;
        let slow = self.slow_until[number] > self.now;
        let (window, narrow) = (self.window(), self.world.setup.narrow);
        let cache = self.origins.cache(origin, replica, group);
        while let Some(message) = wire.up.receive(self.now) {
            server.handle_message(now, message, cache).map_err(|error| error.to_string())?;
            progress = true;
        }
        while !silent
            && wire.down.has_room(window)
            && let Some(transmit) = server.poll_transmit(now, cache).map_err(|error| error.to_string())?
        {
            let message = transmit.into_bytes();
            // What is said is only written down where it is read.
            if let Some(log) = &mut self.log {
                let response = describe_response(&Response::decode(protocol, &message));
                let _ = writeln!(log, "{:>7} origin {origin}.{of}/{group:?} -> {response}", self.now);
            }
            self.messages += 1;
            let slowness = if slow { self.random.below(SLOWEST) } else { 0 };
            let sent = wire.sent(self.now, narrow, message.len());
            let arrives = sent + self.random.below(self.world.setup.latency) + slowness;
            wire.down.send(arrives, "", message);
            progress = true;
        }
        Ok(progress)
    }
}

/// Who is at the far end of a stream, and what it speaks.
#[derive(Clone, Copy)]
pub(super) struct From {
    pub(super) origin: usize,
    pub(super) server: usize,
    pub(super) replica: usize,
    pub(super) group: Option<usize>,
    pub(super) protocol: Protocol,
}

/// The relay notices that a stream to an origin is over, or that none can be made.
pub(super) fn disconnected(hop: &mut UpHop, now: Instant, random: &mut Random) {
    let connection = hop.machine.disconnected(now, Some("cut".into()), random.below(u64::MAX));
    hop.fails = !std::mem::take(&mut hop.answered);
    hop.feed.connection(now, connection);
}

/// Rule 145: nothing that can be read is refused.
pub(super) fn may_refuse(request: Request) -> Result<(), String> {
    match request.error.filter(|error| !refuses_names_of_others(&error.message)) {
        Some(error) => Err(format!("rule 145: the relay refuses what it can read: {}", error.message)),
        None => Ok(()),
    }
}

/// Rule 153: whether a NACK is about nothing but what this origin has no say in.
fn refuses_names_of_others(message: &str) -> bool {
    message.split("; ").all(|reason| reason.starts_with("xdstp://y/") && reason.ends_with("another origin's"))
}
