//! What happens between the clients and the relay.

use std::collections::BTreeSet;
use std::sync::Arc;

use xds_transport::client::{Command, Event};
use xds_transport::server::{self, Transmit};
use xdstp_cache::Interest;

use crate::envoy;
use crate::faults::Fault;
use crate::flag::Flag;
use crate::hops::{DownHop, Served};
use crate::messages::{Request, Response, describe_request, describe_response};
use crate::network::Network;
use crate::world::{REFERRED, REFERRERS};

impl Network<'_> {
    pub(super) fn cut_client(&mut self, client: usize) {
        if let Some(served) = &mut self.down[client].served {
            served.wire.cut(&mut self.random, self.now);
        }
    }

    /// When something happens by itself between a client and the relay.
    pub(super) fn next_down(&self, hop: &DownHop) -> Option<u64> {
        let served = hop.served.as_ref();
        let due = [
            hop.connect_at,
            served.and_then(|served| served.starved.next()),
            hop.machine.poll_timeout().map(|at| self.ms(at)),
            served.and_then(|served| served.wire.next()),
            // Who cannot write asks for nothing to be written.
            served
                .filter(|served| !served.blocked)
                .and_then(|served| served.server.poll_timeout())
                .map(|at| self.ms(at)),
        ];
        due.into_iter().flatten().min()
    }

    pub(super) fn drive_down(&mut self, hop: &mut DownHop) -> Result<bool, String> {
        let now = self.instant();
        let mut progress = false;
        if hop.served.as_ref().and_then(|served| served.wire.noticed_at).is_some_and(|at| at <= self.now)
            && let Some(served) = hop.served.take()
        {
            close(served, self.fault, &mut self.leaked);
            hop.machine.disconnected(now);
            hop.connect_at = Some(self.now + self.random.below(500));
            progress = true;
        }
        if hop.connect_at.is_some_and(|at| at <= self.now) {
            hop.connect_at = None;
            hop.consumer.connects();
            let woken = Arc::new(Flag::default());
            let routes = self.core.open_stream(hop.protocol, woken.waker(), None);
            let settings = Fault::settings(self.fault, &self.world, self.core.settings());
            hop.served = Some(Served::new(server::Stream::new(hop.protocol, settings), routes, woken, hop.group));
            hop.machine.connected(now);
            progress = true;
        }
        hop.machine.handle_timeout(now);
        self.deliver(hop, &BTreeSet::new())?;
        let label = format!("{:?} {}", hop.protocol, hop.consumer.client());
        let DownHop { served: Some(served), machine, protocol, envoy, .. } = hop else { return Ok(progress) };
        while let Some(message) = machine.poll_transmit(now) {
            let mut request = Request::decode(*protocol, &message);
            if *envoy {
                envoy::reword(&mut request);
            }
            self.say(|| format!("client {label} -> {}", describe_request(&request)));
            served.wire.up.send(self.arrival(), "", request.encode(*protocol));
            progress = true;
        }
        while let Some(message) = served.wire.up.receive(self.now) {
            let mut request = Request::decode(*protocol, &message);
            served.note(&self.world, *protocol, &request);
            served.books.request(now, &self.world, &request);
            if let Some(fault) = self.fault {
                fault.request(&mut request);
            }
            let message = request.encode(*protocol);
            served.server.handle_message(now, message, &mut served.routes).map_err(|error| error.to_string())?;
            // As the gRPC layer does: else nobody looks.
            if served.server.leaves_work(now, &served.routes) {
                served.woken.set();
            }
            progress = true;
        }
        let due = served.server.poll_timeout().is_some_and(|due| due <= now);
        let woken = served.woken.take() && !(self.fault == Some(Fault::LoseWake) && self.random.one_in(4));
        let released = served.starved.next().is_some_and(|at| at <= self.now);
        if woken || due || released || served.blocked {
            let (window, narrow) = (self.window(), self.world.setup.narrow);
            loop {
                served.blocked = !served.wire.down.has_room(window);
                if served.blocked {
                    break;
                }
                if self.world.setup.refers {
                    served.books.tick(now, &self.world, &self.heard.lock().unwrap());
                }
                let message = match served.starved.release(self.now) {
                    None => {
                        let polled = served.server.poll_transmit(now, &mut served.routes);
                        polled.map_err(|error| error.to_string())?.map(Transmit::into_bytes)
                    }
                    released => released,
                };
                let Some(mut message) = message else { break };
                let mut response = Response::decode(*protocol, &message);
                // As the relay says it: what a fault leaves of a response may be nothing.
                served.check_owed(&self.world, &response)?;
                let starves = self.world.of(&response.type_url).is_some_and(|of| REFERRERS.contains(&of));
                if self.fault.is_some_and(Fault::starves) && served.starved.holds(self.now, starves, &message) {
                    continue;
                }
                if self.fault.is_some_and(|fault| fault.response(&self.world, served, *protocol, &mut response)) {
                    message = response.encode(*protocol);
                }
                self.say(|| format!("relay -> client {label} {}", describe_response(&response)));
                served.check(&self.world, hop.group, &response)?;
                if self.world.setup.refers {
                    let of = self.world.of(&response.type_url).ok_or("a response of a type nobody knows")?;
                    let Served { books, .. } = served;
                    books.check(now, &self.world, &self.heard.lock().unwrap(), of, &response)?;
                    books.response(now, &self.world, of, &response);
                    books.tick(now, &self.world, &self.heard.lock().unwrap());
                }
                let sent = served.wire.sent(self.now, narrow, message.len());
                let arrives = sent - self.now + self.arrival();
                served.wire.down.send(arrives, "", message);
                progress = true;
            }
        }
        while let Some(served) = &mut hop.served
            && let Some(message) = served.wire.down.receive(self.now)
        {
            let asked = served.cause(&Response::decode(hop.protocol, &message));
            hop.machine.handle_message(now, message).map_err(|error| error.to_string())?;
            self.deliver(hop, &asked)?;
            progress = true;
        }
        Ok(progress)
    }

    fn deliver(&self, hop: &mut DownHop, asked: &BTreeSet<Interest>) -> Result<(), String> {
        while let Some(Event::Update(update)) = hop.machine.poll_event() {
            let id = update.id;
            let verdict = hop.consumer.take(&self.world, &self.origins, update, asked)?;
            hop.machine.apply(Command::Finish(id, verdict));
            if self.world.setup.follows[hop.consumer.client()] {
                self.follow(hop);
            }
            if self.world.setup.calm {
                hop.consumer.check_stands(&self.world, &self.origins)?;
            }
        }
        Ok(())
    }

    /// It asks for what it is referred to, and leaves what it goes away from once it has that.
    fn follow(&self, hop: &mut DownHop) {
        let DownHop { machine, consumer, .. } = hop;
        for of in REFERRED {
            let url = &self.world.kinds[of].url;
            let references = consumer.references(&self.world, of);
            let asked = consumer.wants(of);
            for interest in references.iter().cloned().map(Interest::Name).filter(|one| !asked.contains(one)) {
                machine.apply(Command::Subscribe(url.clone(), interest.clone()));
                consumer.subscribe(of, interest);
            }
            if references.iter().all(|name| consumer.holds(of, name)) {
                let left = |one: &&Interest| !matches!(one, Interest::Name(name) if references.contains(name));
                for interest in asked.iter().filter(left) {
                    machine.apply(Command::Unsubscribe(url.clone(), interest.clone()));
                    consumer.unsubscribe(&self.world, of, interest);
                }
            }
        }
    }
}

/// The relay notices that a client went.
pub(super) fn close(mut served: Served, fault: Option<Fault>, leaked: &mut Vec<Served>) {
    if fault == Some(Fault::LeakStream) {
        leaked.push(served);
    } else {
        served.server.close(&mut served.routes);
    }
}
