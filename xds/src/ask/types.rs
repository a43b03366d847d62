//! The types of resources, by short names.

const PREFIX: &str = "type.googleapis.com/";

const TYPES: [(&str, &str); 10] = [
    ("cluster", "envoy.config.cluster.v3.Cluster"),
    ("endpoint", "envoy.config.endpoint.v3.ClusterLoadAssignment"),
    ("extension", "envoy.config.core.v3.TypedExtensionConfig"),
    ("listener", "envoy.config.listener.v3.Listener"),
    ("locality-endpoint", "envoy.config.endpoint.v3.LbEndpoint"),
    ("route", "envoy.config.route.v3.RouteConfiguration"),
    ("runtime", "envoy.service.runtime.v3.Runtime"),
    ("scoped-route", "envoy.config.route.v3.ScopedRouteConfiguration"),
    ("secret", "envoy.extensions.transport_sockets.tls.v3.Secret"),
    ("virtual-host", "envoy.config.route.v3.VirtualHost"),
];

/// The type URL that somebody means.
///
/// # Errors
/// It is no short name.
pub(crate) fn type_url(text: &str) -> Result<String, String> {
    if text.contains('/') {
        return Ok(text.to_owned());
    }
    if text.contains('.') {
        return Ok(format!("{PREFIX}{text}"));
    }
    TYPES.iter().find(|(short, _)| *short == text).map(|(_, full)| format!("{PREFIX}{full}")).ok_or_else(|| {
        let known: Vec<_> = TYPES.iter().map(|(short, _)| *short).collect();
        format!("no type {text:?}: give a type URL or one of {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_given_short_or_in_full() {
        let full = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
        for text in ["cluster", "envoy.config.cluster.v3.Cluster", full] {
            assert_eq!(type_url(text).as_deref(), Ok(full));
        }
        assert!(type_url("clusterr").is_err_and(|error| error.contains("\"clusterr\"")));
    }
}
