//! Resources that live for a time.

use super::*;
use crate::wire::Duration as WireDuration;

#[test]
fn rule_111_a_resource_that_comes_again_lives_anew() {
    let mut client = client(&["a"]);
    let mut response = delta(CDS, "n1", &[("a", "1")], &[]);
    response.resources[0].ttl = Some(WireDuration { seconds: 30, nanos: 0 });
    let update = client.accept(&response);
    assert_eq!(update.changed[0].resource.value.expires(), Some(client.now + Duration::from_secs(30)));
    // An answer to our own request changes nothing but this.
    client.advance(20);
    client.reconnect();
    while client.poll().is_some() {}
    let update = client.accept(&response);
    assert!(update.changed.is_empty());
    assert_eq!(update.refreshed, [(name("a"), Duration::from_secs(30))]);
    client.advance(29);
    assert!(client.update().is_none());
    // Without a TTL it lives on.
    response.resources[0].ttl = None;
    client.accept(&response);
    assert_eq!(client.stream.poll_timeout(), None);
}

#[test]
fn rule_112_a_heartbeat_puts_the_end_off() {
    let mut client = client(&["a"]);
    let mut response = delta(CDS, "n1", &[("a", "1")], &[]);
    response.resources[0].ttl = Some(WireDuration { seconds: 30, nanos: 0 });
    client.accept(&response);
    client.advance(20);
    let mut heartbeat = response.clone();
    heartbeat.resources[0].resource = None;
    let update = client.accept(&heartbeat);
    assert_eq!(update.refreshed, [(name("a"), Duration::from_secs(30))]);
    assert!(update.changed.is_empty());
    client.advance(20);
    assert!(client.update().is_none());

    heartbeat.resources[0].version = "2".into();
    while client.poll().is_some() {}
    client.accept(&heartbeat);
    assert!(client.delta().unwrap().error_detail.is_some(), "a heartbeat for a version never sent");
}

#[test]
fn rule_115_a_resource_expires_without_a_word_and_stays_subscribed() {
    let mut client = client(&["a"]);
    let mut response = delta(CDS, "n1", &[("a", "1")], &[]);
    response.resources[0].ttl = Some(WireDuration { seconds: 30, nanos: 0 });
    client.accept(&response);
    while client.poll().is_some() {}
    client.advance(29);
    assert!(client.update().is_none());
    client.advance(1);
    assert_eq!(removed(&client.update().unwrap()), ["a"]);
    assert_eq!(client.stream.poll_timeout(), None);
    assert!(client.poll().is_none());
    client.reconnect();
    let request = client.delta().unwrap();
    assert_eq!(request.resource_names_subscribe, ["a"]);
    assert!(request.initial_resource_versions.is_empty());
}

#[test]
fn rule_062_what_lives_on_or_came_again_is_not_told_to_who_left_it_before_it_was_heard_of() {
    for (left, names) in [(&[][..], 2), (&["*"], 1), (&["*", "a"], 0)] {
        let mut client = client(&["*"]);
        client.accept(&delta(CDS, "n1", &[("a", "1"), ("b", "1")], &[]));
        client.subscribe(CDS, &["a"]);
        while client.poll().is_some() {}
        let mut response = delta(CDS, "n2", &[("a", "1"), ("b", "1")], &[]);
        response.resources.iter_mut().for_each(|one| one.ttl = Some(WireDuration { seconds: 30, nanos: 0 }));
        response.resources[1].resource = None;
        client.receive(&response);
        client.unsubscribe(CDS, left);
        client.subscribe(CDS, left);
        let update = client.update().unwrap();
        assert_eq!((update.repeated.len(), update.refreshed.len()), (names.min(1), names), "{left:?}");
    }
}
