//! Types: rules 2, 7, 10, 11.

use crate::support::{CLUSTERS, Client, ENDPOINTS, LISTENERS, Server};

#[test]
fn rule_002_types_that_are_delta_only_are_refused_over_sotw() {
    for of in [
        "type.googleapis.com/envoy.config.route.v3.VirtualHost",
        "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint",
    ] {
        let mut server = Server::with(of, &["rc/a"]);
        server.put(CLUSTERS, "a", "1");
        let mut client = Client::sotw();
        let no = format!("12 (there is no state of the world of {of}: it comes over delta only)");
        assert_eq!(client.names(&mut server, of, &["rc/a", "rc/b"]), [format!("{of} !rc/a:{no} !rc/b:{no}")]);
        assert!(client.ack(&mut server, of).is_empty(), "it is said once");
        server.put(of, "rc/a", "2");
        server.remove(of, "rc/a");
        assert!(client.poll(&mut server).is_empty());
        assert_eq!(client.names(&mut server, of, &["rc/c"]), [format!("{of} !rc/c:{no}")]);
        assert!(client.names(&mut server, of, &[]).is_empty(), "who asks for nothing is not refused anything");
        assert_eq!(client.names(&mut server, CLUSTERS, &[]), ["C a@1"], "the stream goes on");
        assert_eq!(Client::sotw().names(&mut server, of, &[]), [format!("{of} !*:{no}")], "a wildcard");
        server.put(of, "rc/a", "1");
        assert_eq!(Client::delta().subscribe(&mut server, of, &["rc/a"]), [format!("{of} rc/a@1")]);
    }
}

#[test]
fn rule_007_types_have_nonces_and_wildcards_of_their_own() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    server.put(ENDPOINTS, "a", "1");
    let mut client = Client::sotw();
    assert_eq!(client.names(&mut server, CLUSTERS, &[]), ["C a@1"]);
    assert_eq!(client.names(&mut server, ENDPOINTS, &["a"]), ["E a@1"]);
    server.put(ENDPOINTS, "a", "2");
    assert!(client.ack(&mut server, CLUSTERS).is_empty(), "an ACK of clusters frees no endpoints");
    assert_eq!(client.ack(&mut server, ENDPOINTS), ["E a@2"]);
    server.put(CLUSTERS, "a", "2");
    assert_eq!(client.poll(&mut server)[0], "C a@2");
}

#[test]
fn rule_010_a_type_that_was_not_asked_for_is_not_sent() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    for mut client in [Client::delta(), Client::sotw()] {
        client.want(&mut server, ENDPOINTS, &["a"]);
        server.put(LISTENERS, "l", "1");
        server.put(CLUSTERS, "a", "2");
        assert!(client.poll(&mut server).is_empty());
    }
}

#[test]
fn rule_011_any_type_url_is_served() {
    let of = "type.googleapis.com/foo.Bar";
    let mut server = Server::with(of, &["a", "b"]);
    assert_eq!(Client::delta().subscribe(&mut server, of, &["a"]), [format!("{of} a@1")]);
    assert_eq!(Client::sotw().names(&mut server, of, &["a"]), [format!("{of} a@1")]);
}
