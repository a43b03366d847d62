//! The server's side: its machine, and what wakes it.

use bytes::Bytes;
use xds_transport::server;

use super::Pair;
use crate::consumer::Cause;
use crate::faults::{Books, Fault};
use crate::messages::{Request, Response, describe_request, describe_response};
use crate::origin::Replica;
use crate::world::World;

impl Pair<'_> {
    /// A request arrives at the server.
    pub(super) fn serve(&mut self, at: usize, message: &Bytes) -> Result<(), String> {
        let (now, protocol) = (self.instant(), self.world.setup.protocol);
        let mut request = Request::decode(protocol, message);
        self.say(|| format!("-> server  {}", describe_request(&request)));
        let connection = &mut self.connections[at];
        connection.ledger.request(&self.world, &self.origin, &request);
        connection.shim.request(self.fault, protocol, &mut request);
        let Replica { cache, memory, .. } = &mut self.origin.replicas[connection.replica];
        let Some(server) = &mut connection.server else { return Ok(()) };
        let mut source = Books { cache, memory, fault: self.fault };
        let message = if self.world.is_verbatim() { message.clone() } else { request.encode(protocol) };
        server.handle_message(now, message, &mut source).map_err(|error| error.to_string())?;
        // As the gRPC layer does: else nobody looks.
        connection.armed |= server.leaves_work(now, &source);
        Ok(())
    }

    /// What is for others changes, of names that are there and of some that are not.
    pub(super) fn vary(&mut self) -> Result<(), String> {
        if self.world.setup.variants.is_none() {
            return Ok(());
        }
        let now = self.instant();
        for _ in 0..2 {
            let of = self.random.index(World::KINDS);
            let (name, which) = (self.random.index(World::NAMES), self.random.index(2));
            let body = self.random.one_in(2).then(|| self.random.below(u64::from(World::BODIES)) as u8);
            self.say(|| format!("for others: {of} {name} {which} {body:?}"));
            self.origin.vary(&self.world, of, name, which, body, now);
        }
        self.process()
    }

    /// Only streams that the cache names, or that wait for their time, are asked.
    pub(super) fn wake(&mut self) {
        for (index, replica) in self.origin.replicas.iter_mut().enumerate() {
            for id in replica.woken.drain(..) {
                if self.fault == Some(Fault::LoseWake) && self.random.one_in(4) {
                    continue;
                }
                for connection in self.connections.iter_mut().filter(|one| one.replica == index) {
                    let server = connection.server.as_ref();
                    connection.armed |= server.is_some_and(|server| server.has_subscriber(id));
                }
            }
        }
        let now = self.instant();
        for connection in &mut self.connections {
            let due = connection.server.as_ref().and_then(server::Stream::poll_timeout);
            connection.armed |= due.is_some_and(|due| due <= now);
        }
    }

    /// The server writes.
    pub(super) fn respond(&mut self, at: usize) -> Result<(), String> {
        let (now, protocol) = (self.instant(), self.world.setup.protocol);
        loop {
            let connection = &mut self.connections[at];
            connection.order.tick(self.now, &self.world, &self.origin, &connection.ledger);
            let Replica { cache, memory, .. } = &mut self.origin.replicas[connection.replica];
            let mut source = Books { cache, memory, fault: self.fault };
            let Some(server) = &mut connection.server else { return Ok(()) };
            if !connection.armed || !connection.down.has_room(self.world.setup.window) {
                return Ok(());
            }
            let transmit = match server.poll_transmit(now, &mut source) {
                Ok(Some(transmit)) => transmit,
                Ok(None) => {
                    connection.armed = false;
                    return Ok(());
                }
                Err(error) => {
                    server.close(&mut source);
                    connection.server = None;
                    connection.cut(&mut self.random, self.now, 10, 0);
                    self.say(|| format!("server closes: {error}"));
                    return Ok(());
                }
            };
            let message = transmit.into_bytes();
            let mut response = Response::decode(protocol, &message);
            let imagined = connection.shim.response(self.fault, &self.world, &mut response);
            self.counts.messages += 1;
            self.say(|| format!("server ->  {}", describe_response(&response)));
            let connection = &mut self.connections[at];
            connection.order.response(self.now, &self.world, &self.origin, &connection.ledger, &response)?;
            if connection.ledger.response(&self.world, &mut self.origin, &response)? {
                self.news_at = self.now;
            }
            let cause = Cause {
                stream: connection.number,
                moment: self.origin.moment,
                sent_at: self.now,
                asked: self.world.of(&response.type_url).map(|of| connection.ledger.interests(of)).unwrap_or_default(),
                removed: response.removed.iter().flat_map(|name| name.parse()).collect(),
                response: None,
            };
            connection.causes.insert(response.nonce.clone(), cause);
            let arrives = self.now + self.random.below(self.world.setup.latency);
            let lane = if self.world.setup.reorder { &*response.type_url } else { "" };
            let message = if self.world.is_verbatim() { message } else { response.encode(protocol) };
            connection.down.send(arrives, lane, message);
            if let (Some(request), Some(server)) = (imagined, &mut connection.server) {
                let Replica { cache, memory, .. } = &mut self.origin.replicas[connection.replica];
                let mut source = Books { cache, memory, fault: self.fault };
                server.handle_message(now, request.encode(protocol), &mut source).map_err(|error| error.to_string())?;
            }
        }
    }
}
