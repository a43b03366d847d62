//! Wildcards, in and out of them.

use crate::conformance::check::{Check, Done, expect};
use crate::conformance::client::{Client, mentions, times};
use crate::conformance::lab::Lab;
use crate::conformance::messages::{Ask, Said};
use crate::conformance::method::{ADS, ALL, DELTA_ADS, SOTW_ADS};
use crate::conformance::resources::Of;

pub(crate) const CHECKS: &[Check] = &[
    check!(
        39,
        "wildcards",
        ALL,
        asterisk,
        "`*` is everything",
        "a client that asks for everything beside names gets the names alone"
    ),
    check!(
        40,
        "wildcards",
        SOTW_ADS,
        until_the_first_name,
        "no names mean everything until the first name, and nothing after it",
        "a client that gave up its last name is sent everything"
    ),
    check!(
        41,
        "wildcards",
        ADS,
        only_some_types,
        "endpoints have no wildcard without names",
        "Envoy logs `Ignoring unwatched type URL` and asks again (envoy #10046)"
    ),
    check!(
        43,
        "wildcards",
        SOTW_ADS,
        sotw_steps,
        "a SotW stream steps in and out of the wildcard",
        "clients hold what they gave up, or lose what they want"
    ),
    check!(
        44,
        "wildcards",
        DELTA_ADS,
        delta_steps,
        "a delta stream steps in and out of the wildcard",
        "clients hold what they gave up, or lose what they want"
    ),
    check!(
        45,
        "wildcards",
        DELTA_ADS,
        leaving_the_unknown,
        "to leave an unknown name does not end the wildcard",
        "Envoy's superfluous unsubscribe ends its updates"
    ),
    check!(
        46,
        "wildcards",
        SOTW_ADS,
        no_endpoints_left,
        "a stream that opens with no endpoints, at a version, is answered with silence",
        "Envoy without clusters and the server turn a tight loop"
    ),
    check!(
        47,
        "wildcards",
        DELTA_ADS,
        everything_and_nothing,
        "`*` subscribed and left in one request is a subscription to nothing",
        "ztunnel, which fetches on demand, is sent the whole mesh"
    ),
    check!(
        86,
        "wildcards",
        ALL,
        empty_wildcard,
        "a wildcard is answered, be there anything or not",
        "Envoy waits 15 s for its first listeners when there are none"
    ),
];

const C: Of = Of::Cluster;
const E: Of = Of::Endpoints;

async fn asterisk(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(C, &a, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &["*"]).await?;
    client.told(C, &[(&a, 1)]).await?;
    lab.put(&[(C, &b, 1)]).await?;
    client.told(C, &[(&b, 1)]).await.map(|_| ())
}

/// What comes of a type after the client gave it up, and everything of it changes.
async fn after(lab: &mut Lab, client: &mut Client, of: Of, changes: &[(Of, &str, u32)]) -> Done<Vec<Said>> {
    lab.barrier(client).await?;
    client.heard(of).await?;
    lab.put(changes).await?;
    lab.barrier(client).await?;
    client.heard(of).await
}

async fn until_the_first_name(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(C, &a, 1), (C, &b, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[]).await?;
    client.told(C, &[(&a, 1), (&b, 1)]).await?;
    client.want(C, &[&a]).await?;
    client.want(C, &[]).await?;
    let seen = after(lab, &mut client, C, &[(C, &a, 2), (C, &b, 2)]).await?;
    expect(!mentions(&seen, &a) && !mentions(&seen, &b), "nothing", "what was given up")
}

async fn only_some_types(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[]).await?;
    lab.barrier(&mut client).await?;
    lab.put(&[(E, &a, 2)]).await?;
    lab.barrier(&mut client).await?;
    let seen = client.heard(E).await?;
    expect(!mentions(&seen, &a), "no endpoints", format!("{a}, which nobody asked for"))
}

