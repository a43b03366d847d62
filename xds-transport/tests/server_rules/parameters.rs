//! Dynamic parameters (TP2): rules 119 and 120, and what each dialect says of a swap, of a removal and of what there is not.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use xds_matcher::draft::Subscription;
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::parameters::Locator;
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest, DiscoveryResponse, Node, Status};
use xds_transport::{Dialect, Frame, Protocol, Response, TypeRules};
use xdstp_cache::{Selector, Variant};

use crate::support::{self, CLUSTERS, ENDPOINTS, LISTENERS, Server, payload};

/// The stream of a client that asks for clusters with parameters.
struct Client {
    stream: Stream,
    dialect: Dialect,
    /// Over SotW, what it asked for last, and the last nonce and version.
    request: DiscoveryRequest,
}

#[derive(Default)]
struct Ask<'a> {
    names: &'a [&'a str],
    locators: &'a [(&'a str, &'a str)],
    leaves: &'a [(&'a str, &'a str)],
}

impl Client {
    fn new(dialect: Dialect) -> Self {
        Self::over(Protocol::Delta, dialect, Settings::default())
    }

    fn over(protocol: Protocol, dialect: Dialect, mut settings: Settings) -> Self {
        settings.dialect = dialect;
        Self { stream: Stream::new(protocol, settings), dialect, request: DiscoveryRequest::default() }
    }

    /// Over SotW: this is all that it wants of a type from now on.
    fn want(&mut self, server: &mut Server, of: &str, names: &[&str], locators: &[(&str, &str)]) -> Vec<String> {
        let locators = locators
            .iter()
            .map(|(name, selects)| Locator::new(*name, self.selector(selects)).encode(self.dialect).unwrap());
        self.request = DiscoveryRequest {
            type_url: of.into(),
            resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
            resource_locators: locators.collect(),
            response_nonce: std::mem::take(&mut self.request.response_nonce),
            ..Default::default()
        };
        let request = self.request.encode_to_vec().into();
        self.stream.handle_message(server.now, request, &mut server.cache).unwrap();
        self.poll(server)
    }

    fn ask(&mut self, server: &mut Server, ask: &Ask<'_>) -> Vec<String> {
        let locators = |all: &[(&str, &str)]| {
            let encode = |(name, selects): &(&str, &str)| {
                Locator::new(*name, self.selector(selects)).encode(self.dialect).unwrap()
            };
            all.iter().map(encode).collect()
        };
        let request = DeltaDiscoveryRequest {
            type_url: CLUSTERS.into(),
            resource_names_subscribe: ask.names.iter().map(|name| (*name).to_owned()).collect(),
            resource_locators_subscribe: locators(ask.locators),
            resource_locators_unsubscribe: locators(ask.leaves),
            ..Default::default()
        };
        self.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
        self.poll(server)
    }

    fn locate(&mut self, server: &mut Server, locators: &[(&str, &str)]) -> Vec<String> {
        self.ask(server, &Ask { locators, ..Ask::default() })
    }

    /// `env=prod,v=1` are parameters; of the draft, constraints.
    fn selector(&self, text: &str) -> Selector {
        match self.dialect {
            Dialect::Draft => Selector::Constraints(Subscription::where_present(&text.parse().unwrap()).unwrap()),
            _ => Selector::Parameters(text.split(',').filter_map(|pair| pair.split_once('=')).collect()),
        }
    }

