//! Which types of resources are in releases.

use xds_transport::is_secret;
use xdstp_cache::TypeUrl;

const LISTENER: &str = "envoy.config.listener.v3.Listener";
const ROUTES: &str = "envoy.config.route.v3.RouteConfiguration";
const SCOPED_ROUTES: &str = "envoy.config.route.v3.ScopedRouteConfiguration";
const CLUSTER: &str = "envoy.config.cluster.v3.Cluster";

/// Those that are in releases unless all are to be: what decides where requests go, and not where endpoints are.
const DEFAULT: [&str; 6] = [
    LISTENER,
    ROUTES,
    SCOPED_ROUTES,
    "envoy.config.route.v3.VirtualHost",
    CLUSTER,
    "envoy.config.core.v3.TypedExtensionConfig",
];

/// Which types of resources are in releases. What is in none is served as origins say it, whatever is frozen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Types {
    /// Listeners, routes, scoped routes, virtual hosts, clusters and extensions. Endpoints are not: those that are frozen while
    /// programs move are an outage. Nor are lists that have listeners or clusters inline: releases that were taken without them would
    /// take them away.
    #[default]
    Default,
    /// All but secrets, which are never kept: a certificate that is frozen is one that runs out.
    All,
    /// What is gathered of a control plane that is followed, whose other types are served as it says them.
    Gathered(Gathered),
}

/// Types of which a control plane says what there is, and routes that these refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    listeners: bool,
    scoped_routes: bool,
    clusters: bool,
}

impl Gathered {
    /// That type, too, if it is one of them.
    #[must_use]
    pub(crate) fn with(mut self, type_url: &str) -> Self {
        match message_type(type_url) {
            LISTENER => self.listeners = true,
            SCOPED_ROUTES => self.scoped_routes = true,
            CLUSTER => self.clusters = true,
            _ => {}
        }
        self
    }

    /// Those types, too.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            listeners: self.listeners || other.listeners,
            scoped_routes: self.scoped_routes || other.scoped_routes,
            clusters: self.clusters || other.clusters,
        }
    }

    fn contains(self, name: &str) -> bool {
        match name {
            LISTENER => self.listeners,
            SCOPED_ROUTES => self.scoped_routes,
            ROUTES => self.listeners || self.scoped_routes,
            CLUSTER => self.clusters,
            _ => false,
        }
    }
}

fn message_type(type_url: &str) -> &str {
    type_url.rsplit('/').next().unwrap_or_default()
}

impl Types {
    /// Whether resources of a type are in releases, of whatever host the type is said to be.
    ///
    /// ```
    /// use xds_relay::releases::Types;
    ///
    /// let [cluster, endpoints, secret] =
    ///     ["cluster.v3.Cluster", "endpoint.v3.ClusterLoadAssignment", "core.v3.Secret"]
    ///         .map(|name| format!("type.googleapis.com/envoy.config.{name}").as_str().into());
    /// assert!(Types::Default.contains(&cluster) && !Types::Default.contains(&endpoints));
    /// assert!(Types::All.contains(&endpoints) && !Types::All.contains(&secret));
    /// ```
    pub fn contains(self, type_url: &TypeUrl) -> bool {
        let name = message_type(type_url.as_str());
        match self {
            Self::Default => DEFAULT.contains(&name),
            Self::All => !is_secret(name),
            Self::Gathered(types) => types.contains(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_releases_by_default_and_what_is_in_none() {
        for (name, by_default, ever) in [
            ("envoy.config.listener.v3.Listener", true, true),
            ("envoy.config.listener.v3.ListenerCollection", false, true),
            ("envoy.config.route.v3.RouteConfiguration", true, true),
            ("envoy.config.route.v3.ScopedRouteConfiguration", true, true),
            ("envoy.config.route.v3.VirtualHost", true, true),
            ("envoy.config.cluster.v3.Cluster", true, true),
            ("envoy.config.cluster.v3.ClusterCollection", false, true),
            ("envoy.config.core.v3.TypedExtensionConfig", true, true),
            ("envoy.config.endpoint.v3.ClusterLoadAssignment", false, true),
            ("envoy.config.endpoint.v3.LbEndpoint", false, true),
            ("envoy.service.runtime.v3.Runtime", false, true),
            ("envoy.extensions.transport_sockets.tls.v3.Secret", false, false),
        ] {
            for host in ["type.googleapis.com", "example.com/of/another"] {
                let type_url = TypeUrl::from(format!("{host}/{name}").as_str());
                let is = (Types::Default.contains(&type_url), Types::All.contains(&type_url));
                assert_eq!(is, (by_default, ever), "{type_url}");
            }
        }
    }
}
