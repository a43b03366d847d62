//! Slow readers, chunks and shared bodies: rules 128, 129, 131, 133, 134, 140.

use std::collections::BTreeSet;

use prost::Message;
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::DeltaDiscoveryResponse;
use xds_transport::{Frame, Protocol};

use crate::support::{Ask, CLUSTERS, Client, ENDPOINTS, Server, payload};

#[test]
fn rule_128_what_changed_often_is_sent_once_and_newest() {
    let mut server = Server::with(ENDPOINTS, &["a", "b"]);
    let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
    delta.subscribe(&mut server, ENDPOINTS, &["a", "b"]);
    sotw.names(&mut server, ENDPOINTS, &["a", "b"]);
    delta.ack(&mut server, ENDPOINTS);
    sotw.ack(&mut server, ENDPOINTS);
    server.woken.clear();
    for version in 2..1000 {
        server.put(ENDPOINTS, "a", &version.to_string());
    }
    assert_eq!(server.woken.len(), 2, "each is woken once");
    assert_eq!(delta.poll(&mut server), ["E a@999"]);
    assert_eq!(sotw.poll(&mut server), ["E a@999"]);
}

#[test]
fn rule_128_one_client_that_does_not_read_is_nothing_to_the_others() {
    let mut server = Server::with(ENDPOINTS, &["a"]);
    let mut stalled = Client::delta();
    stalled.try_send(&mut server, Ask { of: ENDPOINTS, subscribe: &["a"], ..Ask::default() }.encode()).unwrap();
    let mut reader = Client::delta();
    reader.subscribe(&mut server, ENDPOINTS, &["a"]);
    for version in 2..100 {
        server.put(ENDPOINTS, "a", &version.to_string());
        assert_eq!(reader.settle(&mut server), [format!("E a@{version}")]);
    }
    assert_eq!(stalled.poll(&mut server), ["E a@99"]);
}

#[test]
fn rule_129_sotw_has_one_response_in_flight() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    for version in 2..12 {
        server.put(CLUSTERS, "a", &version.to_string());
        assert!(client.poll(&mut server).is_empty());
    }
    assert_eq!(client.ack(&mut server, CLUSTERS), ["C a@11"]);
}

#[test]
fn rule_129_delta_has_eight_responses_in_flight() {
    let mut server = Server::with(CLUSTERS, &["a"]);
    let mut client = Client::delta();
    client.subscribe(&mut server, CLUSTERS, &[]);
    for version in 2..30 {
        server.put(CLUSTERS, "a", &version.to_string());
        client.poll(&mut server);
    }
    assert_eq!(client.delta.len(), 8);
    // Rule 22: an answer to the last answers them all.
    assert_eq!(client.ack(&mut server, CLUSTERS), ["C a@29"]);
    for version in 30..60 {
        server.put(CLUSTERS, "a", &version.to_string());
        client.poll(&mut server);
    }
    assert_eq!(client.delta.len(), 16);
}

#[test]
fn rule_131_a_large_resource_is_sent_whole_and_as_it_is() {
    let mut server = Server::origin();
    let frame = Frame::of_message(&CLUSTERS.into(), &payload("big", &"x".repeat(20 << 20)));
    server.put_frame(CLUSTERS, "big", "1", frame.clone());
    let mut client = Client::delta();
    client.try_send(&mut server, Ask { of: CLUSTERS, ..Ask::default() }.encode()).unwrap();
    let mut transmit = client.stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap();
    assert!(transmit.remaining() > 20 << 20);
    let chunks: Vec<_> = std::iter::from_fn(|| transmit.next_chunk()).collect();
    assert_eq!(transmit.remaining(), 0);
    assert!(chunks.iter().any(|chunk| chunk.as_ptr() == frame.any().as_ptr()), "no copy of the body");
    let response = DeltaDiscoveryResponse::decode(chunks.concat().as_slice()).unwrap();
    assert_eq!(response.resources[0].resource.as_ref().unwrap().encode_to_vec(), *frame.any());
}

#[test]
fn rule_140_what_is_short_is_one_chunk_before_a_large_body_and_nothing_is_behind_it() {
    let mut server = Server::origin();
    let frame = Frame::of_message(&ENDPOINTS.into(), &payload("a", &"x".repeat(10 << 10)));
    server.put(ENDPOINTS, "a", "1");
    let (mut delta, mut sotw) = (Client::delta(), Client::sotw());
    delta.subscribe(&mut server, ENDPOINTS, &["a"]);
    sotw.names(&mut server, ENDPOINTS, &["a"]);
    for client in [&mut delta, &mut sotw] {
        client.ack(&mut server, ENDPOINTS);
    }
    server.put_frame(ENDPOINTS, "a", "2", frame.clone());
    for mut client in [delta, sotw] {
        let mut transmit = client.stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap();
        let mut chunks = vec![transmit.chunk_after(&[0; 5]).unwrap()];
        chunks.extend(std::iter::from_fn(|| transmit.next_chunk()));
        assert_eq!((chunks.len(), chunks[1].as_ptr()), (2, frame.any().as_ptr()));
    }
}