    /// Each response is a line: `cart{env=prod}@1 -cart{env=test} -gone !bad:3`. All are accepted.
    fn poll(&mut self, server: &mut Server) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(transmit) = self.stream.poll_transmit(server.now, &mut server.cache).unwrap() {
            let message = transmit.into_bytes();
            let response = match self.stream.protocol() {
                Protocol::Delta => Response::from_delta_in(self.dialect, message).unwrap(),
                Protocol::Sotw => Response::from_sotw_in(self.dialect, message, &TypeRules::envoy()).unwrap(),
            };
            assert_eq!(response.rejected, []);
            let of = |variant: Option<&Variant>| variant.map(|variant| format!("{{{variant}}}")).unwrap_or_default();
            let mut words: Vec<_> = response
                .resources
                .iter()
                .map(|one| {
                    let version = one.version.as_ref().map_or("bare", |version| version.as_str());
                    let variant = one.frame.as_ref().and_then(Frame::variant);
                    format!("{}{}@{version}", one.name, of(variant.map(|variant| &**variant)))
                })
                .chain(response.removed.iter().map(|name| format!("-{name}")))
                .chain(response.removed_variants.iter().map(|(name, gone)| format!("-{name}{}", of(Some(gone)))))
                .chain(response.errors.iter().map(|error| {
                    let status = error.error_detail.as_ref().unwrap();
                    format!("!{}:{} {}", error.resource_name.as_ref().unwrap().name, status.code, status.message)
                }))
                .collect();
            words.sort();
            lines.push(words.join(" "));
            let ack = match self.stream.protocol() {
                Protocol::Delta => DeltaDiscoveryRequest {
                    type_url: response.type_url,
                    response_nonce: response.nonce,
                    ..Default::default()
                }
                .encode_to_vec(),
                Protocol::Sotw => {
                    self.request.response_nonce = response.nonce;
                    assert_ne!(self.request.version_info, response.version, "something changed");
                    self.request.version_info = response.version;
                    self.request.encode_to_vec()
                }
            };
            self.stream.handle_message(server.now, ack.into(), &mut server.cache).unwrap();
        }
        lines
    }
}

fn constraints(text: &str) -> Variant {
    Variant::Constraints(text.parse().unwrap())
}

fn parameters(pairs: &[(&str, &str)]) -> Variant {
    Variant::Parameters(pairs.iter().copied().collect())
}

/// In one change, these come and those go.
fn change(server: &mut Server, name: &str, put: &[(&Variant, &str)], gone: &[&Variant]) {
    change_of(CLUSTERS, server, name, put, gone);
}

fn change_of(of: &str, server: &mut Server, name: &str, put: &[(&Variant, &str)], gone: &[&Variant]) {
    let name = name.parse().unwrap();
    let mut edit = server.cache.edit(server.now);
    for (variant, version) in put {
        let frame = Frame::of_message(&of.into(), &payload("cart", version));
        edit.put_variant(&of.into(), &name, variant, frame.into_resource(Some((*version).into())));
    }
    gone.iter().for_each(|variant| edit.remove_variant(&of.into(), &name, variant));
    _ = edit.finish();
}

fn with_two_variants() -> (Server, Variant, Variant) {
    let mut server = Server::origin();
    let (prod, test) = (constraints("env=prod"), constraints("env=test"));
    change(&mut server, "cart", &[(&prod, "1"), (&test, "2")], &[]);
    (server, prod, test)
}

#[test]
fn rule_119_each_client_is_sent_the_variant_that_its_parameters_satisfy() {
    let (mut server, ..) = with_two_variants();
    let mut client = Client::new(Dialect::Final);
    // A parameter that no variant is about is ignored.
    assert_eq!(client.locate(&mut server, &[("cart", "env=prod,zone=a")]), ["cart{env=prod}@1"]);
    let mut other = Client::new(Dialect::Final);
    assert_eq!(other.locate(&mut server, &[("cart", "env=test")]), ["cart{env=test}@2"]);
    let mut none = Client::new(Dialect::Final);
    assert_eq!(none.locate(&mut server, &[("cart", "env=qa")]), ["-cart"]);
}

#[test]
fn rule_119_a_swap_is_one_response_with_what_comes_and_what_goes() {
    let (mut server, prod, _) = with_two_variants();
    let mut client = Client::new(Dialect::Final);
    client.locate(&mut server, &[("cart", "env=prod,v=1")]);
    let (first, second) = (constraints("env=prod and v=1"), constraints("env=prod and v=2"));
    change(&mut server, "cart", &[(&first, "3"), (&second, "4")], &[&prod]);
    assert_eq!(client.poll(&mut server), ["-cart{env=prod} cart{env=prod and v=1}@3"]);
    change(&mut server, "cart", &[(&second, "5")], &[]);
    assert_eq!(client.poll(&mut server), [""; 0], "what changed is for others");
    change(&mut server, "cart", &[], &[&first]);
    assert_eq!(client.poll(&mut server), ["-cart{env=prod and v=1}"]);
}

#[test]
fn rule_119_who_sends_no_parameters_is_sent_names() {
    let mut server = Server::origin();
    let everybody = constraints("not exists(env)");
    let prod = constraints("env=prod");
    change(&mut server, "cart", &[(&everybody, "1"), (&prod, "2")], &[]);
    let mut client = Client::new(Dialect::Final);
    assert_eq!(client.ask(&mut server, &Ask { names: &["cart"], ..Ask::default() }), ["cart@1"]);
    change(&mut server, "cart", &[], &[&everybody]);
    assert_eq!(client.poll(&mut server), ["-cart"]);
}

