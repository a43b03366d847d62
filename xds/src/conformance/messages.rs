//! Requests and responses of either protocol, as what they have in common.

use std::fmt::Write;

use bytes::Bytes;
use prost::{DecodeError, Message};
use xds_transport::wire::parameters::Locator;
use xds_transport::wire::{
    Any, ControlPlane, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Duration,
    Node, RESOURCE_TYPE_URL, Resource, ResourceError, Status, walk,
};
use xds_transport::{Dialect, Protocol};
use xdstp_cache::Selector;

use super::resources::Of;

/// A request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    pub(crate) type_url: String,
    pub(crate) node: Option<Node>,
    /// Over SotW all that is wanted, over delta what is subscribed.
    pub(crate) names: Vec<String>,
    /// What is left. Delta only.
    pub(crate) leave: Vec<String>,
    /// `initial_resource_versions`. Delta only.
    pub(crate) holds: Vec<(String, String)>,
    /// What was accepted last. SotW only.
    pub(crate) version: String,
    pub(crate) nonce: String,
    pub(crate) error: Option<Status>,
    /// Names with dynamic parameters: `locators`.
    pub(crate) locators: Vec<Selected>,
}

/// A name, and the dynamic parameters, or by the draft the constraints, that it is asked for with.
pub(crate) type Selected = (String, Selector);

/// A response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    pub(crate) type_url: String,
    pub(crate) nonce: String,
    pub(crate) version: String,
    pub(crate) resources: Vec<Got>,
    pub(crate) removed: Vec<String>,
    /// By name.
    pub(crate) errors: Vec<(String, i32)>,
    /// What is said of each of them.
    pub(crate) reasons: Vec<String>,
    /// Those of what is removed that say of which variant.
    pub(crate) variants_removed: Vec<String>,
    pub(crate) identifier: String,
    /// Its length in bytes.
    pub(crate) size: usize,
}

/// A resource in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Got {
    /// What the response calls it: over SotW, if it is not wrapped, what it calls itself.
    pub(crate) name: String,
    /// What it calls itself.
    pub(crate) inside: String,
    pub(crate) content: Option<u32>,
    pub(crate) version: String,
    pub(crate) type_url: String,
    pub(crate) is_wrapped: bool,
    /// What it stands for, as far as we know of such; a heartbeat has none.
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) ttl: Option<std::time::Duration>,
    pub(crate) aliases: Vec<String>,
    /// It says which variant it is: by constraints, or in the draft by parameters.
    pub(crate) has_variant: bool,
}

/// An entry of `map<string, string>`.
#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

impl Ask {
    pub(crate) fn encode(&self, protocol: Protocol, dialect: Dialect) -> Bytes {
        let Self { type_url, names, nonce, error, .. } = self.clone();
        let node = self.node.as_ref().map(|node| node.encode_to_vec().into()).unwrap_or_default();
        let locator = |(name, with): &Selected| Locator::new(name.as_str(), with.clone()).encode(dialect).ok();
        let locators = self.locators.iter().filter_map(locator).collect();
        let encoded = match protocol {
            Protocol::Sotw => DiscoveryRequest {
                version_info: self.version.clone(),
                node,
                resource_names: names,
                type_url,
                response_nonce: nonce,
                error_detail: error,
                resource_locators: locators,
            }
            .encode_to_vec(),
            Protocol::Delta => {
                let entry = |(key, value): &(String, String)| {
                    Bytes::from(Entry { key: key.clone(), value: value.clone() }.encode_to_vec())
                };
                DeltaDiscoveryRequest {
                    node,
                    type_url,
                    resource_names_subscribe: names,
                    resource_names_unsubscribe: self.leave.clone(),
                    initial_resource_versions: self.holds.iter().map(entry).collect(),
                    response_nonce: nonce,
                    error_detail: error,
                    resource_locators_subscribe: locators,
                    resource_locators_unsubscribe: Vec::new(),
                }
                .encode_to_vec()
            }
        };
        encoded.into()
    }

    /// In a line.
    pub(crate) fn line(&self) -> String {
        let mut line = match &*self.type_url {
            "" => "no type".to_owned(),
            type_url => short(type_url).to_owned(),
        };
        let mut add = |what: &str, text: String| _ = write!(line, "; {what} {text}");
        let holds: Vec<_> = self.holds.iter().map(|(name, version)| format!("{name}@{version}")).collect();
        let locators: Vec<_> = self.locators.iter().map(|(name, with)| format!("{name} {with}")).collect();
        for (what, list) in
            [("names", &self.names), ("leaves", &self.leave), ("holds", &holds), ("locators", &locators)]
        {
            if !list.is_empty() {
                add(what, listed(list));
            }
        }
        if !self.version.is_empty() {
            add("version", self.version.clone());
        }
        if !self.nonce.is_empty() {
            add(if self.error.is_some() { "NACK" } else { "nonce" }, self.nonce.clone());
        }
        line
    }
}

