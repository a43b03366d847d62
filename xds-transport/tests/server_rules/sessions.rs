//! What an admin page is shown of a stream's sessions.

use xds_transport::server::Tally;

use crate::support::{CLUSTERS, Client, ENDPOINTS, LISTENERS, Server, seconds};

#[test]
fn a_session_shows_whether_it_asked_for_everything() {
    for mut client in [Client::delta(), Client::sotw()] {
        let mut server = Server::origin();
        client.want(&mut server, CLUSTERS, &[]);
        client.want(&mut server, ENDPOINTS, &["a"]);
        client.want(&mut server, LISTENERS, &["a", "*"]);
        let shown: Vec<_> =
            client.stream.sessions().map(|session| (session.type_url.as_str(), session.wildcard)).collect();
        assert_eq!(shown, [(CLUSTERS, true), (ENDPOINTS, false), (LISTENERS, true)], "{:?}", client.stream.protocol());
    }
}

#[test]
fn what_a_session_did_is_counted_from_its_first_request_on() {
    for mut client in [Client::delta(), Client::sotw()] {
        let mut server = Server::with(CLUSTERS, &["a"]);
        client.want(&mut server, CLUSTERS, &["a"]);
        client.ack(&mut server, CLUSTERS);
        let Tally { requests, responses, resources, acks, nacks, .. } =
            client.stream.sessions().next().unwrap().tally.clone();
        assert_eq!((requests, responses, resources, acks, nacks), (2, 1, 1, 1, 0), "{:?}", client.stream.protocol());
    }
}

#[test]
fn what_sessions_did_adds_up_and_the_last_rejection_stays() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    server.put(ENDPOINTS, "e", "1");
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &["a", "b", "gone"]);
    client.nack(&mut server, CLUSTERS);
    server.now += seconds(1);
    client.subscribe(&mut server, ENDPOINTS, &["e"]);
    client.ack(&mut server, ENDPOINTS);
    server.put(ENDPOINTS, "e", "2");
    client.poll(&mut server);
    client.nack(&mut server, ENDPOINTS);
    let tallies: Vec<_> = client.stream.sessions().map(|session| session.tally.clone()).collect();
    for order in [[0, 1], [1, 0]] {
        let mut sum = Tally::default();
        order.iter().for_each(|at| sum.add(&tallies[*at]));
        assert_eq!((sum.requests, sum.responses, sum.resources, sum.removed, sum.acks, sum.nacks), (5, 3, 4, 1, 1, 2));
        assert_eq!(sum.bytes, tallies[0].bytes + tallies[1].bytes);
        assert_eq!(sum.last_nack.unwrap().at, server.now);
    }
}