#[test]
fn rule_120_names_and_locators_may_be_mixed() {
    let (mut server, ..) = with_two_variants();
    server.put(CLUSTERS, "plain", "7");
    let mut client = Client::new(Dialect::Final);
    let ask = Ask { names: &["plain"], locators: &[("cart", "env=prod")], ..Ask::default() };
    assert_eq!(client.ask(&mut server, &ask), ["cart{env=prod}@1 plain@7"]);
    server.put(CLUSTERS, "plain", "8");
    assert_eq!(client.poll(&mut server), ["plain@8"]);
}

#[test]
fn rule_120_by_the_draft_the_first_request_says_which_field_counts() {
    let mut server = Server::origin();
    change(&mut server, "cart", &[(&parameters(&[("env", "prod")]), "1")], &[]);
    server.put(CLUSTERS, "plain", "7");
    let mut client = Client::new(Dialect::Draft);
    let both = Ask { names: &["plain"], locators: &[("cart", "env=prod")], ..Ask::default() };
    assert_eq!(client.ask(&mut server, &both), ["cart{{env=prod}}@1"]);
    let mut by_names = Client::new(Dialect::Draft);
    assert_eq!(by_names.ask(&mut server, &Ask { names: &["plain"], ..Ask::default() }), ["plain@7"]);
    assert_eq!(by_names.ask(&mut server, &both), ["plain@7"], "asked for anew");
}

#[test]
fn a_locator_alone_is_no_wildcard() {
    let (mut server, ..) = with_two_variants();
    server.put(CLUSTERS, "other", "1");
    let mut client = Client::new(Dialect::Final);
    assert_eq!(client.locate(&mut server, &[("cart", "env=prod")]), ["cart{env=prod}@1"]);
}

#[test]
fn two_selections_of_one_name_are_told_apart() {
    let (mut server, prod, test) = with_two_variants();
    let mut relay = Client::new(Dialect::Final);
    let asked = [("cart", "env=prod"), ("cart", "env=test"), ("cart", "env=qa")];
    assert_eq!(relay.locate(&mut server, &asked), ["-cart{env=qa} cart{env=prod}@1 cart{env=test}@2"]);
    change(&mut server, "cart", &[], &[&test]);
    assert_eq!(relay.poll(&mut server), ["-cart{env=test}"]);
    assert_eq!(relay.ask(&mut server, &Ask { leaves: &asked[1..], ..Ask::default() }), [""; 0]);
    change(&mut server, "cart", &[(&test, "3")], &[]);
    assert_eq!(relay.poll(&mut server), [""; 0], "nobody asks for it any more");
    change(&mut server, "cart", &[(&prod, "4")], &[]);
    assert_eq!(relay.poll(&mut server), ["cart{env=prod}@4"]);
}

#[test]
fn what_two_selections_select_is_sent_once_and_goes_with_the_last() {
    let mut server = Server::origin();
    let (all, prod) = (constraints("exists(env)"), constraints("env=prod"));
    change(&mut server, "cart", &[(&all, "1")], &[]);
    let mut relay = Client::new(Dialect::Final);
    let asked = [("cart", "env=prod"), ("cart", "env=test")];
    assert_eq!(relay.locate(&mut server, &asked), ["cart{exists(env)}@1"]);
    let others = constraints("exists(env) and not env=prod");
    change(&mut server, "cart", &[(&prod, "2"), (&others, "3")], &[&all]);
    let told = relay.poll(&mut server);
    assert_eq!(told, ["-cart{exists(env)} cart{env=prod}@2 cart{exists(env) and not env=prod}@3"]);
}

#[test]
fn a_variant_that_one_selection_loses_and_another_has_is_not_told_as_gone() {
    let mut server = Server::origin();
    let all = constraints("exists(env)");
    change(&mut server, "cart", &[(&all, "1")], &[]);
    let mut relay = Client::new(Dialect::Final);
    relay.locate(&mut server, &[("cart", "env=prod"), ("cart", "env=test")]);
    // A narrower one comes beside it: it overlaps, and the first in order is served to who has both.
    let prod = constraints("env=prod");
    change(&mut server, "cart", &[(&prod, "2")], &[]);
    for told in relay.poll(&mut server) {
        assert!(!told.contains("-cart{exists(env)}"), "{told}");
    }
}

