//! Who asks with parameters (TP2): a client and a server without I/O between them.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use xds_matcher::DynamicParameters;
use xds_matcher::draft::Subscription;
use xdstp_cache::{Cache, Interest, Options, Selector, TypeUrl, Variant};

use crate::client::{Command, Event, Stream, Verdict};
use crate::server::{self, Settings};
use crate::{Dialect, Frame, Protocol, TypeRules};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

struct Pair {
    client: Stream,
    server: server::Stream,
    protocol: Protocol,
    dialect: Dialect,
    cache: Cache<Frame>,
    now: Instant,
}

impl Pair {
    fn new(protocol: Protocol, dialect: Dialect, selector: &Selector) -> Self {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let now = Instant::now();
        let client = Stream::new(protocol, Bytes::new(), Arc::new(TypeRules::envoy()));
        let client = client.selecting(dialect, selector.clone()).unwrap();
        let (server, cache) = (serve(protocol, dialect), Cache::new(Options::default()));
        let mut pair = Self { client, server, protocol, dialect, cache, now };
        pair.client.connected(now);
        pair
    }

    fn reconnect(&mut self) {
        self.server.close(&mut self.cache);
        self.server = serve(self.protocol, self.dialect);
        self.client.disconnected(self.now);
        self.client.connected(self.now);
    }

    fn subscribe(&mut self, name: &str) {
        let interest = Interest::from(name.parse::<xdstp_uri::ResourceName>().unwrap());
        self.client.apply(Command::Subscribe(CLUSTERS.into(), interest));
    }

    fn change(&mut self, put: &[(&Variant, &str)], gone: &[&Variant]) {
        let (of, name) = (TypeUrl::from(CLUSTERS), "cart".parse().unwrap());
        let mut edit = self.cache.edit(self.now);
        for (variant, body) in put {
            // `Cluster.name` is field 1.
            let frame = Frame::of_message(&of, &[b"\x0a\x04cart", body.as_bytes()].concat());
            edit.put_variant(&of, &name, variant, frame.into_resource(Some((*body).into())));
        }
        gone.iter().for_each(|variant| edit.remove_variant(&of, &name, variant));
        _ = edit.finish();
    }

    /// What the client is told until neither has anything to say: `cart{env=prod}@1`, `-cart`, `~cart{a}{b}` for two that
    /// overlap, `!cart` for what it refuses.
    fn settle(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            let mut silent = true;
            while let Some(request) = self.client.poll_transmit(self.now) {
                silent = false;
                self.server.handle_message(self.now, request, &mut self.cache).unwrap();
            }
            while let Some(transmit) = self.server.poll_transmit(self.now, &mut self.cache).unwrap() {
                silent = false;
                self.client.handle_message(self.now, transmit.into_bytes()).unwrap();
                while let Some(Event::Update(update)) = self.client.poll_event() {
                    for changed in update.changed.iter().chain(&update.repeated) {
                        let variant = changed.resource.value.variant();
                        let variant = variant.map(|variant| format!("{{{variant}}}")).unwrap_or_default();
                        told.push(format!("{}{variant}@{}", changed.name, changed.resource.version));
                    }
                    told.extend(update.removed.iter().map(|name| format!("-{name}")));
                    told.extend(update.rejected.iter().map(|rejected| format!("!{}", rejected.name)));
                    let overlapping = update.overlapping.iter();
                    told.extend(overlapping.map(|(name, served, other)| format!("~{name}{{{served}}}{{{other}}}")));
                    self.client.apply(Command::Finish(update.id, Verdict::Accept));
                }
            }
            if silent {
                return told;
            }
        }
    }
}

fn serve(protocol: Protocol, dialect: Dialect) -> server::Stream {
    server::Stream::new(protocol, Settings { dialect, ..Settings::default() })
}

fn constraints(text: &str) -> Variant {
    Variant::Constraints(text.parse().unwrap())
}

fn parameters(pairs: &[(&str, &str)]) -> DynamicParameters {
    DynamicParameters::from_iter(pairs.iter().copied())
}

fn production() -> Selector {
    Selector::Parameters(parameters(&[("env", "prod"), ("v", "1")]))
}

#[test]
fn a_swap_is_one_update_and_what_is_for_others_none() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut pair = Pair::new(protocol, Dialect::Final, &production());
        let [prod, test, first] = ["env=prod", "env=test", "env=prod and v=1"].map(constraints);
        pair.change(&[(&prod, "1"), (&test, "2")], &[]);
        pair.subscribe("cart");
        assert_eq!(pair.settle(), ["cart{env=prod}@1"], "{protocol:?}");
        pair.change(&[(&test, "3")], &[]);
        assert_eq!(pair.settle(), [""; 0]);
        pair.change(&[(&first, "4")], &[&prod]);
        assert_eq!(pair.settle(), ["cart{env=prod and v=1}@4"]);
        pair.change(&[], &[&first]);
        assert_eq!(pair.settle(), ["-cart"]);
        pair.change(&[(&prod, "5")], &[]);
        assert_eq!(pair.settle(), ["cart{env=prod}@5"]);
    }
}

