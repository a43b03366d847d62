//! Resources that live for a time.

use super::*;
use crate::wire::Duration as WireDuration;

#[test]
fn rule_115_a_resource_expires_without_a_word() {
    let mut client = endpoints(&["a"]);
    let ttl = Some(WireDuration { seconds: 30, nanos: 0 });
    let resource = Resource { name: "a".into(), resource: Some(body(EDS, "a", "1")), ttl, ..Resource::default() };
    let response = DiscoveryResponse { resources: vec![wrapped(&resource)], ..sotw(EDS, "v1", "n1", &[]) };
    assert_eq!(changed_names(&client.accept(&response)), ["a"]);
    client.sotw();
    client.advance(20);
    let heartbeat = Resource { resource: None, ..resource };
    let response = DiscoveryResponse { resources: vec![wrapped(&heartbeat)], ..sotw(EDS, "v1", "n2", &[]) };
    assert_eq!(client.accept(&response).refreshed, [(name("a"), Duration::from_secs(30))]);
    client.sotw();
    client.advance(29);
    assert!(client.update().is_none());
    client.advance(1);
    assert_eq!(removed(&client.update().unwrap()), ["a"]);
    assert!(client.poll().is_none());
}