#[test]
fn a_glob_with_parameters_selects_of_each_member() {
    let mut server = Server::origin();
    let (one, two) = (constraints("shard=1"), constraints("shard=2"));
    let prefix = "xdstp://x/envoy.config.cluster.v3.Cluster/d";
    let (a, b) = (format!("{prefix}/a"), format!("{prefix}/b"));
    change(&mut server, &a, &[(&one, "1")], &[]);
    change(&mut server, &b, &[(&two, "2")], &[]);
    let mut client = Client::new(Dialect::Final);
    let glob = format!("{prefix}/*");
    assert_eq!(client.locate(&mut server, &[(&glob, "shard=1")]), [format!("{a}{{shard=1}}@1")]);
    // The member moves to the shard of the client.
    change(&mut server, &b, &[(&one, "3")], &[&two]);
    assert_eq!(client.poll(&mut server), [format!("{b}{{shard=1}}@3")]);
    change(&mut server, &a, &[(&two, "4")], &[&one]);
    assert_eq!(client.poll(&mut server), [format!("-{a}{{shard=1}}")]);
}

#[test]
fn by_the_draft_constraints_select_among_parameters_and_the_largest_is_preferred() {
    let mut server = Server::origin();
    let [three, five] = [&[("shard", "3")], &[("shard", "5")]].map(|pairs| parameters(pairs));
    change(&mut server, "cart", &[(&three, "3"), (&five, "5")], &[]);
    let mut client = Client::new(Dialect::Draft);
    assert_eq!(client.locate(&mut server, &[("cart", "shard in 0..4")]), ["cart{{shard=3}}@3"]);
    let mut wider = Client::new(Dialect::Draft);
    assert_eq!(wider.locate(&mut server, &[("cart", "shard in 0..9")]), ["cart{{shard=5}}@5"]);
    change(&mut server, "cart", &[], &[&five]);
    assert_eq!(wider.poll(&mut server), ["cart{{shard=3}}@3"], "it takes the place of the other");
    change(&mut server, "cart", &[], &[&three]);
    assert_eq!(wider.poll(&mut server), ["-cart"]);
}

#[test]
fn what_one_dialect_says_is_translated_to_the_other() {
    let mut server = Server::origin();
    change(&mut server, "cart", &[(&parameters(&[("env", "prod")]), "1")], &[]);
    change(&mut server, "shop", &[(&constraints("env=prod"), "2")], &[]);
    let asked = [("cart", "env=prod"), ("shop", "env=prod")];
    let mut client = Client::new(Dialect::Final);
    let told = client.locate(&mut server, &asked);
    assert_eq!(told, ["cart{all(not exists(env) or env=prod)}@1 shop{env=prod}@2"]);
    let mut draft = Client::new(Dialect::Draft);
    assert_eq!(draft.locate(&mut server, &asked), ["cart{{env=prod}}@1 shop{{env=prod}}@2"]);
}

#[test]
fn constraints_that_make_no_sense_are_refused_by_name_and_nothing_else() {
    let (mut server, ..) = with_two_variants();
    let mut client = Client::new(Dialect::Draft);
    // A range without bounds: `{shard: [{integer_range_list: {range: {}}}]}`.
    let constraints = b"\x0a\x11\x0a\x05shard\x12\x08\x12\x06\x12\x04\x0a\x02\x08\x05";
    let empty = b"\x0a\x0f\x0a\x05shard\x12\x06\x12\x04\x12\x02\x0a\x00";
    let locator = |name: &[u8], constraints: &[u8]| {
        let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
        [b"\x0a", &[length(name)][..], name, b"\x12", &[length(constraints)], constraints].concat().into()
    };
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: vec![locator(b"bad", empty), locator(b"gone", constraints)],
        ..Default::default()
    };
    client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
    let told = client.poll(&mut server).join("; ");
    assert!(told.contains("-gone") && told.contains("-bad") && told.contains("!bad:3"), "{told}");
    assert!(told.contains("key_constraints[\"shard\"]"), "{told}");
}

