//! An origin with a method for each type: the stream of one ends, and those of others go on.

use std::time::Instant;

use xds_transport::server::{self, Settings};
use xdstp_cache::{ResourceError, TypeUrl};
use xdstp_client::upstream::Consumer as _;

use crate::hops::{UpHop, Wire};
use crate::messages::{Request, describe_request};
use crate::network::Network;
use crate::network::up::{From, disconnected, may_refuse};
use crate::world::Of;

impl Network<'_> {
    /// Every stream of a type to an origin breaks, and for so many ms each new one ends as it begins.
    pub(super) fn end_type(&mut self, server: usize, of: Of, ms: u64) {
        let url = self.world.kinds[of].url.clone();
        self.ends_until.insert((server, url.clone()), self.now + ms);
        for hop in self.up.iter_mut().filter(|hop| hop.number() == server) {
            let stream = hop.far.as_mut().and_then(|far| far.apart.get_mut(&url));
            stream.into_iter().for_each(|(_, wire)| wire.cut(&mut self.random, self.now));
        }
    }

    /// What goes on between the two ends while they are connected.
    pub(super) fn drive_apart(&mut self, hop: &mut UpHop) -> Result<bool, String> {
        let now = self.instant();
        let mut progress = self.notice(hop, now);
        progress |= self.ask_apart(hop, now)?;
        progress |= self.answer_apart(hop)?;
        progress |= self.hear_apart(hop, now)?;
        Ok(progress)
    }

    /// The relay learns which streams are over.
    fn notice(&mut self, hop: &mut UpHop, now: Instant) -> bool {
        let far = hop.far.iter().flat_map(|far| &far.apart);
        let is_over = |wire: &Wire| wire.noticed_at.is_some_and(|at| at <= self.now);
        let over: Vec<_> = far.filter(|(_, (_, wire))| is_over(wire)).map(|(of, _)| of.clone()).collect();
        over.iter().for_each(|of| self.type_ends(hop, of, now));
        !over.is_empty()
    }

    fn type_ends(&mut self, hop: &mut UpHop, of: &TypeUrl, now: Instant) {
        let Some(far) = &mut hop.far else { return };
        if let Some((mut server, _)) = far.apart.remove(of) {
            server.close(self.origins.cache(hop.origin, far.replica, hop.group));
        }
        self.say(|| format!("the stream of {of} to origin {} ends", hop.origin));
        let error = ResourceError::new(14, "it ends");
        hop.feed.type_ended(now, of, &error);
        if !hop.machine.type_ended(now, of, error, self.random.below(u64::MAX)) {
            self.end(hop);
            disconnected(hop, now, &mut self.random);
        }
        hop.turn(now);
    }

    fn ask_apart(&mut self, hop: &mut UpHop, now: Instant) -> Result<bool, String> {
        let (number, mut progress) = (hop.number(), false);
        while hop.far.is_some()
            && !hop.feed.has_more_commands()
            && let Some((of, message)) = hop.machine.poll_transmit_by_type(now, |_| true)
        {
            progress = true;
            let request = Request::decode(hop.protocol, &message);
            self.say(|| format!("relay -> origin {number} {}", describe_request(&request)));
            may_refuse(request)?;
            let Some(far) = &mut hop.far else { break };
            if !far.apart.contains_key(&of) {
                if self.ends_until.get(&(number, of.clone())).is_some_and(|until| *until > self.now) {
                    self.type_ends(hop, &of, now);
                    continue;
                }
                hop.machine.type_opened(now, &of);
                hop.feed.type_opened(now, &of);
            }
            let stream = || (server::Stream::new(hop.protocol, Settings::default()), Wire::default());
            let (_, wire) = far.apart.entry(of).or_insert_with(stream);
            wire.up.send(self.arrival(), "", message);
        }
        Ok(progress)
    }

    fn answer_apart(&mut self, hop: &mut UpHop) -> Result<bool, String> {
        let UpHop { far: Some(far), protocol, origin, server, group, .. } = hop else { return Ok(false) };
        let from = From { origin: *origin, server: *server, replica: far.replica, group: *group, protocol: *protocol };
        let mut progress = false;
        for (server, wire) in far.apart.values_mut() {
            progress |= self.answer(from, server, wire)?;
        }
        Ok(progress)
    }

    fn hear_apart(&mut self, hop: &mut UpHop, now: Instant) -> Result<bool, String> {
        let mut progress = false;
        if hop.far.as_ref().is_some_and(|far| far.comes().is_some()) {
            hop.machine.received(now);
            hop.feed.received(now);
        }
        while let Some(far) = &mut hop.far
            && let Some((of, message)) =
                far.apart.iter_mut().find_map(|(of, (_, wire))| Some((of.clone(), wire.down.receive(self.now)?)))
        {
            let heard = hop.machine.handle_message_of(now, &of, message).map_err(|error| error.to_string())?;
            if let Some(connection) = heard {
                (hop.answered, hop.fails) = (true, false);
                hop.feed.connection(now, connection);
            }
            hop.deliver(now);
            hop.turn(now);
            progress = true;
        }
        Ok(progress)
    }
}
