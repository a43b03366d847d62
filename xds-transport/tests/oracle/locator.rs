//! Any bytes, read as what selects among variants: what an origin calls one, and the locator of who asks for it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xds_matcher::DynamicParameters;
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::parameters::{Locator, LocatorError};
use xds_transport::wire::{Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, Resource};
use xds_transport::{Dialect, Frame, Protocol, Received, Rejected, Response, TypeRules};
use xdstp_cache::{Cache, Options, Selector, TypeUrl, Variant};
use xdstp_uri::ResourceName;

const TYPE: &str = "t/T";

/// What there is, as a relay has it from its origin: who asks for it gets it if it is for them, and what they are sent they
/// can read.
pub(crate) fn wire_locator(bytes: &[u8]) {
    let Some((&[options, length], rest)) = bytes.split_first_chunk() else { return };
    let (named, locator) = rest.split_at(usize::from(length).min(rest.len()));
    let dialect = |bit: u8| if options >> bit & 1 == 0 { Dialect::Final } else { Dialect::Draft };
    let received = told(dialect(0), named);
    let variant = received.as_ref().and_then(|received| received.frame.as_ref()?.variant().cloned());
    for dialect in [Dialect::Final, Dialect::Draft] {
        said_again(dialect, locator, variant.as_deref().unwrap_or(Variant::plain()));
    }
    let Some(received) = received else { return };
    let protocol = if options & 4 == 0 { Protocol::Delta } else { Protocol::Sotw };
    let mut client = Client::new(protocol, dialect(1), &received);
    let sent = client.ask(Bytes::copy_from_slice(locator));
    let Ok(asked) = Locator::decode(dialect(1), locator) else { return };
    if let (Some(sent), Ok(name)) = (sent, asked.name.parse::<ResourceName>())
        && name == received.name
    {
        let is_for = client.variant.is_for(&asked.selector);
        assert_eq!(sent.iter().filter(|one| one.name == name && one.frame.is_some()).count(), usize::from(is_for));
        client.leave(Bytes::copy_from_slice(locator));
    }
}

/// What is understood can be said, and means the same then, as a variant sees it, and in the other form, if that can say it.
fn said_again(dialect: Dialect, bytes: &[u8], variant: &Variant) {
    let Ok(locator) = Locator::decode(dialect, bytes) else { return };
    let said = locator.encode(dialect).unwrap();
    let again = Locator::decode(dialect, &said).unwrap();
    assert_eq!(again.name, locator.name);
    assert_eq!(variant.is_for(&again.selector), variant.is_for(&locator.selector));
    assert_eq!(again.encode(dialect), Ok(said));
    let other = if dialect == Dialect::Final { Dialect::Draft } else { Dialect::Final };
    let Ok(translated) = locator.encode(other) else {
        assert_eq!((dialect, exact(&locator.selector)), (Dialect::Draft, None), "only ranges cannot be said");
        return;
    };
    let translated = Locator::decode(other, &translated).unwrap();
    assert_eq!(translated.name, locator.name);
    assert_eq!(exact(&translated.selector), exact(&locator.selector));
}

/// The values that each key is to have, if no more is said.
fn exact(selector: &Selector) -> Option<DynamicParameters> {
    match selector {
        Selector::Parameters(parameters) => Some(parameters.clone()),
        Selector::Constraints(constraints) => constraints.to_parameters().ok(),
    }
}

/// What an origin sends that calls it so, unless it is refused.
fn told(dialect: Dialect, named: &[u8]) -> Option<Received> {
    let resource = Resource {
        version: "1".into(),
        resource: Some(Any { type_url: TYPE.into(), value: Bytes::from_static(b"1") }),
        name: if dialect == Dialect::Draft { "a".into() } else { String::new() },
        resource_name: Bytes::copy_from_slice(named),
        ..Resource::default()
    };
    let removed_resource_names = vec![Bytes::copy_from_slice(named)];
    let response = DeltaDiscoveryResponse {
        type_url: TYPE.into(),
        nonce: "1".into(),
        resources: vec![resource],
        removed_resource_names,
        ..DeltaDiscoveryResponse::default()
    };
    let response = Response::from_delta_in(dialect, response.encode_to_vec().into()).unwrap();
    response.resources.into_iter().next()
}