#[test]
fn the_same_content_for_others_too_is_news_of_whom_it_is_for() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut pair = Pair::new(protocol, Dialect::Final, &production());
        let [prod, all] = ["env=prod", "exists(env)"].map(constraints);
        pair.change(&[(&prod, "1")], &[]);
        pair.subscribe("cart");
        pair.settle();
        pair.change(&[(&all, "1")], &[&prod]);
        assert_eq!(pair.settle(), ["cart{exists(env)}@1"], "{protocol:?}");
    }
}

#[test]
fn by_the_draft_ranges_prefer_the_largest() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let constraint = "shard in 0..4".parse().unwrap();
        let selector = Selector::Constraints(Subscription::where_present(&constraint).unwrap());
        let mut pair = Pair::new(protocol, Dialect::Draft, &selector);
        let [two, three, five] = ["2", "3", "5"].map(|shard| Variant::Parameters(parameters(&[("shard", shard)])));
        pair.change(&[(&two, "2"), (&five, "5")], &[]);
        pair.subscribe("cart");
        assert_eq!(pair.settle(), ["cart{{shard=2}}@2"], "{protocol:?}");
        pair.change(&[(&three, "3")], &[]);
        assert_eq!(pair.settle(), ["cart{{shard=3}}@3"]);
        pair.change(&[], &[&two, &three]);
        assert_eq!(pair.settle(), ["-cart"]);
    }
}

#[test]
fn a_new_stream_is_told_of_what_took_the_place_meanwhile() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut pair = Pair::new(protocol, Dialect::Final, &production());
        let [prod, first] = ["env=prod", "env=prod and v=1"].map(constraints);
        pair.change(&[(&prod, "1")], &[]);
        pair.subscribe("cart");
        pair.settle();
        pair.change(&[(&first, "2")], &[&prod]);
        pair.reconnect();
        assert_eq!(pair.settle(), ["cart{env=prod and v=1}@2"], "{protocol:?}");
        pair.change(&[], &[&first]);
        pair.reconnect();
        assert_eq!(pair.settle(), ["-cart"], "{protocol:?}");
    }
}

#[test]
fn a_wildcard_goes_with_parameters() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut pair = Pair::new(protocol, Dialect::Final, &production());
        let [prod, test] = ["env=prod", "env=test"].map(constraints);
        pair.change(&[(&prod, "1"), (&test, "2")], &[]);
        pair.subscribe("*");
        assert_eq!(pair.settle(), ["cart{env=prod}@1"], "{protocol:?}");
        pair.change(&[], &[&prod]);
        assert_eq!(pair.settle(), ["-cart"], "{protocol:?}");
    }
}

#[test]
fn a_server_that_sends_what_is_for_others_is_refused() {
    let mut pair = Pair::new(Protocol::Delta, Dialect::Final, &production());
    let test = constraints("env=test");
    // It takes the client for another one.
    pair.change(&[(&test, "1")], &[]);
    pair.subscribe("cart");
    let request = pair.client.poll_transmit(pair.now).unwrap();
    let other = Selector::Parameters(parameters(&[("env", "test")]));
    let mut client = Stream::new(Protocol::Delta, Bytes::new(), Arc::new(TypeRules::envoy()));
    client = client.selecting(Dialect::Final, other).unwrap();
    client.connected(pair.now);
    client.apply(Command::Subscribe(CLUSTERS.into(), Interest::Name("cart".parse().unwrap())));
    let theirs = client.poll_transmit(pair.now).unwrap();
    assert_ne!(request, theirs);
    pair.server.handle_message(pair.now, theirs, &mut pair.cache).unwrap();
    assert_eq!(pair.settle(), ["!cart"]);
}

#[test]
fn ranges_cannot_be_asked_for_in_the_final_form() {
    let constraint = "shard in 0..4".parse().unwrap();
    let selector = Selector::Constraints(Subscription::where_present(&constraint).unwrap());
    let stream = Stream::new(Protocol::Delta, Bytes::new(), Arc::new(TypeRules::envoy()));
    let refused = stream.selecting(Dialect::Final, selector).unwrap_err().to_string();
    assert!(refused.contains("key_constraints[\"shard\"]"), "{refused}");
}
