//! The rules of all types, and their services.

use std::collections::{BTreeSet, HashMap};

use xdstp_cache::TypeUrl;

use crate::Protocol;
use crate::types::envoy;
use crate::types::reference::Reference;
use crate::types::rule::TypeRule;
use crate::types::service::TypeService;

/// The rules of every type a stream may carry, and the services that carry one alone.
///
/// ```
/// use xds_transport::{Protocol, TypeRule, TypeRules, TypeService};
///
/// let mut rules = TypeRules::envoy();
/// let limits = "type.example.com/example.Limit".into();
/// rules.insert("type.example.com/example.Limit".into(), TypeRule { legacy_wildcard: true, ..TypeRule::default() });
/// rules.insert_service("type.example.com/example.Limit".into(), TypeService::new("example.LimitDiscoveryService", "Limits"));
///
/// assert!(rules.of(&limits).legacy_wildcard);
/// assert_eq!(rules.served("/example.LimitDiscoveryService/DeltaLimits"), Some((Protocol::Delta, Some(limits))));
/// ```
#[derive(Clone, Debug, Default)]
pub struct TypeRules {
    rules: HashMap<TypeUrl, TypeRule>,
    other: TypeRule,
    services: Vec<(TypeUrl, TypeService)>,
    references: HashMap<TypeUrl, Vec<Reference>>,
}

impl TypeRules {
    /// The rules of Envoy's own types, and their services.
    pub fn envoy() -> Self {
        let service =
            |(of, service, resources): (&str, _, _)| (TypeUrl::from(of), TypeService::new(service, resources));
        Self {
            rules: envoy::rules().into_iter().map(|(url, rule)| (url.into(), rule)).collect(),
            other: TypeRule::default(),
            services: envoy::SERVICES.into_iter().map(service).collect(),
            references: envoy::references().into_iter().map(|(url, references)| (url.into(), references)).collect(),
        }
    }

    /// Sets the rule of a type.
    pub fn insert(&mut self, type_url: TypeUrl, rule: TypeRule) {
        self.rules.insert(type_url, rule);
    }

    /// Serves a type by a service of its own, beside those that it has.
    pub fn insert_service(&mut self, type_url: TypeUrl, service: TypeService) {
        self.services.push((type_url, service));
    }

    /// The types that have a service of their own, which of Envoy's all have, in the order in which they were given.
    ///
    /// ```
    /// let rules = xds_transport::TypeRules::envoy();
    /// let (type_url, service) = rules.services().next().ok_or("there are some")?;
    /// assert_eq!(type_url.as_str(), "type.googleapis.com/envoy.config.listener.v3.Listener");
    /// assert_eq!(service.resources(), "Listeners");
    /// # Ok::<(), &str>(())
    /// ```
    pub fn services(&self) -> impl Iterator<Item = (&TypeUrl, &TypeService)> {
        self.services.iter().map(|(type_url, service)| (type_url, service))
    }

