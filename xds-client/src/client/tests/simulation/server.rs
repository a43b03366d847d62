//! What a server is in the simulation: what it has, and a stream of its own making over which it says so.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use xds_transport::wire::{
    Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, RESOURCE_TYPE_URL,
    Resource as Wrapper,
};

use super::super::lists;
use super::super::{CDS, LDS, Protocol, message};
use super::said;

/// By type and name.
pub(super) type Key = (&'static str, String);

/// What a server has of a name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Has {
    /// A message, of which a program sees this text: it refuses what begins with `bad`.
    Text(String),
    /// It is where this name is.
    Redirect(String),
    /// A list of these, which are elsewhere.
    List(Vec<String>),
    /// None, and says why.
    Error(i32),
}

pub(super) struct Server {
    pub(super) up: bool,
    pub(super) silent: bool,
    /// How long a message is on its way, in ms.
    pub(super) latency: u64,
    has: BTreeMap<Key, (u64, Has)>,
    version: u64,
}

impl Server {
    pub(super) fn new(latency: u64) -> Self {
        Self { up: true, silent: false, latency, has: BTreeMap::new(), version: 0 }
    }

    pub(super) fn put(&mut self, key: Key, has: Has) {
        self.version += 1;
        self.has.insert(key, (self.version, has));
    }

    pub(super) fn remove(&mut self, key: &Key) {
        self.has.remove(key);
    }

    pub(super) fn has(&self, key: &Key) -> Option<&Has> {
        self.has.get(key).map(|(_, has)| has)
    }

    /// What it has of a type.
    pub(super) fn all(&self, type_url: &str) -> impl Iterator<Item = (&str, &Has)> {
        let of_type = self.has.iter().filter(move |((of, _), _)| *of == type_url);
        of_type.map(|((_, name), (_, has))| (name.as_str(), has))
    }
}

/// A stream to it, as the server sees it.
pub(super) struct Session {
    protocol: Protocol,
    types: BTreeMap<&'static str, Asked>,
    nonce: u64,
}

/// What is asked of a type.
#[derive(Default)]
struct Asked {
    names: BTreeSet<String>,
    /// What the client knows: a version, or that there is none (0), or what it was told of an error (its negative).
    known: BTreeMap<String, i64>,
    /// A full state is due, whatever changed.
    due: bool,
    /// The response that is to be answered before there is another (rule 129), over SotW.
    waits_for: Option<u64>,
}

const ABSENT: i64 = 0;
/// A version that no server gives.
const UNREADABLE: i64 = i64::MAX;

impl Session {
    pub(super) fn new(protocol: Protocol) -> Self {
        Self { protocol, types: BTreeMap::new(), nonce: 0 }
    }

    pub(super) fn request(&mut self, bytes: &[u8]) {
        match self.protocol {
            Protocol::Delta => self.delta_request(&DeltaDiscoveryRequest::decode(bytes).unwrap()),
            Protocol::Sotw => self.sotw_request(&DiscoveryRequest::decode(bytes).unwrap()),
        }
    }

    fn delta_request(&mut self, request: &DeltaDiscoveryRequest) {
        let asked = self.types.entry(said::static_type(&request.type_url)).or_default();
        let brought: BTreeMap<_, _> = request.initial_resource_versions.iter().map(said::brought).collect();
        for (name, version) in &brought {
            asked.known.insert(name.clone(), version.parse().unwrap_or(UNREADABLE));
        }
        for name in &request.resource_names_unsubscribe {
            asked.names.remove(name);
        }
        for name in &request.resource_names_subscribe {
            let is_new = asked.names.insert(name.clone());
            // Who asks again is answered again, and who brings versions of what is in a collection is not.
            if !brought.contains_key(name) {
                asked.known.remove(name);
            }
            if !is_new {
                asked.known.retain(|known, _| !covers(name, known));
            }
        }
        let Asked { names, known, .. } = asked;
        known.retain(|known, _| names.iter().any(|name| covers(name, known)));
    }

    fn sotw_request(&mut self, request: &DiscoveryRequest) {
        let asked = self.types.entry(said::static_type(&request.type_url)).or_default();
        asked.waits_for.take_if(|nonce| nonce.to_string() == request.response_nonce);
        let names: BTreeSet<_> = request.resource_names.iter().cloned().collect();
        asked.due |= is_full_state(&request.type_url) && names.iter().any(|name| !asked.names.contains(name));
        asked.known.retain(|known, _| names.contains(known));
        asked.names = names;
    }

