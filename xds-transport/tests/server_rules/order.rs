//! The order of one stream: rules 122–126.

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, LISTENERS, ROUTES, SCOPED_ROUTES, Server, seconds};

const TYPES: [&str; 4] = [ROUTES, LISTENERS, ENDPOINTS, CLUSTERS];

#[test]
fn rule_122_one_change_goes_out_in_order_and_removals_last() {
    let mut server = Server::origin();
    for of in TYPES {
        server.put(of, "old", "1");
    }
    let mut client = Client::delta();
    for of in TYPES {
        client.subscribe(&mut server, of, &["old", "new"]);
    }
    client.settle(&mut server);
    for of in TYPES {
        server.remove(of, "old");
        server.put(of, "new", "1");
    }
    let said = client.poll(&mut server);
    assert_eq!(said, ["C new@1", "E new@1", "L new@1 -old", "R new@1 -old", "C -old", "E -old"]);
}

#[test]
fn rule_122_every_type_has_its_place() {
    let in_order = [
        CLUSTERS,
        ENDPOINTS,
        "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint",
        "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
        LISTENERS,
        SCOPED_ROUTES,
        ROUTES,
        "type.googleapis.com/envoy.config.route.v3.VirtualHost",
        "type.example.com/of.somebody.Else",
    ];
    let over_sotw = in_order.into_iter().filter(|of| !of.ends_with("LbEndpoint") && !of.ends_with("VirtualHost"));
    for (mut client, in_order) in [(Client::delta(), in_order.to_vec()), (Client::sotw(), over_sotw.collect())] {
        let mut server = Server::origin();
        for of in in_order.iter().rev() {
            client.want(&mut server, of, &["a"]);
        }
        client.settle(&mut server);
        for of in in_order.iter().rev() {
            server.put(of, "a", "1");
        }
        let before = client.delta.len() + client.sotw.len();
        client.settle(&mut server);
        let delta = client.delta.iter().map(|response| response.type_url.as_str());
        let sotw = client.sotw.iter().map(|response| response.type_url.as_str());
        assert_eq!(delta.chain(sotw).skip(before).collect::<Vec<_>>(), in_order);
    }
}

#[test]
fn rule_122_a_cluster_added_while_removals_wait_is_not_held_up_by_them() {
    let mut server = Server::with(CLUSTERS, &["old"]);
    server.put(ROUTES, "r", "1");
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["*"]);
    client.subscribe(&mut server, ROUTES, &["r"]);
    server.remove(CLUSTERS, "old");
    server.put(ROUTES, "r", "2");
    assert_eq!(client.poll_one(&mut server).as_deref(), Some("R r@2"));
    server.put(CLUSTERS, "new", "1");
    server.put(ROUTES, "r", "3");
    assert_eq!(client.poll(&mut server), ["C new@1", "R r@3", "C -old"]);
}

#[test]
fn rule_122_sotw_routes_wait_a_second_behind_clusters_that_wait_for_their_ack() {
    let mut server = Server::with(CLUSTERS, &["c"]);
    server.put(ENDPOINTS, "c", "1");
    server.put(ROUTES, "r", "1");
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    client.names(&mut server, ENDPOINTS, &["c"]);
    client.names(&mut server, ROUTES, &["r"]);
    client.ack(&mut server, ENDPOINTS);
    client.ack(&mut server, ROUTES);
    server.put(CLUSTERS, "c", "2");
    server.put(ROUTES, "r", "2");
    assert!(client.poll(&mut server).is_empty(), "the clusters are not acknowledged");
    assert_eq!(client.stream.poll_timeout(), Some(server.now + seconds(1)));
    // Rule 123: endpoints never wait.
    server.put(ENDPOINTS, "c", "2");
    assert_eq!(client.poll(&mut server), ["E c@2"]);
    server.now += seconds(1);
    assert_eq!(client.poll(&mut server), ["R r@2"]);
    assert_eq!(client.stream.poll_timeout(), None);
}

#[test]
fn rule_122_sotw_routes_go_out_when_the_clusters_are_acknowledged() {
    let mut server = Server::with(CLUSTERS, &["c"]);
    server.put(ROUTES, "r", "1");
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    client.names(&mut server, ROUTES, &["r"]);
    client.ack(&mut server, ROUTES);
    server.put(CLUSTERS, "c", "2");
    server.put(ROUTES, "r", "2");
    assert!(client.poll(&mut server).is_empty());
    assert_eq!(client.ack(&mut server, CLUSTERS), ["C c@2", "R r@2"]);
    assert_eq!(client.stream.poll_timeout(), None);
}