#[test]
fn rule_133_delta_responses_are_split_by_size() {
    const BUDGET: usize = 256 * 1024;
    let mut server = Server::origin();
    for n in 0..100 {
        let frame = Frame::of_message(&ENDPOINTS.into(), &payload(&n.to_string(), &"x".repeat(10_000)));
        server.put_frame(ENDPOINTS, &n.to_string(), "1", frame);
    }
    let mut client = Client::delta();
    client.subscribe(&mut server, ENDPOINTS, &["*"]);
    client.settle(&mut server);
    assert_eq!(client.delta.iter().map(|response| response.resources.len()).sum::<usize>(), 100);
    assert_eq!(client.delta.len(), 4);
    for response in &client.delta {
        assert!(response.encoded_len() < BUDGET + 11_000, "one resource past the budget at most");
    }
}

#[test]
fn rule_037_nothing_follows_the_last_part_of_an_answer() {
    let glob = "xdstp://x/T/d/*";
    let mut server = Server::origin();
    let frame = Frame::of_message(&ENDPOINTS.into(), &payload("a", &"x".repeat(300_000)));
    server.put_frame(ENDPOINTS, "xdstp://x/T/d/1", "1", frame);
    let mut client = Client::delta();
    client.subscribe(&mut server, ENDPOINTS, &[glob]);
    assert_eq!(client.delta.len(), 1, "one resource fills a response, and is the answer");
    // That a name is left between the parts changes nothing.
    let mut client = Client::delta();
    client.try_send(&mut server, Ask { of: ENDPOINTS, subscribe: &[glob], ..Ask::default() }.encode()).unwrap();
    client.poll_one(&mut server).unwrap();
    client.try_send(&mut server, Ask { of: ENDPOINTS, subscribe: &["b"], ..Ask::default() }.encode()).unwrap();
    client.try_send(&mut server, Ask { of: ENDPOINTS, unsubscribe: &["b"], ..Ask::default() }.encode()).unwrap();
    assert_eq!(client.poll(&mut server), [""; 0]);
    // What is asked for between the parts has an answer of its own.
    let mut client = Client::delta();
    client.try_send(&mut server, Ask { of: ENDPOINTS, subscribe: &[glob], ..Ask::default() }.encode()).unwrap();
    client.poll_one(&mut server).unwrap();
    assert_eq!(client.subscribe(&mut server, ENDPOINTS, &["*"]), ["E"]);
}

