//! The resources that a server is given: each a name and a number, in the least that Envoy's types have room for.

use prost::Message;
use serde_json::{Value, json};

/// A type of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    Cluster,
    Endpoints,
    Listener,
    Route,
    VirtualHost,
    /// One that nobody ever heard of.
    Unknown,
}

/// A resource, as a server is to have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) of: Of,
    pub(crate) name: String,
    /// What is in it.
    pub(crate) content: u32,
    /// How long clients may use it without hearing of it again, in seconds.
    pub(crate) ttl: Option<u32>,
    /// For whom it is, among the variants of its name.
    pub(crate) constraints: Option<String>,
    /// The same by the draft: what the variant is.
    pub(crate) parameters: Option<&'static [(&'static str, &'static str)]>,
    /// How many bytes it has for nothing.
    pub(crate) padding: usize,
}

/// What a resource turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) name: String,
    pub(crate) content: u32,
    /// All that we know of in it, encoded.
    pub(crate) whole: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Number {
    #[prost(uint32, tag = "1")]
    value: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Cluster {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "3")]
    endpoints: Option<FromEds>,
    /// A duration: its seconds are the content.
    #[prost(message, optional, tag = "4")]
    connect_timeout: Option<Number>,
    #[prost(int32, tag = "2")]
    discovery_type: i32,
    #[prost(string, tag = "28")]
    alt_stat_name: String,
}

/// `EdsClusterConfig` of a `ConfigSource` that is `ads`.
#[derive(Clone, PartialEq, Message)]
struct FromEds {
    #[prost(message, optional, tag = "1")]
    config: Option<Source>,
}

#[derive(Clone, PartialEq, Message)]
struct Source {
    #[prost(message, optional, tag = "3")]
    ads: Option<Nothing>,
    #[prost(int32, tag = "6")]
    resource_api_version: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Nothing {}

#[derive(Clone, PartialEq, Message)]
struct Endpoints {
    #[prost(string, tag = "1")]
    cluster_name: String,
    #[prost(message, optional, tag = "4")]
    policy: Option<Policy>,
}

#[derive(Clone, PartialEq, Message)]
struct Policy {
    #[prost(message, optional, tag = "3")]
    overprovisioning_factor: Option<Number>,
}

#[derive(Clone, PartialEq, Message)]
struct Listener {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "5")]
    per_connection_buffer_limit_bytes: Option<Number>,
}

#[derive(Clone, PartialEq, Message)]
struct Route {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "11")]
    max_direct_response_body_size_bytes: Option<Number>,
}

#[derive(Clone, PartialEq, Message)]
struct VirtualHost {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "2")]
    domains: Vec<String>,
    #[prost(message, optional, tag = "18")]
    per_request_buffer_limit_bytes: Option<Number>,
}

#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint32, tag = "2")]
    content: u32,
}

/// `Cluster.DiscoveryType.EDS`, and `ApiVersion.V3`.
const EDS: i32 = 3;
const V3: i32 = 2;

impl Of {
    pub(crate) const ALL: [Self; 6] =
        [Self::Cluster, Self::Endpoints, Self::Listener, Self::Route, Self::VirtualHost, Self::Unknown];

    pub(crate) fn type_url(self) -> &'static str {
        match self {
            Self::Cluster => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::Endpoints => "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            Self::Listener => "type.googleapis.com/envoy.config.listener.v3.Listener",
            Self::Route => "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
            Self::VirtualHost => "type.googleapis.com/envoy.config.route.v3.VirtualHost",
            Self::Unknown => "type.googleapis.com/xds.conformance.Unknown",
        }
    }

    pub(crate) fn of_type_url(type_url: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.type_url() == type_url)
    }

    /// The type in an `xdstp:` name.
    pub(crate) fn full_name(self) -> &'static str {
        self.type_url().rsplit('/').next().unwrap_or_default()
    }

    /// Its service, and what the methods of that call the resources.
    pub(crate) fn service(self) -> (&'static str, &'static str) {
        match self {
            Self::Cluster => ("cluster.v3.ClusterDiscoveryService", "Clusters"),
            Self::Endpoints => ("endpoint.v3.EndpointDiscoveryService", "Endpoints"),
            Self::Listener => ("listener.v3.ListenerDiscoveryService", "Listeners"),
            Self::Route | Self::Unknown => ("route.v3.RouteDiscoveryService", "Routes"),
            Self::VirtualHost => ("route.v3.VirtualHostDiscoveryService", "VirtualHosts"),
        }
    }

    /// As transcripts call it.
    pub(crate) fn short(self) -> &'static str {
        match self {
            Self::Cluster => "clusters",
            Self::Endpoints => "endpoints",
            Self::Listener => "listeners",
            Self::Route => "routes",
            Self::VirtualHost => "virtual hosts",
            Self::Unknown => "unknowns",
        }
    }

    /// Name and content of an encoded resource, and all that it has, in the order of fields.
    pub(crate) fn read(self, body: &[u8]) -> Option<Read> {
        let value = |number: Option<Number>| number.unwrap_or_default().value;
        Some(match self {
            Self::Cluster => {
                let read = Cluster::decode(body).ok()?;
                Read::new(&read, &read.name, value(read.connect_timeout))
            }
            Self::Endpoints => {
                let read = Endpoints::decode(body).ok()?;
                let policy = read.policy.clone().unwrap_or_default();
                Read::new(&read, &read.cluster_name, value(policy.overprovisioning_factor))
            }
            Self::Listener => {
                let read = Listener::decode(body).ok()?;
                Read::new(&read, &read.name, value(read.per_connection_buffer_limit_bytes))
            }
            Self::Route => {
                let read = Route::decode(body).ok()?;
                Read::new(&read, &read.name, value(read.max_direct_response_body_size_bytes))
            }
            Self::VirtualHost => {
                let read = VirtualHost::decode(body).ok()?;
                Read::new(&read, &read.name, value(read.per_request_buffer_limit_bytes))
            }
            Self::Unknown => {
                let read = Unknown::decode(body).ok()?;
                Read::new(&read, &read.name, read.content)
            }
        })
    }
}

