//! What a client brings along.

use crate::conformance::check::{Check, Done, expect};
use crate::conformance::client::{mentions, times};
use crate::conformance::lab::Lab;
use crate::conformance::messages::{Ask, Said};
use crate::conformance::method::{ALL, DELTA, SOTW};
use crate::conformance::resources::Of;

pub(crate) const CHECKS: &[Check] = &[
    check!(
        35,
        "reconnect",
        DELTA,
        nothing_again,
        "who comes back and holds what there is is sent nothing of it again",
        "every reconnect of a fleet sends everything to everybody"
    ),
    check!(
        49,
        "reconnect",
        DELTA,
        endpoints_again,
        "endpoints that are asked for by name are sent though the client holds them",
        "clusters of an Envoy that comes back have no endpoints: 503 (envoy #22418)"
    ),
    check!(
        84,
        "reconnect",
        DELTA,
        gone_by_name,
        "what of a client's versions is gone, or not wanted, is removed in the first answers",
        "what was deleted while a client was away stays there for ever (istio #41494)"
    ),
    check!(
        84,
        "reconnect",
        DELTA,
        gone_by_wildcard,
        "so it is under a wildcard, and what changed is sent",
        "what was deleted while a client was away stays there for ever (istio #41494)"
    ),
    check!(
        87,
        "reconnect",
        SOTW,
        by_name_again,
        "over SotW names that are asked for at the current version are sent again",
        "a gRPC client that comes back with its version has nothing, and waits"
    ),
    check!(
        88,
        "reconnect",
        ALL,
        old_nonce,
        "a nonce of another stream means nothing",
        "a client that keeps its nonce over a reconnect is not answered (envoy #30155)"
    ),
];

const C: Of = Of::Cluster;
const E: Of = Of::Endpoints;

/// The versions in which names were sent last.
fn versions(seen: &[Said], names: &[&str]) -> Vec<(String, String)> {
    let last = |name: &str| seen.iter().rev().find_map(|said| said.got(name)).map(|got| got.version.clone());
    names.iter().map(|name| ((*name).to_owned(), last(name).unwrap_or_default())).collect()
}

/// The versions that a client holds which is gone now: of names, each with content 1, that it asked for so.
async fn held(lab: &mut Lab, of: Of, wanted: &[&str], names: &[&str]) -> Done<Vec<(String, String)>> {
    let contents: Vec<_> = names.iter().map(|name| (*name, 1)).collect();
    let mut client = lab.open(of);
    client.want(of, wanted).await?;
    Ok(versions(&client.told(of, &contents).await?, names))
}

async fn nothing_again(lab: &mut Lab) -> Done {
    let [a, marker] = [lab.name("a"), lab.marker()];
    lab.start(&[(C, &a, 1)]).await?;
    let holds = held(lab, C, &[], &[&a, &marker]).await?;
    let mut client = lab.open(C);
    client.send(Ask { type_url: C.type_url().into(), holds, ..Ask::default() }).await?;
    let seen = lab.mark(&mut client, C).await?;
    expect(times(&seen, &a) == 0, "the marker, which changed", format!("{a} again"))
}

async fn endpoints_again(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let holds = held(lab, E, &[&a], &[&a]).await?;
    let mut client = lab.open(E);
    client.send(Ask { type_url: E.type_url().into(), names: vec![a.clone()], holds, ..Ask::default() }).await?;
    client.told(E, &[(&a, 1)]).await.map(|_| ())
}

async fn gone_by_name(lab: &mut Lab) -> Done {
    let [a, b, c] = lab.names(["a", "b", "c"]);
    lab.put(&[(C, &a, 1), (C, &b, 1), (C, &c, 1)]).await?;
    let holds = held(lab, C, &[&a, &b, &c], &[&a, &b, &c]).await?;
    lab.remove(C, &b).await?;
    let mut client = lab.open(C);
    // c is there, and not wanted any more.
    let names = vec![a.clone(), b.clone()];
    client.send(Ask { type_url: C.type_url().into(), names, holds, ..Ask::default() }).await?;
    let mut missing = vec![&b, &c];
    let is_it = |said: &Said| {
        missing.retain(|name| !said.removes(name));
        missing.is_empty()
    };
    let seen = client.until(C, &format!("{b} and {c} as removed"), is_it).await?;
    expect(!seen.iter().any(|said| said.removes(&a)), format!("{a} left alone"), "its removal")
}

async fn gone_by_wildcard(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(C, &a, 1), (C, &b, 1)]).await?;
    let holds = held(lab, C, &[], &[&a, &b]).await?;
    lab.remove(C, &b).await?;
    lab.put(&[(C, &a, 2)]).await?;
    let mut client = lab.open(C);
    client.send(Ask { type_url: C.type_url().into(), holds, ..Ask::default() }).await?;
    let (mut has_a, mut lost_b) = (false, false);
    let is_it = |said: &Said| {
        has_a |= said.has_content(&a, 2);
        lost_b |= said.removes(&b);
        has_a && lost_b
    };
    client.until(C, &format!("{a}=2, and {b} as removed"), is_it).await.map(|_| ())
}

async fn by_name_again(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    for of in [E, C] {
        lab.put(&[(of, &a, 1)]).await?;
        let mut client = lab.open(of);
        client.want(of, &[&a]).await?;
        let seen = client.told(of, &[(&a, 1)]).await?;
        let version = seen.last().map(|said| said.version.clone()).unwrap_or_default();
        let mut client = lab.open(of);
        let names = vec![a.clone()];
        client.send(Ask { type_url: of.type_url().into(), names, version, ..Ask::default() }).await?;
        client.told(of, &[(&a, 1)]).await?;
    }
    Ok(())
}

async fn old_nonce(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(E, &a, 1), (E, &b, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    let nonce = client.next(E, "endpoints").await?.nonce;
    drop(client);
    let mut client = lab.open(E);
    client.send(Ask { type_url: E.type_url().into(), names: vec![a.clone()], nonce, ..Ask::default() }).await?;
    let seen = client.told(E, &[(&a, 1)]).await?;
    expect(!mentions(&seen, &b), format!("{a} alone"), b)
}
