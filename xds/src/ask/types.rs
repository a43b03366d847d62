//! The types of resources, by short names.

use xds_relay::api::short_types;
pub(crate) use xds_relay::api::type_url;

/// What may be given.
pub(crate) fn help() -> String {
    format!("A type URL, or: {}", short_types().join(", "))
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
        assert!(type_url("clusterr").is_err_and(|error| error.to_string().contains("\"clusterr\"")));
    }
}
