//! Dynamic parameters (TP2): rules 119 and 120, and what each dialect says of a swap, of a removal and of what there is not.

mod dialects;
mod lifetime;
mod limits;
mod over_sotw;
mod selecting;
mod several_sets;

use prost::Message;
use xds_matcher::draft::Subscription;
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::parameters::Locator;
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest};
use xds_transport::{Dialect, Frame, Protocol, Response, TypeRules};
use xdstp_cache::{Selector, Variant};

use crate::support::{CLUSTERS, Server, payload};

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
            node: std::mem::take(&mut self.request.node),
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

    /// `env=prod,v=1` are parameters; of the draft, constraints. Of an empty text there are none.
    fn selector(&self, text: &str) -> Selector {
        match self.dialect {
            Dialect::Draft if !text.is_empty() => {
                Selector::Constraints(Subscription::where_present(&text.parse().unwrap()).unwrap())
            }
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
                    // An error is told of what is as it was.
                    let is_news = self.request.version_info != response.version || !response.errors.is_empty();
                    assert!(is_news, "something changed");
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
