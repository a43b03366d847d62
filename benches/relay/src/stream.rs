//! A stream of a client, without sockets.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use bytes::Bytes;
use xds_relay::relay_core::{RelayCore, Routes};
use xds_transport::{Protocol, server};

pub struct Stream {
    server: server::Stream,
    routes: Routes,
}

impl Stream {
    pub fn open(core: &Arc<RelayCore>, protocol: Protocol) -> Self {
        let routes = core.open_stream(protocol, Waker::noop().clone(), None);
        Self { server: server::Stream::new(protocol, core.settings()), routes }
    }

    pub fn say(&mut self, now: Instant, request: Bytes) {
        self.server.handle_message(now, request, &mut self.routes).unwrap();
    }

    /// The next response, if there is one.
    pub fn next(&mut self, now: Instant) -> Option<Bytes> {
        Some(self.server.poll_transmit(now, &mut self.routes).unwrap()?.into_bytes())
    }

    pub fn close(mut self) {
        self.server.close(&mut self.routes);
    }
}