impl Said {
    /// # Errors
    /// It is no response.
    pub(crate) fn decode(protocol: Protocol, dialect: Dialect, message: Bytes) -> Result<Self, DecodeError> {
        let size = message.len();
        let who = |control_plane: Option<ControlPlane>| control_plane.map(|it| it.identifier).unwrap_or_default();
        let errors = |errors: Vec<ResourceError>| -> (Vec<_>, Vec<_>) {
            let error = |error: ResourceError| {
                let detail = error.error_detail.unwrap_or_default();
                ((error.resource_name.unwrap_or_default().name, detail.code), detail.message)
            };
            errors.into_iter().map(error).unzip()
        };
        Ok(match protocol {
            Protocol::Sotw => {
                let response = DiscoveryResponse::decode(message)?;
                let (errors, reasons) = errors(response.resource_errors);
                let bare = |any| Got::bare(dialect, any);
                Self {
                    type_url: response.type_url,
                    nonce: response.nonce,
                    version: response.version_info,
                    resources: response.resources.into_iter().map(bare).collect::<Result<_, _>>()?,
                    removed: Vec::new(),
                    variants_removed: Vec::new(),
                    errors,
                    reasons,
                    identifier: who(response.control_plane),
                    size,
                }
            }
            Protocol::Delta => {
                let response = DeltaDiscoveryResponse::decode(message)?;
                let (errors, reasons) = errors(response.resource_errors);
                let named = |name: &Bytes| walk::text_at(name, &[1]).map(str::to_owned);
                let variants = response.removed_resource_names.iter();
                let says_which = variants.clone().filter(|name| has_field(name, 2));
                Self {
                    type_url: response.type_url,
                    nonce: response.nonce,
                    version: response.system_version_info,
                    resources: response.resources.into_iter().map(|one| Got::named(dialect, one)).collect(),
                    variants_removed: says_which.filter_map(named).collect(),
                    removed: response.removed_resources.into_iter().chain(variants.filter_map(named)).collect(),
                    errors,
                    reasons,
                    identifier: who(response.control_plane),
                    size,
                }
            }
        })
    }

    pub(crate) fn is_of(&self, of: Of) -> bool {
        self.type_url == of.type_url()
    }

    pub(crate) fn got(&self, name: &str) -> Option<&Got> {
        self.resources.iter().find(|got| got.name == name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.got(name).is_some()
    }

    pub(crate) fn has_content(&self, name: &str, content: u32) -> bool {
        self.resources.iter().any(|got| got.name == name && got.content == Some(content))
    }

    pub(crate) fn removes(&self, name: &str) -> bool {
        self.removed.iter().any(|removed| removed == name)
    }

    /// In a line.
    pub(crate) fn line(&self) -> String {
        let mut line = short(&self.type_url).to_owned();
        let mut list = |sign: &str, names: Vec<String>| {
            let shown = names.iter().take(SHOWN).fold(String::new(), |shown, name| shown + " " + sign + name);
            line += &shown;
            if names.len() > SHOWN {
                let _ = write!(line, " {sign}… ({} in all)", names.len());
            }
        };
        list("", self.resources.iter().map(Got::word).collect());
        list("-", self.removed.clone());
        list("!", self.errors.iter().map(|(name, code)| format!("{name}:{code}")).collect());
        let _ = write!(line, "; nonce {}", self.nonce);
        if !self.version.is_empty() {
            let _ = write!(line, "; version {}", self.version);
        }
        line
    }
}

impl Got {
    fn bare(dialect: Dialect, any: Any) -> Result<Self, DecodeError> {
        if any.type_url == RESOURCE_TYPE_URL {
            return Ok(Self { is_wrapped: true, ..Self::named(dialect, Resource::decode(any.value)?) });
        }
        let read = Of::of_type_url(&any.type_url).and_then(|of| of.read(&any.value));
        let (inside, content, whole) = match read {
            Some(read) => (read.name, Some(read.content), read.whole),
            None => (String::new(), None, Vec::new()),
        };
        Ok(Self { name: inside.clone(), inside, content, type_url: any.type_url, body: Some(whole), ..Self::default() })
    }

    fn named(dialect: Dialect, resource: Resource) -> Self {
        // The draft has parameters there.
        let (is_draft, is_there) = (dialect == Dialect::Draft, !resource.resource_name.is_empty());
        let has_name = is_there && !is_draft;
        let has_variant = is_there && (is_draft || has_field(&resource.resource_name, 2));
        let name = match has_name {
            true => walk::text_at(&resource.resource_name, &[1]).unwrap_or_default().to_owned(),
            false => resource.name,
        };
        let bare = resource.resource.and_then(|any| Self::bare(dialect, any).ok());
        let bare = bare.unwrap_or_default();
        let ttl = |ttl: Duration| {
            std::time::Duration::new(
                ttl.seconds.try_into().unwrap_or_default(),
                ttl.nanos.try_into().unwrap_or_default(),
            )
        };
        Self {
            name,
            version: resource.version,
            ttl: resource.ttl.map(ttl),
            aliases: resource.aliases,
            has_variant,
            ..bare
        }
    }

    fn word(&self) -> String {
        let content = match (&self.body, self.content) {
            (None, _) => "nothing".to_owned(),
            (Some(_), None) => "?".to_owned(),
            (Some(_), Some(content)) => content.to_string(),
        };
        format!("{}={content}", self.name)
    }
}

fn has_field(message: &[u8], number: u32) -> bool {
    walk::Fields::of(message).any(|field| field.is_ok_and(|field| field.number == number))
}

/// How many of a list are shown.
const SHOWN: usize = 12;

fn short(type_url: &str) -> &str {
    match Of::of_type_url(type_url) {
        Some(of) => of.short(),
        None => type_url,
    }
}

fn listed(list: &[String]) -> String {
    let mut shown: Vec<_> = list.iter().take(SHOWN).map(String::as_str).collect();
    let more = format!("… ({} in all)", list.len());
    if list.len() > SHOWN {
        shown.push(&more);
    }
    shown.join(" ")
}