#[test]
fn rule_123_endpoints_do_not_wait_for_the_ack_of_clusters() {
    let mut server = Server::with(CLUSTERS, &["c"]);
    server.put(ENDPOINTS, "c", "1");
    let mut delta = Client::delta();
    assert_eq!(delta.subscribe(&mut server, CLUSTERS, &[]), ["C c@1"]);
    assert_eq!(delta.subscribe(&mut server, ENDPOINTS, &["c"]), ["E c@1"]);
    let mut sotw = Client::sotw();
    assert_eq!(sotw.names(&mut server, CLUSTERS, &[]), ["C c@1"]);
    assert_eq!(sotw.names(&mut server, ENDPOINTS, &["c"]), ["E c@1"]);
}

#[test]
fn rule_124_a_changed_cluster_is_followed_by_its_endpoints() {
    let mut server = Server::origin();
    server.put_cluster("c", "service", "1");
    server.put_cluster("d", "", "1");
    for name in ["service", "d", "other"] {
        server.put(ENDPOINTS, name, "1");
    }
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[]);
    client.subscribe(&mut server, ENDPOINTS, &["service", "d", "other"]);
    server.put_cluster("c", "service", "2");
    assert_eq!(client.poll(&mut server), ["C c@2", "E service@1"]);
    server.put_cluster("d", "", "2");
    assert_eq!(client.poll(&mut server), ["C d@2", "E d@1"]);
    // Nobody asked for these endpoints.
    server.put_cluster("c", "unknown", "3");
    assert_eq!(client.poll(&mut server), ["C c@3"]);
}

/// Over SotW a response of endpoints is due to nobody who was sent them, but for this.
#[test]
fn rule_124_over_sotw_too_a_changed_cluster_is_followed_by_its_endpoints() {
    let mut server = Server::origin();
    server.put_cluster("c", "service", "1");
    server.put_cluster("d", "other", "1");
    for name in ["service", "other"] {
        server.put(ENDPOINTS, name, "1");
    }
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    client.names(&mut server, ENDPOINTS, &["service", "other"]);
    client.settle(&mut server);
    server.put_cluster("c", "service", "2");
    let said = client.settle(&mut server);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("C ") && said[1] == "E service@1", "{said:?}");
}

#[test]
fn rule_124_what_the_origin_sends_again_is_sent_again() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    let mut edit = server.cache.edit(server.now);
    edit.touch(&ENDPOINTS.into(), &"a".parse().unwrap());
    server.woken.extend(edit.finish());
    assert_eq!(client.poll(&mut server), ["E a@1"]);
}

#[test]
fn rule_125_a_changed_listener_sends_no_routes() {
    let mut server = Server::with(LISTENERS, &["l"]);
    server.put(ROUTES, "r", "1");
    let mut client = Client::delta();
    client.subscribe(&mut server, LISTENERS, &[]);
    client.subscribe(&mut server, ROUTES, &["r"]);
    server.put(LISTENERS, "l", "2");
    assert_eq!(client.poll(&mut server), ["L l@2"]);
}

#[test]
fn rule_126_some_names_are_answered_for_some_names() {
    let mut server = Server::with(ENDPOINTS, &["a", "b", "c"]);
    assert_eq!(Client::sotw().names(&mut server, ENDPOINTS, &["a", "missing"]), ["E a@1"]);
    let ask = Ask { of: ENDPOINTS, subscribe: &["b", "missing"], ..Ask::default() };
    assert_eq!(Client::delta().ask(&mut server, &ask), ["E b@1 -missing"]);
}

#[test]
fn rule_122_a_wait_that_is_over_is_none() {
    let mut server = Server::with(CLUSTERS, &["c"]);
    server.put(ROUTES, "r", "1");
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    client.names(&mut server, ROUTES, &["r"]);
    client.ack(&mut server, ROUTES);
    server.put(ROUTES, "r", "2");
    server.put(CLUSTERS, "c", "2");
    assert!(client.poll(&mut server).is_empty());
    assert!(client.stream.poll_timeout().is_some());
    client.drop_ack(&mut server, CLUSTERS);
    assert_eq!(client.poll_one(&mut server).as_deref(), Some("C c@2"));
    assert_eq!(client.stream.poll_timeout(), None);
}