impl Read {
    fn new(read: &impl Message, name: &str, content: u32) -> Self {
        Self { name: name.to_owned(), content, whole: read.encode_to_vec() }
    }
}

impl Item {
    pub(crate) fn new(of: Of, name: impl Into<String>, content: u32) -> Self {
        Self { of, name: name.into(), content, ttl: None, constraints: None, parameters: None, padding: 0 }
    }

    /// The encoded message.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (name, number) = (self.name.clone(), Some(Number { value: self.content }));
        match self.of {
            Of::Cluster => {
                let source = Source { ads: Some(Nothing {}), resource_api_version: V3 };
                let endpoints = Some(FromEds { config: Some(source) });
                let alt_stat_name = "x".repeat(self.padding);
                Cluster { name, endpoints, connect_timeout: number, discovery_type: EDS, alt_stat_name }.encode_to_vec()
            }
            Of::Endpoints => {
                // 0 is no factor.
                let policy = number.filter(|number| number.value > 0);
                let policy = policy.map(|number| Policy { overprovisioning_factor: Some(number) });
                Endpoints { cluster_name: name, policy }.encode_to_vec()
            }
            Of::Listener => Listener { name, per_connection_buffer_limit_bytes: number }.encode_to_vec(),
            Of::Route => Route { name, max_direct_response_body_size_bytes: number }.encode_to_vec(),
            Of::VirtualHost => {
                let domains = vec![self.host().to_owned()];
                let name = self.host().to_owned();
                VirtualHost { name, domains, per_request_buffer_limit_bytes: number }.encode_to_vec()
            }
            Of::Unknown => Unknown { name, content: self.content }.encode_to_vec(),
        }
    }

    /// The message as JSON of protobuf; a type that nobody knows has none.
    pub(crate) fn json(&self) -> Option<Value> {
        let (type_url, name, number) = (self.of.type_url(), &self.name, self.content);
        Some(match self.of {
            Of::Cluster => {
                let source = json!({"ads": {}, "resource_api_version": "V3"});
                let mut cluster = json!({
                    "@type": type_url, "name": name, "type": "EDS", "connect_timeout": format!("{number}s"),
                    "eds_cluster_config": {"eds_config": source},
                });
                if let (Some(fields), true) = (cluster.as_object_mut(), self.padding > 0) {
                    fields.insert("alt_stat_name".into(), "x".repeat(self.padding).into());
                }
                cluster
            }
            Of::Endpoints if number == 0 => json!({"@type": type_url, "cluster_name": name}),
            Of::Endpoints => {
                json!({"@type": type_url, "cluster_name": name, "policy": {"overprovisioning_factor": number}})
            }
            Of::Listener => json!({"@type": type_url, "name": name, "per_connection_buffer_limit_bytes": number}),
            Of::Route => json!({"@type": type_url, "name": name, "max_direct_response_body_size_bytes": number}),
            Of::VirtualHost => {
                let host = self.host();
                json!({"@type": type_url, "name": host, "domains": [host], "per_request_buffer_limit_bytes": number})
            }
            Of::Unknown => return None,
        })
    }

    /// What is behind the name of the route configuration (rule 107).
    fn host(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use xds_relay::file_origin::{Descriptors, load_embedded};

    use super::*;

    #[test]
    fn what_is_said_in_json_is_what_is_encoded() {
        let descriptors = Descriptors::built_in().unwrap();
        for of in Of::ALL.into_iter().filter(|of| *of != Of::Unknown) {
            for content in [0, 7] {
                let item = Item { padding: 3, ..Item::new(of, "routes/host", content) };
                let wrapped = json!({"resources": [{"name": "routes/host", "resource": item.json()}]}).to_string();
                let read = load_embedded(&[("a.json", &wrapped)], &descriptors).unwrap();
                let read = of.read(&read[0].value).unwrap();
                assert_eq!((read.whole, read.content), (item.encode(), content), "{of:?}");
            }
        }
    }

    #[test]
    fn every_type_is_found_by_its_url() {
        assert!(Of::ALL.into_iter().all(|of| Of::of_type_url(of.type_url()) == Some(of)));
    }
}
