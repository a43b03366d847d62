//! What happens on one stream.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tonic::metadata::MetadataMap;
use xds_relay::relay_core::Admitted;
use xds_transport::Protocol;
use xds_transport::server::{self, Transmit};

use super::setting::{EDGES, REGIONALS, REGIONS};
use super::{Relay, Tree};
use crate::fault::Fault;
use crate::hop::{Ended, Far, Hop, To, Whose};
use crate::wire::Wire;

impl Tree {
    /// Lets happen what is due. When something is next.
    pub(super) fn drive(&mut self, hop: &mut Hop) -> Option<u64> {
        let now = self.instant();
        if let Some(reason) = self.is_over(hop) {
            self.end(hop, &reason);
        }
        hop.turn(now);
        if hop.upstream.should_connect(now) {
            if let Some(node) = hop.consumer.node() {
                hop.upstream.set_node(node.clone());
                hop.node = node;
            }
            hop.opens_at = Some(self.now + 2 * self.setting.latency(hop.whose));
        }
        if hop.opens_at.is_some_and(|at| at <= self.now) {
            hop.opens_at = None;
            self.open(hop);
            hop.turn(now);
        }
        while let Some(moved) = self.exchange(hop)
            && moved
        {}
        self.next(hop)
    }

    /// Why the stream ends now, if it does.
    fn is_over(&self, hop: &Hop) -> Option<String> {
        let far = hop.far.as_ref()?;
        let broken = far.breaks_at.filter(|at| *at <= self.now).map(|_| "broken".to_owned());
        broken.or_else(|| far.ended.reason.lock().unwrap().clone())
    }

    fn end(&mut self, hop: &mut Hop, reason: &str) {
        self.close(hop);
        let random = self.random.below(u64::MAX);
        hop.disconnected(self.instant(), reason, random);
    }

    /// An attempt arrives at whom it is to.
    fn open(&mut self, hop: &mut Hop) {
        let (now, to) = (self.instant(), self.target(hop.whose));
        let said = hop.consumer.metadata();
        let admitted = match self.admit(to, &said) {
            Ok(admitted) => admitted,
            Err(refused) => {
                let random = self.random.below(u64::MAX);
                return hop.disconnected(now, &refused, random);
            }
        };
        let connection = hop.upstream.connected(now);
        hop.consumer.connection(now, connection);
        let heard = admitted.as_ref().map_or_else(MetadataMap::new, |admitted| admitted.metadata.clone());
        if let Err(error) = hop.consumer.opened(&heard) {
            let random = self.random.below(u64::MAX);
            let connection = hop.upstream.declined(now, error, random);
            return hop.consumer.connection(now, connection);
        }
        let ended = Ended::new(hop.bell.clone());
        let core = if let To::Relay(relay) = to { Some(&self.relays[relay].core) } else { None };
        let routes = core.map(|core| core.open_stream(hop.protocol, ended.waker(), Some(ended.clone())));
        let settings = core.map_or_else(server::Settings::default, |core| core.settings());
        let mut stream = server::Stream::new(hop.protocol, settings);
        if let To::Relay(_) = to {
            stream.end_at(now + self.age());
        }
        let (latency, bytes) = (self.setting.latency(hop.whose), self.setting.bytes_per_ms(hop.whose));
        let [up, down] = [latency; 2].map(|latency| Wire::new(latency, bytes));
        hop.far = Some(Far { to, stream, routes, ended, up, down, breaks_at: None, _admitted: admitted });
    }

    /// How long a stream lives, as the gRPC layer has it.
    fn age(&mut self) -> Duration {
        let age = self.setting.stream_age;
        if self.has(Fault::NoJitter) {
            return age;
        }
        age / 4 * 3 + Duration::from_micros(self.random.below(age.as_micros() as u64 / 2))
    }

    /// Who is asked. A client's balancer knows nothing of who is dead; where an edge looks it finds all regional relays, those of its
    /// own region first, and tries one after the other.
    fn target(&mut self, whose: Whose) -> To {
        match whose {
            Whose::Client(_) => To::Relay(REGIONALS + self.random.index(EDGES)),
            Whose::Relay(relay) if relay < REGIONALS => To::Origin,
            Whose::Relay(relay) => {
                let (own, first) = (relay % REGIONS, self.random.index(REGIONALS));
                let rotated = (0..REGIONALS).map(|at| (at + first) % REGIONALS);
                let (home, away): (Vec<_>, Vec<_>) = rotated.partition(|regional| regional % REGIONS == own);
                let living = home.iter().chain(&away).find(|regional| self.relays[**regional].is_alive);
                To::Relay(*living.unwrap_or(&first))
            }
        }
    }

