//! A SotW client of many names: each of its requests repeats them all.

use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::DiscoveryRequest;
use xds_transport::{Frame, Protocol};
use xdstp_cache::Cache;

use crate::{TYPE_URL, Workload, ours};

pub struct Sotw {
    cache: Cache<Frame>,
    stream: Stream,
    names: Vec<String>,
    round: u64,
}

impl Sotw {
    /// A client of `names` names, which has been sent and has ACKed them all.
    pub fn new(names: usize) -> Self {
        let workload = Workload::Exact(names);
        let mut sotw = Self {
            cache: ours::cache(workload, names),
            stream: Stream::new(Protocol::Sotw, Settings::default()),
            names: workload.asks(0, names),
            round: 0,
        };
        let first = sotw.request();
        sotw.receive(first);
        while sotw.respond() > 0 {
            let ack = sotw.request();
            sotw.receive(ack);
        }
        sotw
    }

    /// Another state of the first of its resources.
    pub fn publish(&mut self) {
        self.round += 1;
        let name = self.names[0].parse().unwrap();
        let next = ours::resource(self.round);
        let mut edit = self.cache.edit(Instant::now());
        edit.put(&TYPE_URL.into(), &name, next);
        let _ = edit.finish();
    }

    /// The bytes of the next response, built and copied.
    pub fn respond(&mut self) -> usize {
        let response = self.stream.poll_transmit(Instant::now(), &mut self.cache).unwrap();
        response.map_or(0, |response| response.into_bytes().len())
    }

    /// The first request, or an ACK of the last response.
    pub fn request(&self) -> Bytes {
        let responses = ours::responses(&self.stream);
        let request = DiscoveryRequest {
            type_url: TYPE_URL.into(),
            resource_names: self.names.clone(),
            response_nonce: if responses == 0 { String::new() } else { responses.to_string() },
            ..DiscoveryRequest::default()
        };
        request.encode_to_vec().into()
    }

    /// Handles a request.
    pub fn receive(&mut self, request: Bytes) {
        self.stream.handle_message(Instant::now(), request, &mut self.cache).unwrap();
    }
}
