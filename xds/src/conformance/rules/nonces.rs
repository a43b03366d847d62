//! Nonces, versions, ACK and NACK.

use std::collections::BTreeSet;

use crate::conformance::check::{Check, Done, Stop, expect};
use crate::conformance::client::{Client, mentions, times};
use crate::conformance::lab::Lab;
use crate::conformance::messages::{Ask, Said};
use crate::conformance::method::{ADS, ALL, DELTA, DELTA_ADS, SOTW};
use crate::conformance::resources::Of;

pub(crate) const CHECKS: &[Check] = &[
    check!(
        13,
        "nonces",
        ALL,
        nonces,
        "nonces are not empty and do not repeat on a stream",
        "an ACK may be of any of several responses"
    ),
    check!(
        16,
        "nonces",
        SOTW,
        stale_nonce,
        "over SotW a request with a stale nonce is not answered",
        "client and server answer each other's old messages without end"
    ),
    check!(
        17,
        "nonces",
        SOTW,
        crossing_names,
        "names that a response crossed are not lost",
        "Envoy asks for endpoints while a response is under way, and warms for ever (envoy #10363)"
    ),
    check!(
        18,
        "nonces",
        SOTW,
        no_nonce,
        "a SotW request without a nonce is stale after a response, and supersedes before",
        "a subscription that was given up is served"
    ),
    check!(
        19,
        "nonces",
        DELTA,
        delta_nonce,
        "over delta a nonce never gates a subscription",
        "Envoy subscribes in an ACK of something older, and is never served (envoy #16659)"
    ),
    check!(
        21,
        "nonces",
        SOTW,
        version_is_no_verdict,
        "a NACK is an error detail, and never a version",
        "what was accepted is sent again"
    ),
    check!(
        22,
        "nonces",
        ALL,
        ack_and_change,
        "one request may be ACK and change of the subscription",
        "Envoy waits for what it asked for in an ACK"
    ),
    check!(
        23,
        "nonces",
        ADS,
        nack_is_remembered,
        "what was refused is not sent again until it changes",
        "server and client turn a hot loop of responses and NACKs (go-control-plane #962, #46)"
    ),
    check!(
        24,
        "nonces",
        ALL,
        nack_of_old,
        "a NACK of what is old already is answered with what is new",
        "a client that refused a broken version never gets the mended one"
    ),
    check!(
        27,
        "nonces",
        ADS,
        any_code,
        "an error detail of any code is a NACK",
        "Envoy's NACK has code 13, gRPC's 3: one of them is taken for an ACK, or ends the stream"
    ),
    check!(
        31,
        "nonces",
        DELTA_ADS,
        good_beside_bad,
        "after a NACK each resource is sent again only when it changes",
        "the good ones of a refused response are never updated, or sent again and again"
    ),
    check!(
        33,
        "nonces",
        SOTW,
        sotw_version,
        "a SotW version changes with the content",
        "clients that compare versions keep what is old"
    ),
    check!(
        35,
        "nonces",
        DELTA,
        resource_version,
        "a resource has one version for all streams",
        "every reconnect sends everything again"
    ),
    check!(
        37,
        "nonces",
        ALL,
        equal_content,
        "equal content is not sent again",
        "every deployment of the same configuration is parsed by the whole fleet"
    ),
];

const E: Of = Of::Endpoints;

async fn nonces(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    let mut all = client.told(E, &[(&a, 1)]).await?;
    for content in 2..6 {
        lab.put(&[(E, &a, content)]).await?;
        all.extend(client.told(E, &[(&a, content)]).await?);
    }
    let nonces: Vec<_> = all.iter().map(|said| &*said.nonce).collect();
    let distinct: BTreeSet<_> = nonces.iter().filter(|nonce| !nonce.is_empty()).collect();
    expect(distinct.len() == nonces.len(), "a nonce for each response", format!("{nonces:?}"))
}