#[test]
fn a_stream_has_so_many_sets_of_parameters() {
    let mut settings = Settings::default();
    settings.selectors_per_stream = 2;
    let mut client = Client::over(Protocol::Delta, Dialect::Final, settings);
    let (mut server, ..) = with_two_variants();
    client.locate(&mut server, &[("cart", "a=1"), ("cart", "a=2"), ("shop", "a=2")]);
    client.ask(&mut server, &Ask { leaves: &[("cart", "a=1")], ..Ask::default() });
    client.locate(&mut server, &[("cart", "a=3")]);
    let fourth = Locator::new("cart", client.selector("a=4")).encode(Dialect::Final).unwrap();
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: vec![fourth],
        ..Default::default()
    };
    let refused = client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache);
    assert_eq!(refused.unwrap_err().to_string(), "more than 2 sets of dynamic parameters on one stream");
    client.stream.close(&mut server.cache);
    assert_eq!(server.cache.subscriber_count(), 0);
}

#[test]
fn what_lives_for_a_time_is_looked_after_once_it_was_accepted() {
    let (mut server, mut client) = (Server::origin(), Client::new(Dialect::Final));
    let frame = Frame::of_message(&CLUSTERS.into(), &payload("cart", "1"));
    server.put_frame(CLUSTERS, "cart", "1", frame.with_wrapper(Bytes::new(), Some(Duration::from_secs(30)), false));
    let client_features = vec!["xds.config.supports-resource-ttl".to_owned()];
    let request = DeltaDiscoveryRequest {
        node: Node { client_features, ..Default::default() }.encode_to_vec().into(),
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: vec![Locator::new("cart", client.selector("a=1")).encode(Dialect::Final).unwrap()],
        ..Default::default()
    };
    client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
    let told = client.stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap();
    let response_nonce = Response::from_delta_in(Dialect::Final, told.into_bytes()).unwrap().nonce;
    assert!(client.stream.poll_transmit(server.now, &mut server.cache).unwrap().is_none());
    let ack = DeltaDiscoveryRequest { type_url: CLUSTERS.into(), response_nonce, ..Default::default() };
    client.stream.handle_message(server.now, ack.encode_to_vec().into(), &mut server.cache).unwrap();
    assert!(client.stream.leaves_work(server.now, &server.cache), "when that is, is known since then");
    let due = client.stream.poll_timeout().unwrap();
    server.now = due;
    assert_eq!(client.poll(&mut server), ["cart@1"]);
}

#[test]
fn over_sotw_a_full_state_has_what_each_locator_selects_and_the_names() {
    let (mut server, prod, test) = with_two_variants();
    server.put(CLUSTERS, "plain", "7");
    let mut client = Client::over(Protocol::Sotw, Dialect::Final, Settings::default());
    let asked = [("cart", "env=prod"), ("cart", "env=test"), ("cart", "env=qa")];
    let told = client.want(&mut server, CLUSTERS, &["plain"], &asked);
    assert_eq!(told, ["cart{env=prod}@1 cart{env=test}@2 plain@bare"]);
    change(&mut server, "cart", &[(&test, "3")], &[]);
    assert_eq!(client.poll(&mut server), ["cart{env=prod}@1 cart{env=test}@3 plain@bare"]);
    change(&mut server, "cart", &[], &[&test]);
    assert_eq!(client.poll(&mut server), ["cart{env=prod}@1 plain@bare"]);
    // It leaves what it has, and is told of what is new from then on.
    client.want(&mut server, CLUSTERS, &["plain"], &asked[1..]);
    change(&mut server, "cart", &[(&prod, "4")], &[]);
    assert_eq!(client.poll(&mut server), [""; 0]);
    change(&mut server, "cart", &[(&test, "5")], &[]);
    assert_eq!(client.poll(&mut server), ["cart{env=test}@5 plain@bare"]);
}

#[test]
fn over_sotw_a_locator_alone_is_no_wildcard() {
    let (mut server, ..) = with_two_variants();
    server.put(CLUSTERS, "other", "1");
    let mut client = Client::over(Protocol::Sotw, Dialect::Final, Settings::default());
    assert_eq!(client.want(&mut server, CLUSTERS, &[], &[("cart", "env=prod")]), ["cart{env=prod}@1"]);
    assert_eq!(client.want(&mut server, CLUSTERS, &[], &[("other", "env=prod")]), ["other@1"]);
}

