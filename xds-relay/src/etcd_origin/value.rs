//! What is under the key of a resource.

use bytes::Bytes;
use prost::Message as _;
use serde_json::{Map, Value, json};
use xds_transport::{Response, TypeRules, wire};
use xdstp_cache::{TypeUrl, Variant};
use xdstp_client::federation::Held;
use xdstp_uri::ResourceName;

use super::key::{Key, KeyError};
use crate::file_origin::{Descriptors, FileResource, Served, check_encoded, held, load_value};
use crate::keyed_origin::Read;

const RESOURCE: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";

/// The keys and values of resources, as they are to be put: all variants of a name are one value.
///
/// A value is an encoded `envoy.service.discovery.v3.Resource`, or of several variants the text of a file that has them.
///
/// ```
/// use xds_relay::etcd_origin::encode;
/// use xds_relay::file_origin::{Descriptors, load_embedded};
///
/// let types = Descriptors::built_in()?;
/// let text = r#"resources: [{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web}]"#;
/// let values = encode(&load_embedded(&[("clusters.yaml", text)], &types)?, &types)?;
/// assert_eq!(values[0].0.to_string(), "res/envoy.config.cluster.v3.Cluster/web");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A resource has a name that no key has.
pub fn encode(resources: &[FileResource], types: &Descriptors) -> Result<Vec<(Key, Bytes)>, KeyError> {
    let mut values = Vec::new();
    let is_same =
        |one: &FileResource, other: &FileResource| (&one.type_url, &one.name) == (&other.type_url, &other.name);
    for variants in resources.chunk_by(is_same) {
        let Some(first) = variants.first() else { continue };
        let name = ResourceName::parse(&first.name).map_err(|error| KeyError::of_name(&first.name, &error))?;
        let value = match variants {
            [one] if one.variant.is_none() => wrapped(one).encode_to_vec(),
            variants => {
                let all: Vec<_> = variants.iter().map(|variant| written(variant, types)).collect();
                json!({ "resources": all }).to_string().into_bytes()
            }
        };
        values.push((Key::new(&first.type_url, name)?, value.into()));
    }
    Ok(values)
}

fn wrapped(resource: &FileResource) -> wire::Resource {
    let any = wire::Any { type_url: resource.type_url.clone(), value: resource.value.clone() };
    let ttl = resource.ttl.map(|ttl| wire::Duration {
        seconds: i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(ttl.subsec_nanos()).unwrap_or_default(),
    });
    wire::Resource {
        version: resource.version.clone().unwrap_or_default(),
        resource: Some(any),
        name: resource.name.clone(),
        aliases: resource.aliases.clone(),
        ttl,
        ..wire::Resource::default()
    }
}

/// As a file has it.
fn written(resource: &FileResource, types: &Descriptors) -> Value {
    let mut entry = Map::new();
    let constraints = match &resource.variant {
        Some(Variant::Constraints(constraints)) => Some(constraints.to_string()),
        _ => None,
    };
    match constraints {
        Some(constraints) => {
            let named = json!({ "name": resource.name, "dynamic_parameter_constraints": constraints });
            entry.insert("resource_name".to_owned(), named);
        }
        None => _ = entry.insert("name".to_owned(), json!(resource.name)),
    }
    if let Some(version) = &resource.version {
        entry.insert("version".to_owned(), json!(version));
    }
    if let Some(ttl) = resource.ttl {
        entry.insert("ttl".to_owned(), json!(format!("{}.{:09}s", ttl.as_secs(), ttl.subsec_nanos())));
    }
    if !resource.aliases.is_empty() {
        entry.insert("aliases".to_owned(), json!(resource.aliases));
    }
    entry.insert("resource".to_owned(), types.to_json(&resource.type_url, &resource.value));
    entry.into()
}

/// Reads values.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    origin: String,
    /// What is before each of its keys.
    prefix: String,
    types: Descriptors,
    served: Served,
    rules: TypeRules,
}

impl Reader {
    pub(crate) fn new(types: Descriptors, served: Served) -> Self {
        Self { origin: String::new(), prefix: String::new(), types, served, rules: TypeRules::envoy() }
    }

    /// That of an origin, whose keys have a prefix.
    pub(crate) fn of(self, origin: &str, prefix: &str) -> Self {
        Self { origin: origin.to_owned(), prefix: prefix.to_owned(), ..self }
    }