/// Who asks, and all that there is.
struct Client {
    protocol: Protocol,
    dialect: Dialect,
    cache: Cache<Frame>,
    name: ResourceName,
    variant: Variant,
    stream: Stream,
    /// What it asked for, if that is no name: the answer has the same text, in which it can read none.
    no_name: Option<String>,
    now: Instant,
}

impl Client {
    fn new(protocol: Protocol, dialect: Dialect, received: &Received) -> Self {
        let mut settings = Settings::default();
        settings.dialect = dialect;
        let variant = received.frame.as_ref().and_then(Frame::variant);
        let mut client = Self {
            protocol,
            dialect,
            cache: Cache::new(Options::default()),
            name: received.name.clone(),
            variant: variant.map_or_else(|| Variant::plain().clone(), |variant| (**variant).clone()),
            stream: Stream::new(protocol, settings),
            no_name: None,
            #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
            now: Instant::now(),
        };
        client.put(b"1");
        client
    }

    fn put(&mut self, content: &[u8]) {
        let frame = Frame::of_message(&TYPE.into(), content);
        let mut edit = self.cache.edit(self.now);
        edit.put_variant(&TypeUrl::from(TYPE), &self.name, &self.variant, frame.into_resource(None));
        let _ = edit.finish();
    }

    /// What comes of a locator, unless that is the end of the stream.
    fn ask(&mut self, locator: Bytes) -> Option<Vec<Received>> {
        self.no_name = match Locator::decode(self.dialect, &locator) {
            Ok(Locator { name, .. }) | Err(LocatorError::Constraints { name, .. }) => Some(name),
            Err(_) => None,
        };
        self.no_name.take_if(|name| name.parse::<ResourceName>().is_ok());
        let type_url = TYPE.to_owned();
        let request = match self.protocol {
            Protocol::Delta => {
                let resource_locators_subscribe = vec![locator];
                DeltaDiscoveryRequest { type_url, resource_locators_subscribe, ..Default::default() }.encode_to_vec()
            }
            Protocol::Sotw => {
                DiscoveryRequest { type_url, resource_locators: vec![locator], ..Default::default() }.encode_to_vec()
            }
        };
        self.stream.handle_message(self.now, request.into(), &mut self.cache).ok()?;
        Some(self.sent())
    }

    /// Who asks no more is told no more.
    fn leave(&mut self, locator: Bytes) {
        let request = match self.protocol {
            Protocol::Delta => {
                let (type_url, resource_locators_unsubscribe) = (TYPE.to_owned(), vec![locator]);
                DeltaDiscoveryRequest { type_url, resource_locators_unsubscribe, ..Default::default() }
            }
            // Without names it would ask for everything.
            Protocol::Sotw => return,
        };
        self.stream.handle_message(self.now, request.encode_to_vec().into(), &mut self.cache).unwrap();
        self.sent();
        self.put(b"2");
        assert!(self.sent().is_empty(), "{} is not asked for any more", self.name);
    }

    fn sent(&mut self) -> Vec<Received> {
        let (mut sent, mut responses) = (Vec::new(), 0);
        self.now += Duration::from_secs(1);
        while let Some(transmit) = self.stream.poll_transmit(self.now, &mut self.cache).unwrap() {
            let bytes = transmit.into_bytes();
            let response = match self.protocol {
                Protocol::Delta => Response::from_delta_in(self.dialect, bytes).unwrap(),
                Protocol::Sotw => Response::from_sotw_in(self.dialect, bytes, &TypeRules::envoy()).unwrap(),
            };
            for Rejected { name, reason, .. } in response.rejected {
                let is_told = |text: &String| *text == name || name == "removed_resource_names";
                assert!(self.no_name.as_ref().is_some_and(is_told), "{name:?}: {reason}");
            }
            sent.extend(response.resources);
            responses += 1;
            assert!(responses < 100, "it never comes to rest");
        }
        sent
    }
}
