//! What an origin says next: mostly what makes sense on the stream, sometimes what contradicts it.

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::wire::{
    Any, DeltaDiscoveryResponse, DiscoveryResponse, Duration, RESOURCE_TYPE_URL, Resource, ResourceError, Status,
    WireResourceName, resource,
};
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use super::link::FarEnd;
use super::script::Script;
use super::world::{TYPES, Who, names};

const TTLS: [i64; 4] = [1, 10, 20, 3600];
const CODES: [i32; 4] = [5, 7, 14, 13];
/// One of these fills a response.
const LARGE: usize = 256 * 1024;

/// A payload: no two that are ever sent are alike, unless it is sent again on purpose.
#[derive(Clone, PartialEq, Message)]
struct Payload {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "1000")]
    body: String,
    #[prost(bytes = "vec", tag = "1001")]
    padding: Vec<u8>,
}

/// How a response is made.
struct Manner {
    who: Who,
    type_url: &'static str,
    /// What makes bodies differ: as before, to send them again.
    serial: u64,
    /// Bits of its own.
    wrapper: u8,
    ttl: Option<Duration>,
    aliases: Vec<ResourceName>,
    version: Option<u64>,
}

/// A response of an origin that speaks to `who`.
pub(crate) fn compose(script: &mut Script<'_>, protocol: Protocol, who: Who, far: &mut FarEnd, serial: u64) -> Bytes {
    let asked: Vec<_> = TYPES.into_iter().filter(|of| far.asked.contains_key(*of)).collect();
    let kind = script.byte();
    // What was not asked for, now and then.
    let types = if kind & 0x80 != 0 || asked.is_empty() { TYPES.to_vec() } else { asked };
    let type_url = types[usize::from(kind >> 5 & 3) % types.len()];
    let universe = names(type_url);
    let covered = |name: &&ResourceName| {
        let mut asked = far.asked.get(type_url).into_iter().flatten();
        asked.any(|interest| match interest {
            Interest::Wildcard => true,
            Interest::Name(asked) => name.answers(asked),
        })
    };
    let wanted: Vec<_> = universe.iter().filter(covered).cloned().collect();
    let from = if kind & 0x10 == 0 { &wanted } else { &universe };
    let style = script.byte();
    let (mut put, mut removed, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    match kind & 7 {
        0 | 1 => put = wanted.clone(),
        2 => {
            put = script.some(from);
            removed = wanted.iter().filter(|name| !put.contains(name)).cloned().collect();
        }
        3 => put = script.some(from),
        4 => removed = script.some(from),
        5 => {
            put = script.some(from);
            removed = script.some(from);
        }
        6 => {
            failed = script.some(from);
            put = script.some(from);
        }
        _ => {}
    }
    let mut gone: Vec<String> = removed.iter().map(|name| name.as_str().to_owned()).collect();
    if kind & 8 != 0 {
        let globs = far.asked.get(type_url).into_iter().flatten().filter_map(|interest| match interest {
            Interest::Name(name) if name.is_glob() => Some(name.as_str().to_owned()),
            _ => None,
        });
        gone.extend(globs);
    }
    let wrapper = if style & 1 == 0 { 0 } else { script.byte() };
    let ttl = || Duration { seconds: TTLS[usize::from(wrapper >> 6)], nanos: 0 };
    let manner = Manner {
        who,
        type_url,
        serial: if style & 2 == 0 { serial } else { u64::from(style >> 4 & 1) },
        wrapper,
        ttl: (wrapper & 1 == 1).then(ttl),
        aliases: if wrapper & 4 == 0 { Vec::new() } else { script.some(&universe) },
        version: [Some(serial), None, Some(0), Some(1)][usize::from(style >> 2 & 3)],
    };
    far.nonces += 1;
    let nonce = format!("{}{}", who.mark(), far.nonces);
    let resource_errors = failed.iter().map(|name| manner.error(name, style)).collect();
    let message = match protocol {
        Protocol::Delta => DeltaDiscoveryResponse {
            system_version_info: manner.version(),
            resources: put.iter().map(|name| manner.resource(name)).collect(),
            type_url: type_url.into(),
            nonce,
            removed_resources: gone,
            resource_errors,
            ..Default::default()
        }
        .encode_to_vec(),
        Protocol::Sotw => DiscoveryResponse {
            version_info: manner.version(),
            resources: put.iter().map(|name| manner.any(name)).collect(),
            type_url: type_url.into(),
            nonce,
            resource_errors,
            ..Default::default()
        }
        .encode_to_vec(),
    };
    message.into()
}

impl Manner {
    fn version(&self) -> String {
        self.version.map(|version| format!("{}{version}", self.who.mark())).unwrap_or_default()
    }

    fn payload(&self, name: &ResourceName) -> Any {
        let body = format!("{}{}", self.who.mark(), self.serial);
        let fills = self.wrapper & 0xb8 == 0xb8 && name.as_str() == "a";
        let padding = if fills { vec![0; LARGE] } else { Vec::new() };
        let payload = Payload { name: name.as_str().into(), body, padding };
        Any { type_url: self.type_url.into(), value: payload.encode_to_vec().into() }
    }

    fn resource(&self, name: &ResourceName) -> Resource {
        // A heartbeat, or an alias of nothing.
        let empty = self.wrapper & 0x18 == 0x08;
        let mut aliases: Vec<String> = self.aliases.iter().map(|alias| alias.as_str().to_owned()).collect();
        aliases.retain(|alias| alias != name.as_str());
        Resource {
            version: self.version(),
            resource: (!empty).then(|| self.payload(name)),
            name: name.as_str().into(),
            aliases,
            ttl: self.ttl,
            cache_control: (self.wrapper & 2 != 0).then_some(resource::CacheControl { do_not_cache: true }),
            ..Default::default()
        }
    }

    fn any(&self, name: &ResourceName) -> Any {
        if self.wrapper == 0 {
            return self.payload(name);
        }
        Any { type_url: RESOURCE_TYPE_URL.into(), value: self.resource(name).encode_to_vec().into() }
    }

    fn error(&self, name: &ResourceName, style: u8) -> ResourceError {
        let resource_name = Some(WireResourceName { name: name.as_str().into(), ..Default::default() });
        let message = format!("{}not today", self.who.mark());
        let error_detail = Some(Status { code: CODES[usize::from(style >> 6)], message });
        ResourceError { resource_name, error_detail }
    }
}
