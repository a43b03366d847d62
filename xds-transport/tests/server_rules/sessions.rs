//! What an admin page is shown of a stream's sessions.

use xds_transport::Protocol;
use xds_transport::server::{Reception, Tally};

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

/// What CSDS shows of a client: each resource as its answers leave it.
#[test]
fn a_session_shows_what_its_client_accepted_and_what_it_refused() {
    for mut client in [Client::delta(), Client::sotw()] {
        let mut server = Server::with(ENDPOINTS, &["a", "b"]);
        let shown = |client: &Client| {
            let session = client.stream.sessions().next().unwrap();
            let told = ["a", "b"].map(|name| match session.reception(&name.parse().unwrap()) {
                Reception::Unanswered => "?".to_owned(),
                Reception::Refused { nonce } => format!("!{nonce}"),
                Reception::Accepted => "+".to_owned(),
                _ => unreachable!(),
            });
            (told.concat(), session.accepted.map(|mark| mark.nonce))
        };
        client.want(&mut server, ENDPOINTS, &["a", "b"]);
        assert_eq!(shown(&client), ("??".into(), None));
        client.ack(&mut server, ENDPOINTS);
        assert_eq!(shown(&client), ("++".into(), Some(1)));
        server.put(ENDPOINTS, "b", "2");
        client.poll(&mut server);
        assert_eq!(shown(&client), ("+?".into(), Some(1)));
        client.nack(&mut server, ENDPOINTS);
        assert_eq!(shown(&client), ("+!2".into(), Some(1)));
        let nack = client.stream.sessions().next().unwrap().tally.last_nack.clone().unwrap();
        assert_eq!((nack.nonce, nack.at), (2, server.now));
        server.put(ENDPOINTS, "a", "2");
        client.poll(&mut server);
        client.ack(&mut server, ENDPOINTS);
        assert_eq!(shown(&client), ("+!2".into(), Some(3)), "another is as it was");
        server.put(ENDPOINTS, "b", "3");
        client.poll(&mut server);
        client.ack(&mut server, ENDPOINTS);
        assert_eq!(shown(&client), ("++".into(), Some(4)));
    }
}

/// Which of so many were refused is not kept of all.
#[test]
fn of_thousands_that_are_refused_none_seems_accepted() {
    let names: Vec<_> = (0..5000).map(|number| number.to_string()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut server = Server::with(ENDPOINTS, &names);
    // Each answer is for one response.
    let mut client = Client::sotw();
    client.want(&mut server, ENDPOINTS, &names);
    let receptions = |client: &Client| {
        let session = client.stream.sessions().next().unwrap();
        names.iter().map(|name| session.reception(&name.parse().unwrap())).collect::<Vec<_>>()
    };
    loop {
        if client.nack(&mut server, ENDPOINTS).is_empty() {
            break;
        }
    }
    let told = receptions(&client);
    assert!(told.iter().all(|reception| matches!(reception, Reception::Refused { .. } | Reception::Unknown)));
    assert!(told.contains(&Reception::Unknown), "there is a bound");
    // What comes after it is known again.
    for name in ["0", "4999"] {
        server.put(ENDPOINTS, name, "2");
    }
    client.poll(&mut server);
    client.ack(&mut server, ENDPOINTS);
    let told = receptions(&client);
    assert_eq!((told[0], told[4999]), (Reception::Accepted, Reception::Accepted));
}

/// Of what is gone nothing is refused any more, whatever comes under its name.
#[test]
fn what_was_refused_and_is_gone_is_not_shown_as_refused() {
    for mut client in [Client::delta(), Client::sotw()] {
        let mut server = Server::with(ENDPOINTS, &["a"]);
        client.want(&mut server, ENDPOINTS, &["a"]);
        client.nack(&mut server, ENDPOINTS);
        let is_refused = |client: &Client| {
            let reception = client.stream.sessions().next().unwrap().reception(&"a".parse().unwrap());
            matches!(reception, Reception::Refused { .. })
        };
        assert!(is_refused(&client));
        server.remove(ENDPOINTS, "a");
        client.poll(&mut server);
        assert!(!is_refused(&client), "{:?}", client.stream.protocol());
        if client.stream.protocol() == Protocol::Delta {
            // What has an error is told as gone by that.
            server.put(ENDPOINTS, "a", "2");
            client.poll(&mut server);
            client.nack(&mut server, ENDPOINTS);
            assert!(is_refused(&client));
            server.remove(ENDPOINTS, "a");
            server.fail(ENDPOINTS, "a", 7);
            assert_eq!(client.poll(&mut server), ["E -a !a:7"]);
            assert!(!is_refused(&client));
        }
    }
}

/// A full state is accepted or refused as a whole, and its version with it.
#[test]
fn a_full_state_is_shown_as_accepted_by_its_version() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    let mut client = Client::sotw();
    client.want(&mut server, CLUSTERS, &[]);
    let version = |client: &Client| client.stream.sessions().next().unwrap().accepted_version().map(str::to_owned);
    let reception = |client: &Client| client.stream.sessions().next().unwrap().reception(&"a".parse().unwrap());
    assert_eq!((version(&client), reception(&client)), (None, Reception::Unanswered));
    client.ack(&mut server, CLUSTERS);
    let first = client.sotw[0].version_info.clone();
    assert_eq!((version(&client), reception(&client)), (Some(first.clone()), Reception::Accepted));
    server.put(CLUSTERS, "b", "2");
    client.poll(&mut server);
    client.nack(&mut server, CLUSTERS);
    assert_eq!(version(&client), Some(first));
    assert!(matches!(reception(&client), Reception::Refused { nonce: 2 }), "nobody knows which of them it is for");
    server.put(CLUSTERS, "b", "3");
    client.poll(&mut server);
    client.ack(&mut server, CLUSTERS);
    let last = client.sotw[2].version_info.clone();
    assert_eq!((version(&client), reception(&client)), (Some(last), Reception::Accepted));
}

#[test]
fn a_session_shows_since_when_a_response_is_not_answered() {
    for mut client in [Client::delta(), Client::sotw()] {
        let mut server = Server::with(CLUSTERS, &["a"]);
        let unanswered = |client: &Client| client.stream.sessions().next().unwrap().unanswered_since;
        client.want(&mut server, CLUSTERS, &["a"]);
        assert_eq!(unanswered(&client), Some(server.now), "{:?}", client.stream.protocol());
        client.ack(&mut server, CLUSTERS);
        assert_eq!(unanswered(&client), None);
    }
}
