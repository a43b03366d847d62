//! Streams that failed.

use xds_transport::server::ProtocolError;

use crate::support::{Ask, CLUSTERS, Client, Server, seconds};

#[test]
fn what_is_no_request_ends_the_stream() {
    let mut server = Server::origin();
    for mut client in [Client::delta(), Client::sotw()] {
        let error = client.try_send(&mut server, b"\x0a\xff".as_slice().into()).unwrap_err();
        assert!(matches!(error, ProtocolError::Malformed(_)) && error.code() == 3);
    }
}

/// Nobody can tell what a client wants whose request was not understood.
#[test]
fn a_stream_that_failed_stays_failed_and_sends_nothing() {
    for mut client in [Client::delta(), Client::sotw()] {
        let mut server = Server::with(CLUSTERS, &["a"]);
        assert_eq!(client.want(&mut server, CLUSTERS, &[]), ["C a@1"]);
        let fatal = client.try_send(&mut server, b"\x0a\xff".as_slice().into()).unwrap_err();
        server.put(CLUSTERS, "a", "2");
        for _ in 0..2 {
            let again = Ask { of: CLUSTERS, subscribe: &["a"], ..Ask::default() }.encode();
            assert_eq!(client.try_send(&mut server, again.clone()).unwrap_err(), fatal);
            let Server { cache, now, .. } = &mut server;
            let stream = &mut client.stream;
            assert_eq!(stream.handle_quickly(*now, again, cache).unwrap_err(), fatal);
            assert!(!stream.leaves_work(*now, cache) && !stream.has_work(cache));
            assert_eq!(stream.poll_timeout(), None);
            assert_eq!(stream.poll_transmit(*now, cache).unwrap_err(), fatal);
            server.now += seconds(3600);
        }
        client.stream.close(&mut server.cache);
        assert_eq!(server.cache.subscriber_count(), 0);
    }
}

/// What ends a stream in time is no less an end.
#[test]
fn rule_093_a_stream_that_was_too_old_is_so_for_ever() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::delta();
    client.stream.end_at(server.now + seconds(10));
    client.want(&mut server, CLUSTERS, &[]);
    server.now += seconds(10);
    assert_eq!(client.stream.poll_transmit(server.now, &mut server.cache).unwrap_err(), ProtocolError::Aged);
    let again = Ask { of: CLUSTERS, subscribe: &["a"], ..Ask::default() }.encode();
    assert_eq!(client.try_send(&mut server, again).unwrap_err(), ProtocolError::Aged);
}
