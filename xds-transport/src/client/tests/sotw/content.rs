//! Which resources of a response are taken, which of them are changes, and at which version.

use super::*;

#[test]
fn rule_035_without_a_version_of_its_own_a_resource_has_the_hash_of_its_content() {
    let (mut one, mut other) = (endpoints(&["a"]), endpoints(&["a"]));
    let from_one = one.accept(&sotw(EDS, "v1", "n1", &[("a", "1")]));
    let from_other = other.accept(&sotw(EDS, "x7", "m9", &[("a", "1")]));
    assert_eq!(from_one.changed[0].resource.version, from_other.changed[0].resource.version);
    assert_eq!(from_one.changed[0].resource.version.as_str().len(), 32);

    let resource = Resource {
        name: "a".into(),
        version: "own".into(),
        resource: Some(body(EDS, "a", "2")),
        ..Resource::default()
    };
    let response = DiscoveryResponse { resources: vec![wrapped(&resource)], ..sotw(EDS, "v2", "n2", &[]) };
    assert_eq!(changed(&one.accept(&response)), [("a", "own")]);
}

#[test]
fn rule_081_a_resource_of_another_type_than_its_response_is_refused() {
    let mut client = endpoints(&["a", "b"]);
    let mut response = sotw(EDS, "v1", "n1", &[("a", "1")]);
    response.resources.push(body(CDS, "b", "1"));
    assert_eq!(changed_names(&client.accept(&response)), ["a"]);
    assert!(client.sotw().unwrap().error_detail.unwrap().message.starts_with("b: "));
}

#[test]
fn rule_081_over_sotw_a_wrapper_is_of_the_type_inside_it() {
    let resource = |of: &str, name: &str| Resource {
        name: name.into(),
        version: "1".into(),
        resource: Some(body(of, name, "1")),
        ..Resource::default()
    };
    for of in [CDS, EDS] {
        let mut client = Client::subscribed(Protocol::Sotw, of, &["right", "wrong", "twice"]);
        let other = if of == CDS { EDS } else { CDS };
        // What is wrapped twice is, inside its wrapper, of another type too.
        let twice = Resource { resource: Some(wrapped(&resource(of, "twice"))), ..resource(of, "twice") };
        let resources = [resource(of, "right"), resource(other, "wrong"), twice];
        let resources = resources.iter().map(wrapped).collect();
        let update = client.accept(&DiscoveryResponse { resources, ..sotw(of, "v1", "n1", &[]) });
        assert_eq!(changed(&update), [("right", "1")]);
        assert_eq!(update.rejected.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["wrong", "twice"]);
        let nack = client.sotw().unwrap();
        let words = nack.error_detail.unwrap().message;
        assert!(words.contains(other) && words.contains(RESOURCE_TYPE_URL), "{words}");
        assert_eq!((nack.version_info.as_str(), nack.response_nonce.as_str()), ("", "n1"));
    }
}

#[test]
fn equal_content_at_a_new_version_is_no_change() {
    let mut client = endpoints(&["a", "b"]);
    client.accept(&sotw(EDS, "v1", "n1", &[("a", "1"), ("b", "1")]));
    let update = client.accept(&sotw(EDS, "v2", "n2", &[("a", "1"), ("b", "2")]));
    assert_eq!(changed_names(&update), ["b"]);
}

#[test]
fn rule_124_what_comes_again_unasked_at_its_version_is_a_touch() {
    let mut client = endpoints(&["a"]);
    client.accept(&sotw(EDS, "v1", "n1", &[("a", "1")]));
    let update = client.accept(&sotw(EDS, "v1", "n2", &[("a", "1")]));
    assert!(update.changed[0].touched);

    while client.poll().is_some() {}
    client.subscribe(EDS, &["b"]);
    client.sotw();
    let update = client.accept(&sotw(EDS, "v1", "n3", &[("a", "1"), ("b", "1")]));
    assert_eq!(changed_names(&update), ["b"], "an answer to our own request");
}