    /// All variants of the resource that a value is.
    ///
    /// # Errors
    /// What is wrong, and where, without what may be secret.
    fn read_value(&self, key: &Key, value: &Bytes, types: &Descriptors) -> Result<Vec<Held>, String> {
        if let Some(reason) = self.served.refusal(key.name().as_str()) {
            return Err(reason);
        }
        match encoded(key, value) {
            Some(resource) => self.read_encoded(key, resource, types).map(|held| vec![held]),
            None => read_text(key, value, types),
        }
    }

    /// An encoded `Resource`.
    fn read_encoded(&self, key: &Key, resource: Bytes, types: &Descriptors) -> Result<Held, String> {
        let any = wire::Any { type_url: RESOURCE.to_owned(), value: resource };
        let (type_url, resources) = (key.type_url().to_owned(), vec![any]);
        let response = wire::DiscoveryResponse { type_url, resources, ..wire::DiscoveryResponse::default() };
        let response = Response::from_sotw(response.encode_to_vec().into(), &self.rules);
        let mut response = response.map_err(|error| error.to_string())?;
        if let Some(rejected) = response.rejected.first() {
            return Err(rejected.reason.clone());
        }
        let received = response.resources.pop().ok_or("it is no resource of its type")?;
        let (type_url, name) = (TypeUrl::from(key.type_url()), key.name());
        if received.name != *name {
            return Err(format!("a resource named `{}`, which is not the name in its key", received.name.as_str()));
        }
        let frame = received.frame.ok_or("it has no content")?;
        let inside = self.rules.of(&type_url).name_of(frame.any()).unwrap_or_default();
        // Clients add it by the name inside, and remove it by the other (rule 82).
        if !inside.is_empty() && !ResourceName::parse(inside).is_ok_and(|inside| inside == *name) {
            return Err(format!("a resource with the name `{inside}` inside, which is not the name in its key"));
        }
        if frame.do_not_cache() {
            return Err("it says that nobody may keep it (do_not_cache)".to_owned());
        }
        check_encoded("value", frame.any(), name.as_str(), types).map_err(|error| error.to_string())?;
        Ok((
            type_url,
            name.clone(),
            frame.into_resource(received.version.filter(|version| !version.as_str().is_empty())),
        ))
    }
}

impl Read for Reader {
    fn origin(&self) -> &str {
        &self.origin
    }

    fn shown_key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix).escape_debug().to_string()
    }

    fn read(&self, key: &str, value: &Bytes) -> Result<Vec<Held>, String> {
        let key: Key = key.parse().map_err(|error: KeyError| error.to_string())?;
        self.read_value(&key, value, &self.types)
    }

    fn read_kept(&self, key: &str, value: &Bytes) -> Result<Vec<Held>, String> {
        let key: Key = key.parse().map_err(|error: KeyError| error.to_string())?;
        self.read_value(&key, value, &self.types.without_validation())
    }

    /// What another origin serves is not missed here.
    fn named(&self, key: &str) -> Option<(TypeUrl, ResourceName)> {
        let key: Key = key.parse().ok()?;
        let is_served = self.served.refusal(key.name().as_str()).is_none();
        is_served.then(|| (TypeUrl::from(key.type_url()), key.name().clone()))
    }
}

/// A text.
fn read_text(key: &Key, value: &[u8], types: &Descriptors) -> Result<Vec<Held>, String> {
    let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    let text = std::str::from_utf8(value).ok().filter(|text| text.chars().all(is_text));
    let text =
        text.ok_or_else(|| format!("neither text nor an encoded Any or Resource of type {}", key.message_type()))?;
    let resources = load_value("value", text, key.name().as_str(), types).map_err(|error| error.to_string())?;
    if let Some(other) = resources.iter().find(|other| other.type_url != key.type_url()) {
        return Err(format!("a resource of type {}, which is not the type in its key", other.type_url));
    }
    if let Some(other) = resources.iter().find(|other| other.name != key.name().as_str()) {
        return Err(format!("a resource named `{}`, which is not the name in its key", other.name));
    }
    match held(&resources) {
        held if held.is_empty() => Err("it has no resource".to_owned()),
        held => Ok(held),
    }
}