    fn admit(&mut self, to: To, said: &MetadataMap) -> Result<Option<Admitted>, String> {
        let now = self.instant();
        let To::Relay(relay) = to else {
            self.origin_load.opened(self.now);
            return Ok(None);
        };
        let relay = &mut self.relays[relay];
        if !relay.is_alive {
            return Err("nobody is there".to_owned());
        }
        match relay.core.admit(now, said) {
            Ok(admitted) => {
                relay.load.opened(self.now);
                Ok(Some(admitted))
            }
            Err(refused) => {
                relay.load.refused += 1;
                Err(refused.to_string())
            }
        }
    }

    /// What arrives, and what is said then. Whether anything did; none without a stream.
    fn exchange(&mut self, hop: &mut Hop) -> Option<bool> {
        let now = self.instant();
        let mut moved = hop.consumer.has_more_commands();
        if moved {
            hop.turn(now);
        }
        let far = hop.far.as_mut()?;
        if far.breaks_at.is_some() {
            return Some(false);
        }
        while !hop.consumer.has_more_commands()
            && let Some(request) = hop.upstream.poll_transmit(now)
        {
            moved = true;
            far.up.send(self.now, request);
            far.breaks_at = self.setting.loses(&mut self.random).then(|| self.now + self.random.below(2_000_000));
        }
        while let Some(request) = hop.far.as_mut()?.up.receive(self.now) {
            moved = true;
            self.take_request(hop, request)?;
        }
        moved |= self.respond(hop)?;
        while let Some(response) = hop.far.as_mut()?.down.receive(self.now) {
            moved = true;
            let answered = hop.upstream.handle_message(now, response).unwrap();
            answered.into_iter().for_each(|connection| hop.consumer.connection(now, connection));
            hop.deliver(now);
            hop.turn(now);
        }
        Some(moved)
    }

    /// A request arrives above; none if the stream ends for it.
    fn take_request(&mut self, hop: &mut Hop, request: Bytes) -> Option<()> {
        let now = self.instant();
        let far = hop.far.as_mut()?;
        let To::Relay(relay) = far.to else {
            self.origin_load.requests += 1;
            far.stream.handle_message(now, request, self.origin.cache_of(&hop.node)).unwrap();
            return Some(());
        };
        let relay = &mut self.relays[relay];
        relay.load.requests += 1;
        let fault = self.setting.fault.filter(|_| hop.protocol == Protocol::Delta);
        if let Some(answer) = fault.filter(|_| relay.is_another).and_then(|fault| fault.answer(&request)) {
            far.down.send(self.now, answer);
        }
        let request = fault.map_or(request.clone(), |fault| fault.request(request));
        let routes = far.routes.as_mut()?;
        if let Err(error) = far.stream.handle_message(now, request, routes) {
            self.end(hop, &error.to_string());
            return None;
        }
        Some(())
    }

    /// Says what there is to say, as fast as the stream takes it. Whether there was anything.
    fn respond(&mut self, hop: &mut Hop) -> Option<bool> {
        let now = self.instant();
        let mut moved = false;
        let far = hop.far.as_mut()?;
        while far.breaks_at.is_none() && far.down.has_room() {
            let polled = match &mut far.routes {
                Some(routes) => far.stream.poll_transmit(now, routes),
                None => far.stream.poll_transmit(now, self.origin.cache_of(&hop.node)),
            };
            let response = match polled {
                Ok(polled) => polled.map(Transmit::into_bytes),
                Err(error) => {
                    self.end(hop, &error.to_string());
                    return None;
                }
            };
            let Some(response) = response else { break };
            moved = true;
            let (pipe, load) = match far.to {
                To::Origin => (&mut self.origin_pipe, &mut self.origin_load),
                To::Relay(relay) => {
                    let Relay { pipe, load, .. } = &mut self.relays[relay];
                    (pipe, load)
                }
            };
            load.sent(response.len());
            far.down.send(pipe.pass(self.now, response.len()), response);
            far.breaks_at = self.setting.loses(&mut self.random).then(|| self.now + self.random.below(2_000_000));
        }
        Some(moved)
    }

    fn next(&self, hop: &Hop) -> Option<u64> {
        let near = [hop.upstream.poll_timeout(), hop.consumer.poll_timeout()];
        let far = hop.far.as_ref();
        let served = far.filter(|far| far.down.has_room()).and_then(|far| far.stream.poll_timeout());
        let micros = |at: Instant| at.saturating_duration_since(self.start).as_nanos().div_ceil(1000) as u64;
        let timeouts = near.into_iter().chain([served]).flatten().map(micros);
        let arrivals = far.into_iter().flat_map(|far| match far.breaks_at {
            Some(at) => [Some(at), None],
            None => [far.up.next(), far.down.next()],
        });
        timeouts.chain(arrivals.flatten()).chain(hop.opens_at).min().map(|at| at.max(self.now))
    }
}
