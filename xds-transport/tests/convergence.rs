//! Both sides of the protocol back to back, with messages under way and streams that break: whatever
//! happens, a client ends with what the server has of what it wants.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod support;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use support::{CLUSTERS, ENDPOINTS, Server, seconds};
use xds_transport::client::{self, Command, Event, Interest, Update, Verdict};
use xds_transport::server::{self, Settings};
use xds_transport::{Protocol, TypeRules};
use xdstp_cache::{Options, TypeUrl};
use xdstp_uri::ResourceName;

const TYPES: [&str; 2] = [CLUSTERS, ENDPOINTS];
const NAMES: [&str; 5] = ["a", "b", "xdstp://x/T/d/1", "xdstp://x/T/d/2", "xdstp://x/T/e/1"];
const WANTED: [&str; 8] =
    ["a", "b", "xdstp://x/T/d/1", "xdstp://x/T/d/2", "xdstp://x/T/e/1", "*", "xdstp://x/T/d/*", "c"];

#[derive(Clone, Debug)]
enum Op {
    Subscribe {
        client: usize,
        of: usize,
        what: usize,
    },
    Unsubscribe {
        client: usize,
        of: usize,
        what: usize,
    },
    Put {
        of: usize,
        what: usize,
        version: u8,
    },
    Remove {
        of: usize,
        what: usize,
    },
    /// One thing happens between a client and the server.
    Step {
        client: usize,
        what: u8,
    },
    Break {
        client: usize,
    },
    Settle,
}

fn op() -> impl Strategy<Value = Op> {
    let (client, of) = (0..2_usize, 0..TYPES.len());
    prop_oneof![
        3 => (client.clone(), of.clone(), 0..WANTED.len())
            .prop_map(|(client, of, what)| Op::Subscribe { client, of, what }),
        2 => (client.clone(), of.clone(), 0..WANTED.len())
            .prop_map(|(client, of, what)| Op::Unsubscribe { client, of, what }),
        4 => (of.clone(), 0..NAMES.len(), 0..3_u8).prop_map(|(of, what, version)| Op::Put { of, what, version }),
        2 => (of, 0..NAMES.len()).prop_map(|(of, what)| Op::Remove { of, what }),
        12 => (client.clone(), 0..5_u8).prop_map(|(client, what)| Op::Step { client, what }),
        1 => client.prop_map(|client| Op::Break { client }),
        1 => Just(Op::Settle),
    ]
}

/// A client, the server's end of its stream, and what is under way between them.
struct Pair {
    client: client::Stream,
    server: server::Stream,
    requests: VecDeque<Bytes>,
    responses: VecDeque<Bytes>,
    wanted: BTreeSet<(TypeUrl, Interest)>,
    view: BTreeMap<(TypeUrl, ResourceName), Bytes>,
}

impl Pair {
    fn new(protocol: Protocol, server: &Server) -> Self {
        let mut client = client::Stream::new(protocol, Bytes::new(), Arc::new(TypeRules::envoy()));
        client.connected(server.now);
        Self {
            client,
            server: server::Stream::new(protocol, Settings::default()),
            requests: VecDeque::new(),
            responses: VecDeque::new(),
            wanted: BTreeSet::new(),
            view: BTreeMap::new(),
        }
    }

    fn step(&mut self, what: u8, server: &mut Server) -> bool {
        match what {
            0 => {
                let request = self.client.poll_transmit(server.now);
                let some = request.is_some();
                self.requests.extend(request);
                some
            }
            1 => {
                let Some(request) = self.requests.pop_front() else { return false };
                self.server.handle_message(server.now, request, &mut server.cache).unwrap();
                true
            }
            2 => {
                let transmit = self.server.poll_transmit(server.now, &mut server.cache).unwrap();
                let some = transmit.is_some();
                self.responses.extend(transmit.map(server::Transmit::into_bytes));
                some
            }
            3 => {
                // The next response is read when the last update is finished.
                if self.step(4, server) {
                    return true;
                }
                let Some(response) = self.responses.pop_front() else { return false };
                self.client.handle_message(server.now, response).unwrap();
                true
            }
            _ => {
                let Some(event) = self.client.poll_event() else { return false };
                let Event::Update(update) = event else { return true };
                let id = update.id;
                self.apply(update);
                self.client.apply(Command::Finish(id, Verdict::Accept));
                true
            }
        }
    }