async fn sotw_steps(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(C, &a, 1), (C, &b, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[]).await?;
    client.told(C, &[(&a, 1), (&b, 1)]).await?;
    client.want(C, &["*", &a]).await?;
    lab.put(&[(C, &a, 2), (C, &b, 2)]).await?;
    client.told(C, &[(&a, 2), (&b, 2)]).await?;
    client.want(C, &[&a]).await?;
    lab.barrier(&mut client).await?;
    lab.put(&[(C, &a, 3), (C, &b, 3)]).await?;
    let seen = client.told(C, &[(&a, 3)]).await?;
    let is_left = !seen.iter().any(|said| said.has_content(&b, 3));
    expect(is_left, format!("{a} and nothing else, after `*` was left"), format!("{b} too"))?;
    client.want(C, &[]).await?;
    let seen = after(lab, &mut client, C, &[(C, &a, 4), (C, &b, 4)]).await?;
    expect(!mentions(&seen, &a) && !mentions(&seen, &b), "nothing, after the last name was left", "what was given up")
}

async fn delta_steps(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(C, &a, 1), (C, &b, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[]).await?;
    client.told(C, &[(&a, 1), (&b, 1)]).await?;
    let ask = || Ask { type_url: C.type_url().into(), ..Ask::default() };
    client.send(Ask { names: vec![a.clone()], ..ask() }).await?;
    lab.barrier(&mut client).await?;
    lab.put(&[(C, &a, 2), (C, &b, 2)]).await?;
    client.told(C, &[(&a, 2), (&b, 2)]).await?;
    client.send(Ask { leave: vec!["*".into()], ..ask() }).await?;
    lab.barrier(&mut client).await?;
    lab.put(&[(C, &a, 3), (C, &b, 3)]).await?;
    let seen = client.told(C, &[(&a, 3)]).await?;
    let is_left = !seen.iter().any(|said| said.has_content(&b, 3));
    expect(is_left, format!("{a} and nothing else, after `*` was left"), format!("{b} too"))?;
    client.send(Ask { leave: vec![a.clone()], ..ask() }).await?;
    let seen = after(lab, &mut client, C, &[(C, &a, 4), (C, &b, 4)]).await?;
    expect(!mentions(&seen, &a) && !mentions(&seen, &b), "nothing, after the last name was left", "what was given up")
}

async fn leaving_the_unknown(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(C, &a, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[]).await?;
    client.told(C, &[(&a, 1)]).await?;
    client.send(Ask { type_url: C.type_url().into(), leave: vec![lab.name("nope")], ..Ask::default() }).await?;
    lab.barrier(&mut client).await?;
    lab.put(&[(C, &b, 1)]).await?;
    client.told(C, &[(&b, 1)]).await.map(|_| ())
}

async fn no_endpoints_left(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.send(Ask { type_url: E.type_url().into(), version: "e1".into(), ..Ask::default() }).await?;
    lab.barrier(&mut client).await?;
    lab.put(&[(E, &a, 2)]).await?;
    lab.barrier(&mut client).await?;
    let seen = client.heard(E).await?;
    expect(seen.is_empty(), "silence", "a response")
}

async fn everything_and_nothing(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(C, &a, 1), (C, &b, 1)]).await?;
    let mut client = lab.open(C);
    let all = vec!["*".to_owned()];
    client.send(Ask { type_url: C.type_url().into(), names: all.clone(), leave: all, ..Ask::default() }).await?;
    lab.barrier(&mut client).await?;
    lab.put(&[(C, &b, 2)]).await?;
    lab.barrier(&mut client).await?;
    let seen = client.heard(C).await?;
    expect(seen.iter().all(|said| said.resources.is_empty()), "nothing", "resources")?;
    client.want(C, &[&a]).await?;
    let seen = client.told(C, &[(&a, 1)]).await?;
    expect(times(&seen, &b) == 0, format!("{a} alone"), format!("{b} too"))
}

async fn empty_wildcard(lab: &mut Lab) -> Done {
    let mut client = lab.open(Of::Listener);
    client.want(Of::Listener, &[]).await?;
    client.next(Of::Listener, "a response, with what listeners there are").await.map(|_| ())
}
