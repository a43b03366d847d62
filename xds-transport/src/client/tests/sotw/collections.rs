//! Globs and the wildcard: when they are answered, complete or empty.

use super::*;

#[test]
fn rule_102_members_of_a_glob_come_and_go_with_the_full_state() {
    let mut client = clusters(&[GLOB]);
    let update = client.accept(&sotw(CDS, "v1", "n1", &[(MEMBER_A, "1"), (MEMBER_B, "1"), ("plain", "1")]));
    assert_eq!((changed_names(&update), answered(&update)), (vec![MEMBER_A, MEMBER_B], vec![GLOB]));
    let update = client.accept(&sotw(CDS, "v2", "n2", &[]));
    assert_eq!(removed(&update), [MEMBER_A, MEMBER_B]);
}

#[test]
fn rule_102_an_empty_glob_is_known_by_a_full_state_or_by_time() {
    let mut client = clusters(&[GLOB]);
    let update = client.accept(&sotw(CDS, "v1", "n1", &[]));
    assert_eq!((answered(&update), complete(&update)), (vec![GLOB], vec![GLOB]));

    let mut client = endpoints(&[GLOB]);
    client.accept(&sotw(EDS, "v1", "n1", &[]));
    client.advance(15);
    let update = client.update().unwrap();
    assert_eq!((answered(&update), complete(&update), removed(&update)), (vec![GLOB], vec![], vec![]));
    client.reconnect();
    client.sotw();
    client.advance(15);
    assert!(client.update().is_none(), "known from the stream before");
}

/// A full state may have been written before the request was read that asks for more.
#[test]
fn rule_151_a_full_state_that_may_be_older_than_the_request_is_not_complete() {
    let mut client = clusters(&["a"]);
    client.subscribe(CDS, &["*", GLOB]);
    client.sotw();
    let update = client.accept(&sotw(CDS, "v1", "n1", &[("a", "1")]));
    assert_eq!((answered(&update), complete(&update)), (vec!["*", GLOB], vec![]));
    client.sotw();
    let update = client.accept(&sotw(CDS, "v2", "n2", &[("a", "1"), ("b", "1")]));
    assert_eq!((answered(&update), complete(&update)), (vec![], vec!["*", GLOB]));
}

#[test]
fn rule_150_to_a_relay_no_time_answers_a_collection() {
    for (of, glob) in [(EDS, GLOB), (CDS, GLOB), (EDS, "*")] {
        let mut client = Client::new(Protocol::Sotw);
        client.stream = client.stream.with_silence(Silence::IsNoAnswer);
        client.subscribe(of, &["a", glob]);
        client.connect();
        client.sotw();
        client.advance(3600);
        assert!(client.update().is_none());
        // Nor after a response that holds nothing of it.
        client.accept(&sotw(of, "v1", "n1", &[("a", "1")]));
        client.advance(3600);
        assert!(client.update().is_none());
    }
}
