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
            hop.machine.poll_timeout().map(|at| self.ms(at)),
            served.and_then(|served| served.wire.next()),
            served.and_then(|served| served.server.poll_timeout()).map(|at| self.ms(at)),
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
            let woken = Arc::new(Flag::default());
            let routes = self.core.open_stream(hop.variant, woken.waker(), None);
            hop.served = Some(Served::new(server::Stream::new(hop.variant, self.core.settings()), routes, woken));
            hop.machine.connected(now);
            progress = true;
        }
        hop.machine.handle_timeout(now);
        self.deliver(hop, &BTreeSet::new())?;
        let label = format!("{:?} {}", hop.variant, hop.consumer.client());
        let DownHop { served: Some(served), machine, variant, envoy, .. } = hop else { return Ok(progress) };
        while let Some(message) = machine.poll_transmit(now) {
            let mut request = Request::decode(*variant, &message);
            if *envoy {
                envoy::reword(&mut request);
            }
            self.say(|| format!("client {label} -> {}", describe_request(&request)));
            served.wire.up.send(self.arrival(), "", request.encode(*variant));
            progress = true;
        }
        while let Some(message) = served.wire.up.receive(self.now) {
            let mut request = Request::decode(*variant, &message);
            served.note(&self.world, *variant, &request);
            if let Some(fault) = self.fault {
                fault.request(&mut request);
            }
            let message = request.encode(*variant);
            served.server.handle_message(now, message, &mut served.routes).map_err(|error| error.to_string())?;
            served.woken.set();
            progress = true;
        }
        let due = served.server.poll_timeout().is_some_and(|due| due <= now);
        let woken = served.woken.take() && !(self.fault == Some(Fault::LoseWake) && self.random.one_in(4));
        if woken || due {
            let transmits = std::iter::from_fn(|| served.server.poll_transmit(now, &mut served.routes).transpose());
            let transmits: Vec<_> = transmits.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
            for mut message in transmits.into_iter().map(Transmit::into_bytes) {
                let mut response = Response::decode(*variant, &message);
                if self.fault.is_some_and(|fault| fault.response(&self.world, served, *variant, &mut response)) {
                    message = response.encode(*variant);
                }
                self.say(|| format!("relay -> client {label} {}", describe_response(&response)));
                served.check(&self.world, hop.group, &response)?;
                served.wire.down.send(self.arrival(), "", message);
                progress = true;
            }
        }
        while let Some(served) = &mut hop.served
            && let Some(message) = served.wire.down.receive(self.now)
        {
            let asked = served.cause(&Response::decode(hop.variant, &message));
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
        }
        Ok(())
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
