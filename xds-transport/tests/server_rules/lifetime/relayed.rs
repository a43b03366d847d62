//! What a relay says of a TTL that is another's: rule 148.

use super::*;

#[test]
fn rule_148_what_remains_of_a_ttl_is_passed_on_and_nothing_is_made_up() {
    let mut server = Server::relay();
    let start = server.now;
    let ttl = Some(seconds(60));
    let frame = Frame::of_message(&ENDPOINTS.into(), &payload("a", "1")).with_wrapper(Bytes::new(), ttl, false);
    server.put_frame(ENDPOINTS, "a", "1", frame.until(Some(start + seconds(60))));
    server.now += seconds(30);
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    assert_eq!(last(&client), [one("a", "1", Some(30), true)]);

    // The origin is silent, and so is the relay.
    let mut looks = 0;
    while let Some(due) = client.stream.poll_timeout().filter(|due| *due < start + seconds(45)) {
        server.now = due;
        assert!(client.poll(&mut server).is_empty());
        looks += 1;
        assert!(looks < 10);
    }
    // It speaks: the client is told at the next look.
    let held = server.cache.value_mut(&ENDPOINTS.into(), &"a".parse().unwrap()).unwrap();
    held.refresh(Some(seconds(60)), Some(start + seconds(105)));
    server.now = client.stream.poll_timeout().unwrap();
    assert!(server.now < start + seconds(60));
    assert_eq!(client.poll(&mut server).len(), 1);
    let remaining = (start + seconds(105) - server.now).as_secs() as i64;
    assert_eq!(last(&client), [one("a", "1", Some(remaining), false)]);
}

#[test]
fn rule_148_looking_for_news_ends_with_the_resource() {
    let mut server = Server::relay();
    let (start, ttl) = (server.now, Some(seconds(60)));
    let frame = Frame::of_message(&ENDPOINTS.into(), &payload("a", "1")).with_wrapper(Bytes::new(), ttl, false);
    server.put_frame(ENDPOINTS, "a", "1", frame.until(Some(start + seconds(60))));
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &["a"]);
    let mut looks = 0;
    while let Some(due) = client.stream.poll_timeout() {
        assert!(due < start + seconds(60));
        server.now = due;
        assert!(client.poll(&mut server).is_empty());
        looks += 1;
    }
    assert!(looks < 30, "{looks}");
}

#[test]
fn rule_148_a_response_that_is_refused_says_nothing_of_what_was_only_looked_at() {
    let mut server = Server::relay();
    let frame = Frame::of_message(&ENDPOINTS.into(), &payload("a", "1"));
    let frame = frame.with_wrapper(Bytes::new(), Some(seconds(60)), false);
    server.put_frame(ENDPOINTS, "a", "1", frame.until(Some(server.now + seconds(60))));
    server.put(ENDPOINTS, "b", "1");
    let mut client = Client::delta().with_features(&FEATURES);
    client.subscribe(&mut server, ENDPOINTS, &["a", "b"]);
    client.ack(&mut server, ENDPOINTS);
    server.now = client.stream.poll_timeout().unwrap();
    assert!(client.poll(&mut server).is_empty(), "its origin is silent");
    server.put(ENDPOINTS, "b", "2");
    assert_eq!(client.poll(&mut server), ["E b@2"]);
    client.nack(&mut server, ENDPOINTS);
    assert!(client.stream.poll_timeout().is_some(), "the client has it, and it may live on");
}
