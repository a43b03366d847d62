//! A stream for each type, in the place of one for all.

use std::time::Instant;

use xds_transport::server::{Settings, Stream, Transmit};
use xdstp_cache::{ResourceError, TypeUrl};

use super::{Link, deliver};
use crate::support::World;
use crate::support::origin::Origin;

impl Link {
    pub(super) fn drive_apart(&mut self, now: Instant, origin: &mut Origin) -> bool {
        let mut progress = false;
        while !self.consumer.has_more_commands()
            && self.is_open()
            && let Some((of, request)) = self.upstream.poll_transmit_by_type(now, |_| true)
        {
            progress = true;
            origin.opened.extend(self.is_first(&of).then(|| of.to_string()));
            if let Some(code) = origin.without.get(of.as_str()).copied() {
                self.type_ends(now, origin, &of, code);
                continue;
            }
            if origin.hangs.contains(of.as_str()) {
                continue;
            }
            origin.note(self.protocol, self.dialect, &self.node, &request);
            let mut settings = Settings::default();
            settings.dialect = self.dialect;
            if self.is_first(&of) {
                self.upstream.type_opened(now, &of);
                self.consumer.type_opened(now, &of);
            }
            let far = self.far_end.as_mut().unwrap();
            let stream = far.apart.entry(of).or_insert_with(|| Stream::new(self.protocol, settings));
            stream.handle_message(now, request, origin.cache_of(&self.node)).unwrap();
        }
        let Some(far) = self.far_end.as_mut().filter(|_| self.far_end_speaks) else { return progress };
        let cache = origin.cache_of(&self.node);
        let next = far.apart.iter_mut().find_map(|(of, stream)| {
            let response = stream.poll_transmit(now, cache).unwrap().map(Transmit::into_bytes)?;
            Some((of.clone(), response))
        });
        let Some((of, response)) = next else { return progress };
        self.upstream.received(now);
        self.consumer.received(now);
        let answered = self.upstream.handle_message_of(now, &of, response).unwrap();
        answered.into_iter().for_each(|connection| self.consumer.connection(now, connection));
        deliver(now, &mut self.upstream, &mut *self.consumer);
        self.turn(now);
        true
    }

    fn is_first(&self, of: &TypeUrl) -> bool {
        self.far_end.as_ref().is_some_and(|far| !far.apart.contains_key(of))
    }

    /// What a driver does where the stream of a type ends.
    fn type_ends(&mut self, now: Instant, origin: &mut Origin, of: &TypeUrl, code: i32) {
        let Some(far) = &mut self.far_end else { return };
        if let Some(mut stream) = far.apart.remove(of) {
            stream.close(origin.cache_of(&self.node));
        }
        let error = ResourceError::new(code, "it ends");
        self.consumer.type_ended(now, of, &error);
        if !self.upstream.type_ended(now, of, error, u64::MAX) {
            self.end(Some(origin));
            let connection = self.upstream.disconnected(now, Some("all ended".into()), u64::MAX);
            self.consumer.connection(now, connection);
        }
    }
}

impl World {
    /// The streams of a type from the first relay to the first origin end, with this code of gRPC.
    pub(crate) fn end_type(&mut self, of: &str, code: i32) {
        for link in self.relays[0].links.iter_mut().filter(|link| link.origin == 0) {
            link.type_ends(self.now, &mut self.origins[0], &of.into(), code);
        }
        self.settle();
    }
}