    /// What it has to say now, of one type.
    pub(super) fn respond(&mut self, server: &Server) -> Option<Vec<u8>> {
        let protocol = self.protocol;
        let ready = self.types.iter_mut().filter(|(_, asked)| asked.waits_for.is_none());
        let news = ready.into_iter().find_map(|(type_url, asked)| {
            let news = asked.news(type_url, server, protocol);
            (!news.is_empty() || asked.due).then_some((*type_url, news))
        });
        let (type_url, news) = news?;
        self.nonce += 1;
        Some(match protocol {
            Protocol::Delta => self.delta(type_url, &news),
            Protocol::Sotw => self.sotw(type_url, &news, server),
        })
    }

    fn delta(&mut self, type_url: &'static str, news: &[News<'_>]) -> Vec<u8> {
        let asked = self.types.entry(type_url).or_default();
        let mut response =
            DeltaDiscoveryResponse { type_url: type_url.into(), nonce: self.nonce.to_string(), ..Default::default() };
        for News { name, version, has } in news {
            match has {
                None => response.removed_resources.push(name.clone()),
                Some(Has::Error(code)) => response.resource_errors.push(said::error(name, *code)),
                Some(has) => response.resources.push(wrapper(type_url, name, *version, has)),
            }
            asked.known.insert(name.clone(), *version);
        }
        // What went from a collection is not there to be known.
        let Asked { names, known, .. } = asked;
        known.retain(|name, version| *version != ABSENT || names.contains(name));
        response.encode_to_vec()
    }

    /// Of types of which a response has all there is, it has.
    fn sotw(&mut self, type_url: &'static str, news: &[News<'_>], server: &Server) -> Vec<u8> {
        let asked = self.types.entry(type_url).or_default();
        (asked.due, asked.waits_for) = (false, Some(self.nonce));
        news.iter().for_each(|news| _ = asked.known.insert(news.name.clone(), news.version));
        let is_news = |name: &str| news.iter().any(|news| news.name == name);
        let wanted = |name: &str| asked.names.contains(name) && (is_full_state(type_url) || is_news(name));
        let mut response = DiscoveryResponse {
            type_url: type_url.into(),
            version_info: server.version.to_string(),
            nonce: self.nonce.to_string(),
            ..Default::default()
        };
        for ((of, name), (version, has)) in &server.has {
            match has {
                _ if *of != type_url || !wanted(name) => {}
                Has::Error(code) if is_news(name) => response.resource_errors.push(said::error(name, *code)),
                Has::Error(_) => {}
                has => {
                    let value = wrapper(type_url, name, *version as i64, has).encode_to_vec().into();
                    response.resources.push(Any { type_url: RESOURCE_TYPE_URL.into(), value });
                }
            }
        }
        response.encode_to_vec()
    }
}

/// What a client does not know.
struct News<'a> {
    name: String,
    version: i64,
    has: Option<&'a Has>,
}

impl Asked {
    fn news<'a>(&self, type_url: &str, server: &'a Server, protocol: Protocol) -> Vec<News<'a>> {
        let mut news = Vec::new();
        for ((of, name), (version, has)) in &server.has {
            if *of != type_url || !self.names.iter().any(|asked| covers(asked, name)) {
                continue;
            }
            let version = if matches!(has, Has::Error(_)) { -(*version as i64) - 1 } else { *version as i64 };
            if self.known.get(name) != Some(&version) {
                news.push(News { name: name.clone(), version, has: Some(has) });
            }
        }
        let is_there = |name: &str| server.all(type_url).any(|(there, _)| covers(name, there));
        // Over SotW what is not there is left out of a full state, and of other types nothing is said of it.
        let says =
            |name: &String| protocol == Protocol::Delta || is_full_state(type_url) && self.known.contains_key(name);
        for name in self.names.iter().chain(self.known.keys()).collect::<BTreeSet<_>>() {
            if !is_there(name) && self.known.get(name) != Some(&ABSENT) && says(name) {
                news.push(News { name: name.clone(), version: ABSENT, has: None });
            }
        }
        news
    }
}

pub(super) fn is_full_state(type_url: &str) -> bool {
    [LDS, CDS].contains(&type_url)
}

/// Whether who asks for one is told of the other.
pub(super) fn covers(asked: &str, name: &str) -> bool {
    let within = |parent: &str| name.strip_prefix(parent).is_some_and(|id| !id.contains('/'));
    asked == name || asked.strip_suffix('*').is_some_and(within)
}

fn wrapper(type_url: &str, name: &str, version: i64, has: &Has) -> Wrapper {
    let (of, value) = match has {
        Has::Text(text) => (type_url, message(name, text)),
        Has::Redirect(to) => {
            let mut value = Vec::new();
            prost::encoding::string::encode(1, to, &mut value);
            (said::REDIRECT, value)
        }
        Has::List(members) => (type_url, lists::of_elsewhere(members)),
        Has::Error(_) => (type_url, Vec::new()),
    };
    let resource = Some(Any { type_url: of.into(), value: value.into() });
    Wrapper { name: name.into(), version: version.to_string(), resource, ..Wrapper::default() }
}