#[test]
fn over_sotw_a_type_that_is_told_by_changes_is_sent_the_variant_that_changed() {
    let mut server = Server::origin();
    let [one, two] = ["subset=1", "subset=2"].map(constraints);
    change_of(ENDPOINTS, &mut server, "cart", &[(&one, "1"), (&two, "2")], &[]);
    server.put(ENDPOINTS, "other", "1");
    let mut client = Client::over(Protocol::Sotw, Dialect::Final, Settings::default());
    let asked = [("cart", "subset=1"), ("other", "subset=1")];
    assert_eq!(client.want(&mut server, ENDPOINTS, &[], &asked), ["cart{subset=1}@1 other@1"]);
    change_of(ENDPOINTS, &mut server, "cart", &[(&two, "3")], &[]);
    assert_eq!(client.poll(&mut server), [""; 0]);
    change_of(ENDPOINTS, &mut server, "cart", &[(&one, "4")], &[]);
    assert_eq!(client.poll(&mut server), ["cart{subset=1}@4"]);
}

#[test]
fn over_sotw_the_draft_wraps_what_it_selects() {
    let mut server = Server::origin();
    change(&mut server, "cart", &[(&parameters(&[("env", "prod")]), "1")], &[]);
    server.put(CLUSTERS, "plain", "7");
    let mut client = Client::over(Protocol::Sotw, Dialect::Draft, Settings::default());
    let told = client.want(&mut server, CLUSTERS, &["plain"], &[("cart", "env=prod")]);
    assert_eq!(told, ["cart{{env=prod}}@1"], "its names are ignored");
}

#[test]
fn a_locator_without_parameters_is_a_name_like_others() {
    let mut server = Server::origin();
    server.put(CLUSTERS, "plain", "7");
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut client = Client::over(protocol, Dialect::Final, Settings::default());
        let told = match protocol {
            Protocol::Delta => {
                let ask = Ask { names: &["plain"], locators: &[("plain", "")], ..Ask::default() };
                let told = client.ask(&mut server, &ask);
                server.put(CLUSTERS, "plain", "8");
                assert_eq!(client.poll(&mut server), ["plain@8"], "once");
                assert_eq!(client.ask(&mut server, &Ask { leaves: &[("plain", "")], ..Ask::default() }), [""; 0]);
                server.put(CLUSTERS, "plain", "7");
                assert_eq!(client.poll(&mut server), [""; 0], "left");
                told
            }
            Protocol::Sotw => {
                let told = client.want(&mut server, CLUSTERS, &["plain"], &[("plain", "")]);
                assert_eq!(client.want(&mut server, CLUSTERS, &[], &[]), [""; 0]);
                server.put(CLUSTERS, "plain", "8");
                assert_eq!(client.poll(&mut server), [""; 0], "an empty list is nothing");
                server.put(CLUSTERS, "plain", "7");
                told
            }
        };
        let expected = if protocol == Protocol::Delta { "plain@7" } else { "plain@bare" };
        assert_eq!(told, [expected], "{protocol:?}");
    }
}

/// As many names with as long a set of parameters as make far more than a response may have.
#[test]
fn what_there_is_none_of_is_told_in_parts() {
    let mut server = Server::origin();
    let mut client = Client::new(Dialect::Final);
    let long = format!("a={}", "x".repeat(50_000));
    let names: Vec<_> = (0..100).map(|n| format!("n{n}")).collect();
    let mut locators: Vec<_> = names.iter().map(|name| (name.as_str(), long.as_str())).collect();
    locators.push(("other", "a=1"));
    let told = client.locate(&mut server, &locators);
    assert!(told.len() > 10, "{} responses", told.len());
    let gone: usize = told.iter().map(|line| line.split_whitespace().count()).sum();
    assert_eq!(gone, 101);
    assert!(told.iter().all(|line| line.len() < 512 * 1024));
}

#[test]
fn what_a_client_brings_along_counts_for_each_set_that_may_have_it() {
    let mut settings = Settings::default();
    settings.names_per_stream = 1000;
    let mut client = Client::over(Protocol::Delta, Dialect::Final, settings);
    let server = &mut Server::origin();
    let selectors: Vec<_> = (0..90).map(|n| format!("a={n}")).collect();
    let locator = |selects: &String| Locator::new("*", client.selector(selects)).encode(Dialect::Final).unwrap();
    let entry = |n: usize| [b"\x0a\x05", format!("n{n:04}").as_bytes(), b"\x12\x011"].concat().into();
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: selectors.iter().map(locator).collect(),
        initial_resource_versions: (0..900).map(entry).collect(),
        ..Default::default()
    };
    let refused = client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache);
    assert_eq!(refused.unwrap_err().to_string(), "more than 1000 names on one stream");
    client.stream.close(&mut server.cache);
    assert_eq!(server.cache.subscriber_count(), 0);
}

