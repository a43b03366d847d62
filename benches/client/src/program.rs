//! A program with many watches and a server without a socket: a watch costs what it costs where nothing else is done.

use std::time::Instant;

use xdstp_client::bootstrap::{Authority, Bootstrap, ChannelCreds, Server};
use xdstp_client::test::Network;
use xdstp_client::{Client, Event, Watch};

use crate::content::{TYPE_URL, body, name};

const SERVER: &str = "xds:1";

/// A client, its watches, and what it is connected with.
pub struct Program {
    network: Network,
    client: Client,
    watches: Vec<Watch>,
    round: u64,
}

impl Program {
    /// A program that watches nothing yet, of a server that has the first `names` resources.
    pub fn new(names: usize) -> Self {
        let server = Server::new(SERVER, ChannelCreds::Insecure);
        let bootstrap = Bootstrap::new(server).with_authority("bench.example", Authority::default());
        let network = Network::new(Instant::now());
        let client = Client::builder(bootstrap).transport(network.clone()).build().unwrap();
        let program = Self { network, client, watches: Vec::new(), round: 1 };
        (0..names).for_each(|index| program.put(index));
        program
    }

    fn put(&self, index: usize) {
        let server = self.network.server(SERVER);
        server.put(TYPE_URL, &name(index), &self.round.to_string(), &body(index, self.round));
    }

    /// Opens a watch for each of the names: what happens in the program's thread, and nothing else.
    pub fn open(&mut self, names: &[String]) {
        self.watches.extend(names.iter().map(|name| self.client.watch(TYPE_URL, name)));
    }

    /// Drops the watches that were opened last: the same.
    pub fn close(&mut self, count: usize) {
        self.watches.truncate(self.watches.len() - count);
    }

    /// Does what the watches left to be done, with the server's part of it.
    pub fn settle(&self) {
        self.network.settle();
        // What it remembers of them would be there for a test to look at.
        self.network.server(SERVER).take_asked();
        self.network.server(SERVER).take_requests();
    }

    /// Looks at every watch: how many see a resource.
    pub fn look(&mut self) -> usize {
        let sees = |watch: &mut Watch| matches!(watch.try_next(), Some(Event::Put { .. }));
        self.watches.iter_mut().filter_map(|watch| sees(watch).then_some(())).count()
    }

    /// Changes the first resource, and has its watch see it.
    ///
    /// # Panics
    /// When it does not.
    pub fn update(&mut self) {
        self.round += 1;
        self.put(0);
        self.network.settle();
        let seen = self.watches[0].try_next();
        assert!(matches!(seen, Some(Event::Put { version, .. }) if version.as_str() == self.round.to_string()));
    }
}