#[test]
fn rule_133_sotw_responses_are_split_by_size_where_each_resource_may_come_alone() {
    let mut server = Server::origin();
    for of in [ENDPOINTS, CLUSTERS] {
        for n in 0..550 {
            let frame = Frame::of_message(&of.into(), &payload(&format!("{n:03}"), &"x".repeat(10_000)));
            server.put_frame(of, &format!("{n:03}"), "1", frame);
        }
    }
    let names: Vec<_> = (0..550).map(|n| format!("{n:03}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut client = Client::sotw();
    client.names(&mut server, ENDPOINTS, &names);
    // Rule 129: the next part waits for the ACK of the one before.
    assert_eq!(client.sotw.len(), 1);
    client.settle(&mut server);
    assert_eq!(client.sotw.iter().map(|response| response.resources.len()).sum::<usize>(), 550);
    assert!(client.sotw.len() > 20 && client.sotw.iter().all(|response| response.encoded_len() < 256 * 1024 + 11_000));
    let versions: BTreeSet<_> = client.sotw.iter().map(|response| &response.version_info).collect();
    assert_eq!(versions.len(), 1, "the version is of all that it asked for");
    // A full state is one response, however large.
    let mut client = Client::sotw();
    client.names(&mut server, CLUSTERS, &[]);
    client.settle(&mut server);
    assert_eq!(client.sotw.iter().map(|response| response.resources.len()).collect::<Vec<_>>(), [550]);
}

#[test]
fn rule_133_names_that_are_none_are_told_in_parts_too() {
    let names: Vec<_> = (0..60).map(|n| format!("xdstp:{n:02}{}", "x".repeat(10_000))).collect();
    let mut client = Client::delta();
    client.subscribe(&mut Server::origin(), ENDPOINTS, &names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(client.delta.iter().map(|response| response.removed_resources.len()).sum::<usize>(), 60);
    assert!(client.delta.len() > 2 && client.delta.iter().all(|response| response.encoded_len() < 256 * 1024 + 11_000));
}

/// Who sends no more sends no ACKs: what it asked for goes out without.
#[test]
fn who_sends_no_more_is_sent_every_part_without_an_ack() {
    for mut client in [Client::delta(), Client::sotw()] {
        let mut server = Server::origin();
        for n in 0..550 {
            let frame = Frame::of_message(&ENDPOINTS.into(), &payload(&format!("{n:03}"), &"x".repeat(10_000)));
            server.put_frame(ENDPOINTS, &format!("{n:03}"), "1", frame);
        }
        let names: Vec<_> = (0..550).map(|n| format!("{n:03}")).collect();
        client.want(&mut server, ENDPOINTS, &names.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(client.delta.len() + client.sotw.len() < 10);
        client.stream.half_closed();
        client.poll(&mut server);
        let delta = client.delta.iter().map(|response| response.resources.len());
        let sotw = client.sotw.iter().map(|response| response.resources.len());
        assert_eq!(delta.chain(sotw).sum::<usize>(), 550, "{:?}", client.stream.protocol());
    }
}

#[test]
fn rule_134_additions_go_before_removals() {
    let mut server = Server::origin();
    for n in 0..100 {
        server.put(ENDPOINTS, &format!("old{n}"), "1");
    }
    let mut client = Client::delta();
    client.subscribe(&mut server, ENDPOINTS, &["*"]);
    client.settle(&mut server);
    for n in 0..100 {
        server.remove(ENDPOINTS, &format!("old{n}"));
        let frame = Frame::of_message(&ENDPOINTS.into(), &payload("", &"x".repeat(10_000)));
        server.put_frame(ENDPOINTS, &format!("new{n}"), "1", frame);
    }
    let first = client.delta.len();
    client.settle(&mut server);
    let responses = &client.delta[first..];
    let last_addition = responses.iter().rposition(|response| !response.resources.is_empty()).unwrap();
    let first_removal = responses.iter().position(|response| !response.removed_resources.is_empty()).unwrap();
    assert!(responses.len() > 3 && last_addition <= first_removal);
    assert_eq!(responses.iter().map(|response| response.removed_resources.len()).sum::<usize>(), 100);
}

#[test]
fn rule_140_all_clients_share_one_body() {
    let mut server = Server::origin();
    let frame = Frame::of_message(&CLUSTERS.into(), &payload("a", &"x".repeat(8192)));
    server.put_frame(CLUSTERS, "a", "1", frame.clone());
    for mut client in [Client::delta(), Client::delta(), Client::sotw(), Client::sotw()] {
        match client.stream.protocol() {
            Protocol::Delta => {
                client.try_send(&mut server, Ask { of: CLUSTERS, ..Ask::default() }.encode()).unwrap();
            }
            Protocol::Sotw => {
                let request = xds_transport::wire::DiscoveryRequest { type_url: CLUSTERS.into(), ..Default::default() };
                client.try_send(&mut server, request.encode_to_vec().into()).unwrap();
            }
        }
        let mut transmit = client.stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap();
        let shared = std::iter::from_fn(|| transmit.next_chunk()).any(|chunk| chunk.as_ptr() == frame.any().as_ptr());
        assert!(shared);
    }
}

#[test]
fn rule_133_a_response_that_is_full_to_the_byte_takes_no_more() {
    // Each a quarter of what a response holds: 4 bytes go with a name that is none.
    let names: Vec<_> = (0..5).map(|n| format!("xdstp:{n}{}", "x".repeat(64 * 1024 - 11))).collect();
    let mut client = Client::delta();
    client.subscribe(&mut Server::origin(), ENDPOINTS, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let counts: Vec<_> = client.delta.iter().map(|response| response.removed_resources.len()).collect();
    assert_eq!(counts, [4, 1]);
}

#[test]
fn no_chunk_is_longer_than_what_a_frame_holds() {
    const FRAME: usize = 16 * 1024;
    let names: Vec<_> = (0..100).map(|n| format!("xdstp:{n:02}{}", "x".repeat(1000))).collect();
    let mut server = Server::origin();
    let mut stream = Stream::new(Protocol::Delta, Settings::default());
    let subscribe: Vec<_> = names.iter().map(String::as_str).collect();
    let ask = Ask { of: ENDPOINTS, subscribe: &subscribe, ..Ask::default() }.encode();
    stream.handle_message(server.now, ask, &mut server.cache).unwrap();
    let mut transmit = stream.poll_transmit(server.now, &mut server.cache).unwrap().unwrap();
    let chunks: Vec<_> = std::iter::from_fn(|| transmit.next_chunk()).map(|chunk| chunk.len()).collect();
    let (last, full) = chunks.split_last().unwrap();
    assert!(full.len() > 5 && *last <= FRAME && full.iter().all(|length| *length == FRAME), "{chunks:?}");
}