#[test]
fn a_set_of_parameters_is_no_longer_than_a_name_may_be() {
    let mut client = Client::new(Dialect::Final);
    let server = &mut Server::origin();
    let long = client.selector(&format!("a={}", "x".repeat(70_000)));
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: vec![Locator::new("cart", long).encode(Dialect::Final).unwrap()],
        ..Default::default()
    };
    let refused = client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache);
    assert!(refused.unwrap_err().to_string().starts_with("a set of dynamic parameters of 70004 bytes, "));
}

/// The resources of these names, each of which lives for thirty seconds, as a client that knows TTLs is sent them.
fn living(server: &mut Server, client: &mut Client, names: &[&str]) -> String {
    for name in names {
        let frame = Frame::of_message(&CLUSTERS.into(), &payload(name, "1"));
        server.put_frame(CLUSTERS, name, "1", frame.with_wrapper(Bytes::new(), Some(Duration::from_secs(30)), false));
    }
    let client_features = vec!["xds.config.supports-resource-ttl".to_owned()];
    let locator = |name: &&str| Locator::new(*name, client.selector("a=1")).encode(Dialect::Final).unwrap();
    let request = DeltaDiscoveryRequest {
        node: Node { client_features, ..Default::default() }.encode_to_vec().into(),
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: names.iter().map(locator).collect(),
        ..Default::default()
    };
    client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
    let told = client.stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap();
    Response::from_delta_in(Dialect::Final, told.into_bytes()).unwrap().nonce
}

#[test]
fn rule_111_what_lives_for_a_time_and_is_gone_is_not_looked_after() {
    let (mut server, mut client) = (Server::origin(), Client::new(Dialect::Final));
    living(&mut server, &mut client, &["cart"]);
    assert!(client.stream.poll_timeout().is_some());
    server.remove(CLUSTERS, "cart");
    assert_eq!(client.poll(&mut server), ["-cart"]);
    assert_eq!(client.stream.poll_timeout(), None);
}

#[test]
fn rule_111_what_came_with_something_bad_is_refreshed_alone_until_that_is_accepted() {
    let (mut server, mut client) = (Server::origin(), Client::new(Dialect::Final));
    let response_nonce = living(&mut server, &mut client, &["bad", "good"]);
    let error_detail = Some(Status { code: 3, message: "bad".into() });
    let nack = DeltaDiscoveryRequest { type_url: CLUSTERS.into(), response_nonce, error_detail, ..Default::default() };
    client.stream.handle_message(server.now, nack.encode_to_vec().into(), &mut server.cache).unwrap();
    server.now += Duration::from_secs(10);
    assert_eq!(client.poll(&mut server), ["bad@1", "good@1"], "which of them, each alone can tell");
    server.now += Duration::from_secs(10);
    assert_eq!(client.poll(&mut server), ["bad@1 good@1"], "both were accepted");
}

#[test]
fn rule_122_what_one_of_several_sets_is_yet_to_be_sent_others_wait_for() {
    let (mut server, prod, _) = with_two_variants();
    server.put(LISTENERS, "l", "0");
    let mut client = Client::new(Dialect::Final);
    client.locate(&mut server, &[("cart", "env=prod"), ("cart", "env=test")]);
    let listeners = support::Ask { of: LISTENERS, subscribe: &["l"], ..Default::default() }.encode();
    client.stream.handle_message(server.now, listeners, &mut server.cache).unwrap();
    assert_eq!(client.poll(&mut server), ["l@0"]);
    let poll = |client: &mut Client, server: &mut Server| {
        client
            .stream
            .poll_transmit(server.now, &mut server.cache)
            .unwrap()
            .map(|transmit| transmit.type_url.to_string())
    };
    for version in 2..10 {
        change(&mut server, "cart", &[(&prod, &version.to_string())], &[]);
        assert_eq!(poll(&mut client, &mut server).as_deref(), Some(CLUSTERS));
    }
    change(&mut server, "cart", &[(&prod, "10")], &[]);
    server.put(LISTENERS, "l", "1");
    assert_eq!(poll(&mut client, &mut server), None, "its window is full, and there is more");
    server.now += Duration::from_secs(1);
    assert_eq!(poll(&mut client, &mut server).as_deref(), Some(LISTENERS));
}

