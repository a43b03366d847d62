//! What resources refer to that a client asks for by name.

use xds_transport::{Reference, Step, TypeRules};

const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const EXTENSION: &str = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
const CONNECTION_MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/// What the protocol goes by, and the filters of Listeners that come by name (ECDS), by which it does not go.
pub(super) fn rules() -> TypeRules {
    let mut rules = TypeRules::envoy();
    let mut insert = |steps: Vec<Step>, name: u32, source: Vec<u32>| {
        let reference = Reference::new(EXTENSION.into(), steps, [vec![name]]).from_source(source);
        rules.insert_reference(&LISTENER.into(), reference);
    };
    // Listener.listener_filters, whose config_discovery is its field 5
    insert(vec![Step::Field(9)], 1, vec![5, 1]);
    for chain in [Step::Field(3), Step::Field(25)] {
        // FilterChain.filters, whose config_discovery is its field 5
        let filter = vec![chain, Step::Field(3)];
        insert(filter.clone(), 1, vec![5, 1]);
        // HttpConnectionManager.http_filters, likewise
        insert([filter, vec![Step::Any(4, CONNECTION_MANAGER.into()), Step::Field(5)]].concat(), 1, vec![5, 1]);
    }
    insert(vec![Step::Field(19), Step::Any(1, CONNECTION_MANAGER.into()), Step::Field(5)], 1, vec![5, 1]);
    rules
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use xds_transport::wire;
    use xdstp_cache::TypeUrl;

    use super::*;

    /// Of fields that are all shorter than 128 bytes: each is its number and its content.
    fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
        let field = |(number, content): &(u8, &[u8])| {
            let tag = u32::from(*number) << 3 | 2;
            let tag = if tag < 128 { vec![tag as u8] } else { vec![tag as u8 | 0x80, (tag >> 7) as u8] };
            [tag, wire_length(content.len()), content.to_vec()].concat()
        };
        fields.iter().flat_map(field).collect()
    }

    fn wire_length(length: usize) -> Vec<u8> {
        if length < 128 { vec![length as u8] } else { vec![length as u8 | 0x80, (length >> 7) as u8] }
    }

    #[test]
    fn a_listener_names_the_filters_that_come_by_name_and_no_others() {
        let ads = message(&[(3, b"")]);
        let filter = |name: &str, source: &[u8]| message(&[(1, name.as_bytes()), (5, &message(&[(1, source)]))]);
        let manager = message(&[(5, &filter("http", &ads)), (5, &message(&[(1, b"inline")]))]);
        let any = wire::Any { type_url: CONNECTION_MANAGER.into(), value: manager.into() }.encode_to_vec();
        let network = message(&[(3, &message(&[(1, b"hcm"), (4, &any)])), (3, &filter("network", &ads))]);
        let file = filter("file", &message(&[(8, b"")]));
        let listener = message(&[(3, &network), (9, &filter("listener", &ads)), (9, &file)]);
        let listener = wire::Any { type_url: LISTENER.into(), value: listener.into() }.encode_to_vec();
        let (rules, mut found) = (rules(), Vec::new());
        for reference in rules.references_of(&TypeUrl::from(LISTENER)) {
            reference.visit(&listener, &mut |name| found.push((reference.type_url.as_str(), name)));
        }
        found.sort();
        assert_eq!(found, ["http", "listener", "network"].map(|name| (EXTENSION, name)));
    }
}