    /// The service of a type, the first that it was given.
    ///
    /// ```
    /// use xds_transport::{Protocol, TypeRules};
    ///
    /// let rules = TypeRules::envoy();
    /// let service = rules.service_of(&"type.googleapis.com/envoy.config.cluster.v3.Cluster".into()).ok_or("it has one")?;
    /// assert!(service.method(Protocol::Sotw).ends_with("/StreamClusters"));
    /// assert_eq!(rules.service_of(&"type.example.com/example.Limit".into()), None);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn service_of(&self, type_url: &TypeUrl) -> Option<&TypeService> {
        self.services().find_map(|(of, service)| (of == type_url).then_some(service))
    }

    /// How many types have a method of their own: so many streams has who asks for each by its own.
    ///
    /// ```
    /// use xds_transport::{Protocol, TypeRules};
    ///
    /// assert!(TypeRules::envoy().methods(Protocol::Delta) > TypeRules::envoy().methods(Protocol::Sotw));
    /// ```
    pub fn methods(&self, protocol: Protocol) -> usize {
        let types = self.services().map(|(type_url, _)| type_url);
        let types = types.filter(|of| protocol == Protocol::Delta || !self.of(of).delta_only);
        types.collect::<BTreeSet<_>>().len()
    }

    /// Resources of a type name others, beside those that they are known to name.
    pub fn insert_reference(&mut self, type_url: &TypeUrl, reference: Reference) {
        self.references.entry(type_url.clone()).or_default().push(reference);
    }

    /// Where resources of a type name others.
    pub fn references_of(&self, type_url: &TypeUrl) -> &[Reference] {
        self.references.get(type_url).map_or(&[], Vec::as_slice)
    }

    /// The rule of a type that somebody described.
    pub(crate) fn described(&self, type_url: &TypeUrl) -> Option<&TypeRule> {
        self.rules.get(type_url)
    }

    /// The rule of a type: the default one for a type nobody described.
    pub fn of(&self, type_url: &TypeUrl) -> &TypeRule {
        self.rules.get(type_url).unwrap_or(&self.other)
    }

    /// What a method serves, by its path: a protocol, and the one type of a per-type service (rules 1, 2).
    pub fn served(&self, path: &str) -> Option<(Protocol, Option<TypeUrl>)> {
        let protocols = || [Protocol::Sotw, Protocol::Delta].into_iter();
        if let Some(protocol) = protocols().find(|protocol| protocol.aggregated_method() == path) {
            return Some((protocol, None));
        }
        self.services.iter().find_map(|(type_url, service)| {
            let protocol = protocols().find(|protocol| service.method(*protocol) == path)?;
            // Rule 2: that has no SotW method.
            let is_served = protocol == Protocol::Delta || !self.of(type_url).delta_only;
            is_served.then(|| (protocol, Some(type_url.clone())))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_001_the_method_picks_the_protocol() {
        let rules = TypeRules::envoy();
        let clusters = Some(TypeUrl::from("type.googleapis.com/envoy.config.cluster.v3.Cluster"));
        for protocol in [Protocol::Sotw, Protocol::Delta] {
            assert_eq!(rules.served(protocol.aggregated_method()), Some((protocol, None)));
        }
        let path = "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters";
        assert_eq!(rules.served(path), Some((Protocol::Delta, clusters.clone())));
        let path = "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters";
        assert_eq!(rules.served(path), Some((Protocol::Sotw, clusters)));
        for other in ["", "/", "/envoy.service.cluster.v3.ClusterDiscoveryService/FetchClusters", &path[1..]] {
            assert_eq!(rules.served(other), None, "{other}");
        }
    }

    #[test]
    fn rule_001_all_types_of_envoy_have_a_service() {
        let rules = TypeRules::envoy();
        let without: Vec<_> =
            rules.rules.keys().filter(|of| !rules.services.iter().any(|(served, _)| served == *of)).collect();
        assert!(without.is_empty(), "{without:?}");
    }

    /// Of each type the methods that Envoy's API has, but `Fetch`, which is REST; of dynamic parameters those that the draft of TP2 has.
    const METHODS: &str = "
        envoy.config.listener.v3.Listener
            /envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners
            /envoy.service.listener.v3.ListenerDiscoveryService/DeltaListeners
        envoy.config.route.v3.RouteConfiguration
            /envoy.service.route.v3.RouteDiscoveryService/StreamRoutes
            /envoy.service.route.v3.RouteDiscoveryService/DeltaRoutes
        envoy.config.route.v3.ScopedRouteConfiguration
            /envoy.service.route.v3.ScopedRoutesDiscoveryService/StreamScopedRoutes
            /envoy.service.route.v3.ScopedRoutesDiscoveryService/DeltaScopedRoutes
        envoy.config.route.v3.VirtualHost
            /envoy.service.route.v3.VirtualHostDiscoveryService/DeltaVirtualHosts
        envoy.config.cluster.v3.Cluster
            /envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters
            /envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters
        envoy.config.endpoint.v3.ClusterLoadAssignment
            /envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints
            /envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints
        envoy.config.endpoint.v3.LbEndpoint
            /envoy.service.endpoint.v3.LocalityEndpointDiscoveryService/DeltaLocalityEndpoints
        envoy.extensions.transport_sockets.tls.v3.Secret
            /envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets
            /envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets
        envoy.service.runtime.v3.Runtime
            /envoy.service.runtime.v3.RuntimeDiscoveryService/StreamRuntime
            /envoy.service.runtime.v3.RuntimeDiscoveryService/DeltaRuntime
        envoy.config.dynamic_parameters.v3.DynamicParameterConstraintsMap
            /envoy.service.dynamic_parameters.v3.DynamicParametersDiscoveryService/StreamDynamicParameterConstraints
            /envoy.service.dynamic_parameters.v3.DynamicParametersDiscoveryService/DeltaDynamicParameterConstraints
        envoy.config.core.v3.TypedExtensionConfig
            /envoy.service.extension.v3.ExtensionConfigDiscoveryService/StreamExtensionConfigs
            /envoy.service.extension.v3.ExtensionConfigDiscoveryService/DeltaExtensionConfigs";

    #[test]
    fn rule_001_the_methods_of_each_type_are_those_of_envoy_s_api() {
        let rules = TypeRules::envoy();
        let (mut of, mut written) = ("", BTreeSet::new());
        for word in METHODS.split_whitespace() {
            if !word.starts_with('/') {
                of = word;
                continue;
            }
            let protocol = if word.contains("/Delta") { Protocol::Delta } else { Protocol::Sotw };
            let of = TypeUrl::from(format!("type.googleapis.com/{of}").as_str());
            assert_eq!(rules.served(word), Some((protocol, Some(of.clone()))), "{word}");
            written.insert((of, word.to_owned()));
        }
        // And a client calls no other.
        let called: BTreeSet<_> = rules
            .services()
            .flat_map(|(of, service)| {
                let protocols = [Protocol::Sotw, Protocol::Delta].into_iter();
                let had = protocols.filter(|protocol| *protocol == Protocol::Delta || !rules.of(of).delta_only);
                had.map(|protocol| (of.clone(), service.method(protocol)))
            })
            .collect();
        assert_eq!(called, written);
    }

    #[test]
    fn rule_002_virtual_hosts_and_localities_are_delta_only() {
        let rules = TypeRules::envoy();
        for service in [
            "route.v3.VirtualHostDiscoveryService/$VirtualHosts",
            "endpoint.v3.LocalityEndpointDiscoveryService/$LocalityEndpoints",
        ] {
            let path = |verb| format!("/envoy.service.{}", service.replace('$', verb));
            assert_eq!(rules.served(&path("Stream")), None);
            assert!(rules.served(&path("Delta")).is_some());
        }
    }

    #[test]
    fn rule_002_so_is_whatever_type_is_described_so() {
        let mut rules = TypeRules::default();
        let (limits, service) = (TypeUrl::from("type.example.com/Limit"), TypeService::new("example.Limits", "Limits"));
        rules.insert_service(limits.clone(), service.clone());
        assert_eq!(rules.served("/example.Limits/StreamLimits"), Some((Protocol::Sotw, Some(limits.clone()))));
        rules.insert(limits.clone(), TypeRule { delta_only: true, ..TypeRule::default() });
        assert_eq!(rules.served("/example.Limits/StreamLimits"), None);
        assert_eq!(rules.served(&service.method(Protocol::Delta)), Some((Protocol::Delta, Some(limits))));
    }
}
