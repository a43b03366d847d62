//! The client's side: its machine, and its user.

use xds_transport::client::{Command, Event, UpdateId, Verdict};

use super::Pair;
use crate::consumer::Cause;
use crate::messages::{Request, Response, describe_request, describe_response};
use crate::world::Of;

pub(super) struct Unfinished {
    id: UpdateId,
    of: Of,
    version: String,
    verdict: Verdict,
}

impl Pair<'_> {
    /// Whatever has arrived, unless the user is busy.
    pub(super) fn receive(&mut self, at: usize) -> Result<(), String> {
        while self.connections[at].attached
            && self.busy.is_none()
            && let Some(message) = self.connections[at].down.receive(self.now)
        {
            let response = Response::decode(self.world.setup.protocol, &message);
            self.say(|| format!("-> client  {}", describe_response(&response)));
            self.connections[at].requests.response(&self.world, &response);
            let mut cause = self.connections[at].causes.remove(&response.nonce).unwrap_or_default();
            self.client_shim.response(&response);
            let reads = self.client_shim.reads(self.fault, &response);
            let message = reads.map_or(message, |response| response.encode(self.world.setup.protocol));
            cause.response = Some((response, self.now));
            self.client.handle_message(self.instant(), message).map_err(|error| error.to_string())?;
            self.note_events(&cause);
            self.deliver()?;
        }
        Ok(())
    }

    /// What the machine says happened because of something.
    pub(super) fn note_events(&mut self, cause: &Cause) {
        while let Some(Event::Update(update)) = self.client.poll_event() {
            self.events.push_back((update, cause.clone()));
        }
    }

    /// Events go to the client's user, one at a time.
    pub(super) fn deliver(&mut self) -> Result<(), String> {
        while self.busy.is_none()
            && let Some((update, cause)) = self.events.pop_front()
        {
            let of = self.world.of(update.type_url.as_str()).ok_or("an update of no type")?;
            let (id, version) = (update.id, update.version.clone());
            let thinks = update.changed.iter().any(|changed| !changed.touched) || !update.removed.is_empty();
            let over = update
                .removed
                .iter()
                .find(|name| cause.response.is_none() && self.consumer.loses(&self.world, of, name))
                .filter(|name| self.origin.body(of, name).is_some());
            if let Some(name) = over.filter(|_| self.steady) {
                return Err(format!("rule 111: {name} was not refreshed in time"));
            }
            let verdict = self.consumer.take(&self.world, &self.origin, of, update, &cause)?;
            let unfinished = Unfinished { id, of, version, verdict };
            match self.world.setup.think {
                think if think == 0 || !thinks => self.finish(unfinished),
                think => self.busy = Some((self.now + self.random.below(think), unfinished)),
            }
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, Unfinished { id, of, version, verdict }: Unfinished) {
        match &verdict {
            Verdict::Accept => drop(self.accepted.insert((of, version))),
            Verdict::Reject { .. } => self.counts.nacks += 1,
        }
        self.client.apply(Command::Finish(id, verdict));
    }

    /// The client writes.
    pub(super) fn ask(&mut self, at: usize) -> Result<(), String> {
        let (now, protocol) = (self.instant(), self.world.setup.protocol);
        while self.connections[at].up.has_room(self.world.setup.window)
            && let Some(message) = self.client.poll_transmit(now)
        {
            let request = Request::decode(protocol, &message);
            for request in self.client_shim.request(self.fault, protocol, request) {
                self.counts.messages += 1;
                self.say(|| format!("client ->  {}", describe_request(&request)));
                let connection = &mut self.connections[at];
                connection.requests.request(&self.world, &self.consumer, &self.accepted, &request)?;
                let arrives = self.now + self.random.below(self.world.setup.latency);
                let lane = if self.world.setup.reorder { &*request.type_url } else { "" };
                let message = if self.world.is_verbatim() { message.clone() } else { request.encode(protocol) };
                connection.up.send(arrives, lane, message);
            }
        }
        Ok(())
    }
}
