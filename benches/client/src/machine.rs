//! This project's client without I/O.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use xds_transport::client::{Command, Event, Interest, Stream, Verdict};
use xds_transport::{Protocol, TypeRules};

use crate::content::{TYPE_URL, name};

/// A connected stream.
pub struct Machine {
    stream: Stream,
    now: Instant,
}

impl Machine {
    /// A stream that wants nothing.
    pub fn new(protocol: Protocol) -> Self {
        let mut stream = Stream::new(protocol, Bytes::new(), Arc::new(TypeRules::envoy()));
        let now = Instant::now();
        stream.connected(now);
        Self { stream, now }
    }

    /// Subscribes to the first `names`, one by one; how many bytes are sent then.
    pub fn subscribe(&mut self, names: usize) -> usize {
        for index in 0..names {
            let interest = Interest::Name(name(index).parse().unwrap());
            self.stream.apply(Command::Subscribe(TYPE_URL.into(), interest));
        }
        self.transmit()
    }

    /// Takes a response in, and accepts it; how many resources changed.
    pub fn apply(&mut self, response: Bytes) -> usize {
        self.stream.handle_message(self.now, response).unwrap();
        let Some(Event::Update(update)) = self.stream.poll_event() else { return 0 };
        self.stream.apply(Command::Finish(update.id, Verdict::Accept));
        update.changed.len()
    }

    /// Sends what there is to send; how many bytes.
    pub fn transmit(&mut self) -> usize {
        std::iter::from_fn(|| self.stream.poll_transmit(self.now)).map(|request| request.len()).sum()
    }
}