/// The encoded `Resource` that a value is, or that an `Any` which it is makes: nothing else holds a message of the type of its key.
fn encoded(key: &Key, value: &Bytes) -> Option<Bytes> {
    if let Ok(any) = wire::Any::decode(value.clone()) {
        if any.type_url == key.type_url() {
            let name = key.name().as_str().to_owned();
            let resource = wire::Resource { name, resource: Some(any), ..wire::Resource::default() };
            return Some(resource.encode_to_vec().into());
        }
        if any.type_url == RESOURCE {
            return Some(any.value);
        }
    }
    let resource = wire::Resource::decode(value.clone()).ok()?;
    if resource.resource.as_ref().is_none_or(|any| any.type_url != key.type_url()) {
        return None;
    }
    let is_named = !resource.name.is_empty() || !resource.resource_name.is_empty();
    let named = || wire::Resource { name: key.name().as_str().to_owned(), ..resource }.encode_to_vec().into();
    Some(if is_named { value.clone() } else { named() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_origin::load_embedded;

    const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

    fn reader() -> Reader {
        Reader::new(Descriptors::built_in().unwrap(), Served::default())
    }

    fn read_as(key: &str, value: impl Into<Bytes>) -> Result<Vec<(String, String)>, String> {
        let held = reader().read(key, &value.into())?;
        Ok(held
            .into_iter()
            .map(|(type_url, name, _)| (type_url.as_str().to_owned(), name.as_str().to_owned()))
            .collect())
    }

    fn read(value: impl Into<Bytes>) -> Result<Vec<(String, String)>, String> {
        read_as("res/envoy.config.cluster.v3.Cluster/web", value)
    }

    fn any(type_url: &str, value: &'static [u8]) -> wire::Any {
        wire::Any { type_url: type_url.to_owned(), value: Bytes::from_static(value) }
    }

    #[test]
    fn all_that_may_be_put_is_the_same_resource() {
        let web = any(CLUSTER, b"\x0a\x03web");
        let wrapped = wire::Resource { resource: Some(web.clone()), name: "web".into(), ..wire::Resource::default() };
        let nameless = wire::Resource { resource: Some(web.clone()), version: "7".into(), ..wire::Resource::default() };
        let within = wire::Any { type_url: RESOURCE.into(), value: wrapped.encode_to_vec().into() };
        let text = format!("{{\"@type\": \"{CLUSTER}\", \"name\": \"web\"}}");
        let expected = [(CLUSTER.to_owned(), "web".to_owned())];
        for value in [
            web.encode_to_vec(),
            wrapped.encode_to_vec(),
            nameless.encode_to_vec(),
            within.encode_to_vec(),
            text.into_bytes(),
            format!("\n'@type': {CLUSTER}\n").into_bytes(),
            format!("name: web\nresource: {{'@type': {CLUSTER}}}").into_bytes(),
            format!("version: v1\nresource: {{'@type': {CLUSTER}}}").into_bytes(),
            format!("resources: [{{'@type': {CLUSTER}, name: web}}]").into_bytes(),
        ] {
            assert_eq!(read(value.clone()).unwrap(), expected, "{}", String::from_utf8_lossy(&value));
            let validating = Reader::new(Descriptors::built_in().unwrap().with_validation(), Served::default());
            let held = validating.read("res/envoy.config.cluster.v3.Cluster/web", &value.into());
            assert_eq!(held.map(|held| held.len()), Ok(1));
        }
    }

    #[test]
    fn what_is_not_good_is_refused_in_words() {
        let web = any(CLUSTER, b"\x0a\x03web");
        let resource = |name: &str, any: wire::Any| {
            wire::Resource { resource: Some(any), name: name.into(), ..wire::Resource::default() }.encode_to_vec()
        };
        let mut private =
            wire::Resource { resource: Some(web.clone()), name: "web".into(), ..wire::Resource::default() };
        private.cache_control = Some(wire::resource::CacheControl { do_not_cache: true });
        for (value, words) in [
            (Vec::new(), "empty"),
            (b"\xff".to_vec(), "neither text nor an encoded Any"),
            (any("type.googleapis.com/x.Y", b"").encode_to_vec(), "neither text nor an encoded Any"),
            (any(CLUSTER, b"\x0a\x03cat").encode_to_vec(), "a resource with the name `cat` inside"),
            (resource("cat", web.clone()), "a resource named `cat`, which is not the name in its key"),
            (any(CLUSTER, b"\x0a\x03web\x12").encode_to_vec(), "what is in it is no envoy.config.cluster.v3.Cluster"),
            (private.encode_to_vec(), "nobody may keep it"),
            (b"web".to_vec(), "value:1:1: neither `@type` nor `resource`"),
            (b"resources: []".to_vec(), "it has no resource"),
            (format!("{{'@type': {CLUSTER}, name: cat}}").into_bytes(), "a resource named `cat`"),
            (format!("{{'@type': {CLUSTER}, connect_timeout: soon}}").into_bytes(), "value:1:"),
            (
                b"{'@type': type.googleapis.com/envoy.config.listener.v3.Listener}".to_vec(),
                "which is not the type in its key",
            ),
            (
                format!("resources: [{{'@type': {CLUSTER}, name: web}}, {{'@type': {CLUSTER}, name: web}}]")
                    .into_bytes(),
                "already",
            ),
        ] {
            let error = read(value.clone()).unwrap_err();
            assert!(error.contains(words), "{}: {error}", String::from_utf8_lossy(&value));
        }
    }

    #[test]
    fn a_key_says_which_resource_is_missed_where_its_value_is_not_good_if_it_is_of_this_origin() {
        let text = "origins: [{ name: a, server: 'a:1', authorities: [x] }, { name: b, etcd: { endpoints: ['b:1'], prefix: b/ }, authorities: [y] }]";
        let served = Served::by(&crate::config::Config::parse("relay.yaml", text).unwrap(), "b");
        let reader = Reader::new(Descriptors::built_in().unwrap(), served);
        let named = |name: &str| reader.named(&format!("res/envoy.config.cluster.v3.Cluster/{name}")).is_some();
        assert!(named("xdstp://y/envoy.config.cluster.v3.Cluster/a"));
        assert!(!named("xdstp://x/envoy.config.cluster.v3.Cluster/a") && !named("") && reader.named("odd").is_none());
    }

    #[test]
    fn a_secret_that_is_not_good_is_not_told() {
        let secret = "'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret\ngeneric_secret: { secret: hunter2 }";
        let error = read_as("res/envoy.extensions.transport_sockets.tls.v3.Secret/a", secret).unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn what_files_have_is_the_same_under_keys() {
        let text = format!(
            r#"
resources:
- {{ name: a, version: v7, ttl: 60.5s, aliases: [z], resource: {{"@type": {CLUSTER}, connect_timeout: 1s}} }}
- {{ name: "xdstp://x/envoy.config.cluster.v3.Cluster/b", resource: {{"@type": {CLUSTER}}} }}
- resource_name: {{ name: c, dynamic_parameter_constraints: version=v1 }}
  version: v8
  resource: {{"@type": {CLUSTER}, name: c, connect_timeout: 1s}}
- resource_name: {{ name: c, dynamic_parameter_constraints: not version=v1 and env=prod }}
  resource: {{"@type": {CLUSTER}, name: c, connect_timeout: 2s}}
- {{ resource_name: {{ name: d, dynamic_parameter_constraints: env=prod }}, resource: {{"@type": {CLUSTER}}} }}
"#
        );
        let (reader, types) = (reader(), Descriptors::built_in().unwrap());
        let resources = load_embedded(&[("a.yaml", &text)], &types).unwrap();
        let values = encode(&resources, &types).unwrap();
        assert_eq!(values.len(), 4);
        let read: Vec<_> =
            values.iter().flat_map(|(key, value)| reader.read(&key.to_string(), value).unwrap()).collect();
        for ((type_url, name, read), (other_type, other_name, file)) in read.iter().zip(&held(&resources)) {
            assert_eq!((type_url, name, &read.version), (other_type, other_name, &file.version));
            assert_eq!((read.value.any(), read.value.ttl()), (file.value.any(), file.value.ttl()), "{name:?}");
            assert_eq!(read.value.variant(), file.value.variant(), "{name:?}");
            assert_eq!(read.value.aliases().collect::<Vec<_>>(), file.value.aliases().collect::<Vec<_>>());
        }
        assert_eq!(read.len(), 5);
    }
}