#[test]
fn a_long_set_of_parameters_counts_for_each_kib_that_it_begins() {
    let ask = |limit| {
        let mut settings = Settings::default();
        settings.names_per_stream = limit;
        let client = &mut Client::over(Protocol::Delta, Dialect::Final, settings);
        let server = &mut Server::origin();
        let long = client.selector(&format!("a={}", "x".repeat(5_000)));
        let request = DeltaDiscoveryRequest {
            type_url: CLUSTERS.into(),
            resource_locators_subscribe: vec![Locator::new("cart", long).encode(Dialect::Final).unwrap()],
            ..Default::default()
        };
        client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache)
    };
    ask(10).unwrap();
    assert_eq!(ask(5).unwrap_err().to_string(), "more than 5 names on one stream");
}

#[test]
fn what_is_refused_twice_counts_once() {
    let mut settings = Settings::default();
    settings.names_per_stream = 3;
    let mut client = Client::over(Protocol::Delta, Dialect::Draft, settings);
    let mut server = Server::origin();
    // A range without bounds, of the name `bad`.
    let bad = b"\x0a\x03bad\x12\x11\x0a\x0f\x0a\x05shard\x12\x06\x12\x04\x12\x02\x0a\x00";
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: vec![Bytes::from_static(bad); 3],
        ..Default::default()
    };
    client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
    assert_eq!(client.poll(&mut server).len(), 1);
    assert_eq!(client.stream.names(), 0, "it was told");
}

/// The longest resource beside which there is room for another fills the response but for one byte.
#[test]
fn rule_133_a_response_is_full_at_its_budget() {
    const BUDGET: usize = 256 * 1024;
    /// What a resource counts for beside its bytes.
    const RESOURCE: usize = 384;
    let first = |length: usize| {
        let mut server = Server::origin();
        let (of, prod) = (ENDPOINTS.into(), constraints("env=prod"));
        for (name, length) in [("a", length), ("b", 1)] {
            let mut edit = server.cache.edit(server.now);
            let frame = Frame::of_message(&of, &payload(name, &"x".repeat(length)));
            edit.put_variant(&of, &name.parse().unwrap(), &prod, frame.into_resource(Some("1".into())));
            _ = edit.finish();
        }
        let mut client = Client::over(Protocol::Sotw, Dialect::Final, Settings::default());
        let locator = |name| Locator::new(name, client.selector("env=prod")).encode(Dialect::Final).unwrap();
        let resource_locators = vec![locator("a"), locator("b")];
        let request = DiscoveryRequest { type_url: ENDPOINTS.into(), resource_locators, ..Default::default() };
        client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
        let told = client.stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap();
        DiscoveryResponse::decode(told.into_bytes()).unwrap()
    };
    let (mut fits, mut fills) = (BUDGET - 2 * 1024, BUDGET);
    while fills - fits > 1 {
        let length = usize::midpoint(fits, fills);
        if first(length).resources.len() > 1 { fits = length } else { fills = length }
    }
    let mut full = first(fills);
    let whole = full.encoded_len();
    assert_eq!(std::mem::take(&mut full.resources).len(), 1);
    assert_eq!(whole - full.encoded_len() + RESOURCE, BUDGET);
}

#[test]
fn rule_084_what_was_sent_for_one_set_says_nothing_of_what_another_holds() {
    let mut server = Server::origin();
    change(&mut server, "cart", &[(&constraints("env=prod"), "1")], &[]);
    let mut client = Client::new(Dialect::Final);
    let [prod, test] = ["env=prod", "env=test"].map(|text| ("*", text));
    let locator = |(name, selects)| Locator::new(name, client.selector(selects)).encode(Dialect::Final).unwrap();
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: [prod, test].map(locator).into(),
        ..Default::default()
    };
    client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
    assert!(client.stream.poll_transmit(server.now, &mut server.cache).unwrap().is_some(), "and is not acknowledged");
    assert_eq!(client.ask(&mut server, &Ask { leaves: &[prod], ..Ask::default() }), [""; 0]);
    let told = client.locate(&mut server, &[test]);
    assert!(told.concat().is_empty(), "there was nothing for it: {told:?}");
}