    fn apply(&mut self, update: Update) {
        assert_eq!(update.rejected, [], "the server sent something that is to be refused");
        for changed in update.changed {
            if self.wants(&update.type_url, &changed.name) {
                self.view.insert((update.type_url.clone(), changed.name), changed.resource.value.any().clone());
            }
        }
        for name in update.removed {
            self.view.remove(&(update.type_url.clone(), name));
        }
    }

    fn wants(&self, of: &TypeUrl, name: &ResourceName) -> bool {
        self.wanted.iter().filter(|(wanted, _)| wanted == of).any(|(_, interest)| match interest {
            Interest::Wildcard => true,
            Interest::Name(asked) => name.answers(asked),
        })
    }

    fn reconnect(&mut self, server: &mut Server) {
        self.server.close(&mut server.cache);
        self.requests.clear();
        self.responses.clear();
        // What arrived before is handled before.
        while self.step(4, server) {}
        self.client.disconnected(server.now);
        self.server = server::Stream::new(self.client.protocol(), Settings::default());
        self.client.connected(server.now);
    }

    fn settle(&mut self, server: &mut Server) {
        for _ in 0..1000 {
            if !(0..5).fold(false, |busy, what| self.step(what, server) | busy) {
                if self.server.poll_timeout().is_none() {
                    return;
                }
                server.now += seconds(1);
            }
        }
        panic!("they never come to rest");
    }

    fn check(&self, server: &Server) {
        for of in TYPES.map(TypeUrl::from) {
            for name in NAMES.iter().map(|name| name.parse::<ResourceName>().unwrap()) {
                let held = self.view.get(&(of.clone(), name.clone()));
                let there = server.cache.resource(&of, &name).map(|resource| resource.value.any());
                if !self.wants(&of, &name) {
                    assert_eq!(held, None, "{name} of {of}");
                } else if there.is_some() || self.client.protocol() == Protocol::Delta || of.as_str() == CLUSTERS {
                    assert_eq!(held, there, "{name} of {of}");
                }
                // Else rule 67: SotW has no word for a removal of other types.
            }
        }
    }
}

fn run(history: &[Op]) {
    let mut options = Options::default();
    options.wildcard_covers_xdstp = true;
    let mut server = Server::new(options);
    let mut pairs = [Protocol::Delta, Protocol::Sotw].map(|protocol| Pair::new(protocol, &server));
    let interest = |what: usize| Interest::from(WANTED[what].parse::<ResourceName>().unwrap());
    for op in history {
        match op {
            Op::Subscribe { client, of, what } => {
                let (of, interest) = (TypeUrl::from(TYPES[*of]), interest(*what));
                pairs[*client].wanted.insert((of.clone(), interest.clone()));
                pairs[*client].client.apply(Command::Subscribe(of, interest));
            }
            Op::Unsubscribe { client, of, what } => {
                let (of, interest) = (TypeUrl::from(TYPES[*of]), interest(*what));
                let pair = &mut pairs[*client];
                pair.wanted.remove(&(of.clone(), interest.clone()));
                let view = std::mem::take(&mut pair.view);
                pair.view = view.into_iter().filter(|((of, name), _)| pair.wants(of, name)).collect();
                pair.client.apply(Command::Unsubscribe(of, interest));
                // A SotW request lists names: leaving and coming back within one of them is not seen by the
                // server, and what was forgotten between is not sent again.
                if pair.client.protocol() == Protocol::Sotw {
                    pair.step(0, &mut server);
                }
            }
            Op::Put { of, what, version } => server.put(TYPES[*of], NAMES[*what], &version.to_string()),
            Op::Remove { of, what } => server.remove(TYPES[*of], NAMES[*what]),
            Op::Step { client, what } => {
                pairs[*client].step(*what, &mut server);
            }
            Op::Break { client } => pairs[*client].reconnect(&mut server),
            Op::Settle => {
                for pair in &mut pairs {
                    pair.settle(&mut server);
                    pair.check(&server);
                }
            }
        }
    }
    for pair in &mut pairs {
        pair.settle(&mut server);
        pair.check(&server);
        pair.server.close(&mut server.cache);
    }
    assert_eq!(server.cache.subscriber_count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_client_ends_with_what_the_server_has(history in prop::collection::vec(op(), 1..120)) {
        run(&history);
    }
}