async fn stale_nonce(lab: &mut Lab) -> Done {
    let [a, b, c] = lab.names(["a", "b", "c"]);
    lab.put(&[(E, &a, 1), (E, &b, 1), (E, &c, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    let stale = nonce(&client.told(E, &[(&a, 1)]).await?);
    lab.put(&[(E, &a, 2)]).await?;
    client.told(E, &[(&a, 2)]).await?;
    let names = vec![a.clone(), b.clone()];
    client.send(Ask { names, nonce: stale, ..client.ask(E) }).await?;
    let mut seen = lab.read_by_now(&mut client, (E, &a, 3)).await?;
    // It is read behind that.
    client.want(E, &[&a, &c]).await?;
    seen.extend(client.told(E, &[(&c, 1)]).await?);
    expect(!mentions(&seen, &b), "no answer to the stale request", format!("{b}, which only that names"))
}

fn nonce(said: &[Said]) -> String {
    said.last().map(|said| said.nonce.clone()).unwrap_or_default()
}

async fn crossing_names(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(E, &a, 1), (E, &b, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    let crossed = client.next(E, "endpoints").await?;
    // As if it had been sent before that came: and the ACK behind it.
    let names = vec![a.clone(), b.clone()];
    client.send(Ask { names, nonce: String::new(), ..client.ask(E) }).await?;
    client.want(E, &[&a, &b]).await?;
    if crossed.has(&b) { Ok(()) } else { client.told(E, &[(&b, 1)]).await.map(|_| ()) }
}

async fn no_nonce(lab: &mut Lab) -> Done {
    let [a, b, c] = lab.names(["a", "b", "c"]);
    lab.put(&[(E, &a, 1), (E, &b, 1), (E, &c, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    // Whether or not the response crosses this, its ACK has these names.
    client.want(E, &[&b]).await?;
    client.told(E, &[(&b, 1)]).await?;
    let names = vec![a.clone(), b.clone()];
    client.send(Ask { names, nonce: String::new(), ..client.ask(E) }).await?;
    let mut seen = lab.read_by_now(&mut client, (E, &b, 2)).await?;
    client.want(E, &[&b, &c]).await?;
    seen.extend(client.told(E, &[(&c, 1)]).await?);
    expect(!mentions(&seen, &a), "no answer to the request without a nonce", format!("{a}, which only that names"))
}

async fn delta_nonce(lab: &mut Lab) -> Done {
    let [a, b, c] = lab.names(["a", "b", "c"]);
    lab.put(&[(E, &a, 1), (E, &b, 1), (E, &c, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    let first = nonce(&client.told(E, &[(&a, 1)]).await?);
    lab.put(&[(E, &a, 2)]).await?;
    client.next(E, "endpoints").await?;
    let mut subscribe = async |nonce: &str, name: &str| {
        client.send(Ask { names: vec![name.into()], nonce: nonce.into(), ..client.ask(E) }).await?;
        client.told(E, &[(name, 1)]).await
    };
    subscribe(&first, &b).await?;
    subscribe("never was one", &c).await.map(|_| ())
}

async fn version_is_no_verdict(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(E, &a, 1), (E, &b, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    client.next(E, "endpoints").await?;
    // Accepted, in the words of who accepted nothing before.
    client.send(Ask { version: String::new(), ..client.ask(E) }).await?;
    client.want(E, &[&a, &b]).await?;
    let seen = client.told(E, &[(&b, 1)]).await?;
    let (beside, alone): (Vec<_>, Vec<_>) = seen.into_iter().partition(|said| said.has(&b));
    expect(times(&alone, &a) == 0, format!("{b} alone"), format!("{a} again, which was accepted"))?;
    if times(&beside, &a) > 0 {
        return Err(sends_all(&format!("whether {a} is sent again for its version")));
    }
    Ok(())
}

/// Over SotW a server may send of endpoints what changed, and need not: clients bear all that they asked for.
pub(super) fn sends_all(unseen: &str) -> Stop {
    Stop::inconclusive(format!("the server sends all endpoints with each change, which it may: not seen {unseen}"))
}

async fn ack_and_change(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(E, &a, 1), (E, &b, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    let first = client.next(E, "endpoints").await?;
    let names = if lab.method.is_sotw() { vec![a.clone(), b.clone()] } else { vec![b.clone()] };
    client.send(Ask { names, nonce: first.nonce, version: first.version, ..client.ask(E) }).await?;
    client.told(E, &[(&b, 1)]).await.map(|_| ())
}

/// Asks for names and refuses what comes, until all were there.
async fn refuse(client: &mut Client, names: &[&str], code: i32) -> Done {
    let mut missing = names.to_vec();
    while !missing.is_empty() {
        let said = client.next(E, &format!("endpoints {}", missing.join(" "))).await?;
        missing.retain(|name| !said.has(name));
        client.nack_with(&said, code).await?;
    }
    Ok(())
}

async fn nack_is_remembered(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    refuse(&mut client, &[&a], 3).await?;
    // The NACK was read, and what came of it is there before the second answer.
    lab.barrier(&mut client).await?;
    lab.barrier(&mut client).await?;
    let seen = client.heard(E).await?;
    expect(times(&seen, &a) == 0, "nothing until it changes", format!("{a} again"))?;
    lab.put(&[(E, &a, 2)]).await?;
    client.told(E, &[(&a, 2)]).await.map(|_| ())
}

async fn nack_of_old(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    let old = client.next(E, "endpoints").await?;
    lab.put(&[(E, &a, 2)]).await?;
    client.nack(&old).await?;
    client.told(E, &[(&a, 2)]).await.map(|_| ())
}

async fn any_code(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    for (content, code) in [(2, 13), (3, 99), (4, 0)] {
        refuse(&mut client, &[&a], code).await?;
        lab.barrier(&mut client).await?;
        let again = client.heard(E).await?;
        expect(times(&again, &a) == 0, format!("nothing after a NACK of code {code}"), format!("{a} again"))?;
        lab.put(&[(E, &a, content)]).await?;
    }
    client.told(E, &[(&a, 4)]).await.map(|_| ())
}

async fn good_beside_bad(lab: &mut Lab) -> Done {
    let [good, bad] = lab.names(["good", "bad"]);
    lab.put(&[(E, &good, 1), (E, &bad, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&good, &bad]).await?;
    refuse(&mut client, &[&good, &bad], 3).await?;
    lab.barrier(&mut client).await?;
    let again = client.heard(E).await?;
    expect(again.is_empty(), "nothing until something changes", "a response")?;
    lab.put(&[(E, &good, 2)]).await?;
    let seen = client.told(E, &[(&good, 2)]).await?;
    expect(times(&seen, &bad) == 0, format!("{good} alone"), format!("{bad} again, which did not change"))
}

async fn sotw_version(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(Of::Cluster, &a, 1), (Of::Cluster, &b, 1)]).await?;
    let mut client = lab.open(Of::Cluster);
    client.want(Of::Cluster, &[&a, &b]).await?;
    let mut all = client.told(Of::Cluster, &[(&a, 1), (&b, 1)]).await?;
    for content in [2, 3] {
        lab.put(&[(Of::Cluster, &a, content)]).await?;
        all.extend(client.told(Of::Cluster, &[(&a, content)]).await?);
    }
    let content = |said: &Said| {
        let mut content: Vec<_> = said.resources.iter().map(|got| (got.name.clone(), got.content)).collect();
        content.sort();
        content
    };
    for (one, other) in all.iter().zip(all.iter().skip(1)) {
        let differs = one.version != other.version && !one.version.is_empty() && !other.version.is_empty();
        let seen = format!("{:?} and {:?}", one.version, other.version);
        expect(differs || content(one) == content(other), "another version for another content", seen)?;
    }
    Ok(())
}

async fn resource_version(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut versions = Vec::new();
    for _ in 0..2 {
        let mut client = lab.open(E);
        client.want(E, &[&a]).await?;
        let seen = client.told(E, &[(&a, 1)]).await?;
        versions.extend(seen.iter().filter_map(|said| said.got(&a)).map(|got| got.version.clone()));
    }
    let (first, last) = (versions.first(), versions.last());
    let is_one = first == last && first.is_some_and(|version| !version.is_empty());
    expect(is_one, "one version on both streams", format!("{versions:?}"))
}

async fn equal_content(lab: &mut Lab) -> Done {
    let [a, marker] = [lab.name("a"), lab.marker()];
    lab.start(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a, &marker]).await?;
    client.told(E, &[(&a, 1), (&marker, 1)]).await?;
    lab.put(&[(E, &a, 1)]).await?;
    let seen = lab.mark(&mut client, E).await?;
    // The last has the marker as it is now.
    let alone = seen.split_last().map_or(&[][..], |(_, alone)| alone);
    let all = lab.method.is_sotw() && times(&seen, &a) > 0;
    if all && times(alone, &a) == 0 {
        return Err(sends_all("whether equal content alone is sent"));
    }
    expect(times(&seen, &a) == 0, "the marker, which changed", format!("{a} again, which did not"))
}
