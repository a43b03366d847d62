//! Changing a subscription, and what is sent for it.

use crate::conformance::check::{Check, Done, expect};
use crate::conformance::client::{mentions, times};
use crate::conformance::lab::Lab;
use crate::conformance::messages::Ask;
use crate::conformance::method::{ADS, ALL, DELTA, DELTA_ADS, SOTW};
use crate::conformance::resources::Of;

pub(crate) const CHECKS: &[Check] = &[
    check!(
        48,
        "subscriptions",
        DELTA,
        again,
        "what is subscribed again is sent again",
        "Envoy and gRPC drop what they gave up, ask anew, and wait for ever (go-control-plane #1450)"
    ),
    check!(
        48,
        "subscriptions",
        DELTA,
        wildcard_again,
        "a wildcard that is subscribed again is sent again",
        "a client that lost its state gets nothing of it back"
    ),
    check!(
        50,
        "subscriptions",
        DELTA,
        leaving_nothing,
        "to leave what was never subscribed is ignored",
        "Envoy's superfluous unsubscribe breaks the stream"
    ),
    check!(51, "subscriptions", DELTA, leaving, "to leave is not answered", "a client is sent what it just dropped"),
    check!(
        52,
        "subscriptions",
        DELTA,
        leaving_under_wildcard,
        "to leave a name under the wildcard is answered",
        "Envoy keeps a resource of which it does not know whether it is there"
    ),
    check!(
        54,
        "subscriptions",
        DELTA,
        coming_back,
        "what was left and is subscribed again is sent again",
        "a cluster that comes back has no endpoints (go-control-plane #431)"
    ),
    check!(
        55,
        "subscriptions",
        SOTW,
        sotw_coming_back,
        "over SotW a name that leaves and comes back is sent again",
        "gRPC channels that come back never get ready (grpc-java #9632)"
    ),
    check!(
        56,
        "subscriptions",
        SOTW,
        new_names,
        "over SotW names that are new are sent, whatever the version",
        "the second cluster of a client warms for ever (go-control-plane #431)"
    ),
    check!(
        57,
        "subscriptions",
        ADS,
        leaving_all,
        "who left every name is sent nothing of the type",
        "clients are sent what they have no use for"
    ),
    check!(
        63,
        "subscriptions",
        ALL,
        nothing_else,
        "what is not subscribed is not sent",
        "clients receive, parse and drop the whole fleet's configuration"
    ),
    check!(
        64,
        "subscriptions",
        ALL,
        many,
        "many names in a request, and many requests before a response, are taken",
        "large proxies do not start"
    ),
    check!(
        65,
        "subscriptions",
        ALL,
        created_later,
        "a name that does not exist is remembered, and sent when it does",
        "what is created after who needs it never arrives (envoy #31071)"
    ),
    check!(
        85,
        "subscriptions",
        DELTA,
        late_versions,
        "versions in a later request are ignored",
        "what a client dropped is thought to be there"
    ),
    check!(
        126,
        "subscriptions",
        ALL,
        some_names,
        "some names are answered for some names",
        "Envoy warms for ever: in its ADS mode go-control-plane is silent until all are asked for (#426, #63)"
    ),
    check!(
        22,
        "subscriptions",
        DELTA_ADS,
        unsubscribed_in_an_ack,
        "an ACK may leave names, too",
        "what was left is sent for ever"
    ),
];

const C: Of = Of::Cluster;
const E: Of = Of::Endpoints;

fn ask(of: Of) -> Ask {
    Ask { type_url: of.type_url().into(), ..Ask::default() }
}

async fn again(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    client.told(E, &[(&a, 1)]).await?;
    client.send(Ask { names: vec![a.clone()], ..ask(E) }).await?;
    client.until(E, &format!("{a} again"), |said| said.has_content(&a, 1)).await.map(|_| ())
}

async fn wildcard_again(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(C, &a, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &["*"]).await?;
    client.told(C, &[(&a, 1)]).await?;
    client.send(Ask { names: vec!["*".into()], ..ask(C) }).await?;
    client.until(C, &format!("{a} again"), |said| said.has_content(&a, 1)).await.map(|_| ())
}

async fn leaving_nothing(lab: &mut Lab) -> Done {
    let [a, nope] = lab.names(["a", "nope"]);
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.send(Ask { names: Vec::new(), leave: vec![nope.clone()], ..ask(E) }).await?;
    client.want(E, &[&a]).await?;
    let seen = client.told(E, &[(&a, 1)]).await?;
    expect(!mentions(&seen, &nope), "nothing of what was left", nope)
}

async fn leaving(lab: &mut Lab) -> Done {
    let [a, b, marker] = [lab.name("a"), lab.name("b"), lab.marker()];
    lab.start(&[(E, &a, 1), (E, &b, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a, &marker]).await?;
    client.told(E, &[(&a, 1), (&marker, 1)]).await?;
    client.want(E, &[&marker]).await?;
    // It was read when this is answered.
    client.want(E, &[&marker, &b]).await?;
    let mut seen = client.told(E, &[(&b, 1)]).await?;
    lab.put(&[(E, &a, 2)]).await?;
    seen.extend(lab.mark(&mut client, E).await?);
    expect(!mentions(&seen, &a), "nothing of what was left", a)
}

async fn leaving_under_wildcard(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(C, &a, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &["*", &a, &b]).await?;
    client.told(C, &[(&a, 1)]).await?;
    client.send(Ask { leave: vec![a.clone()], ..ask(C) }).await?;
    client.until(C, &format!("{a}, which the wildcard has"), |said| said.has_content(&a, 1)).await?;
    client.send(Ask { leave: vec![b.clone()], ..ask(C) }).await?;
    client.until(C, &format!("{b} as removed"), |said| said.removes(&b)).await.map(|_| ())
}

async fn coming_back(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    client.told(E, &[(&a, 1)]).await?;
    client.want(E, &[]).await?;
    client.want(E, &[&a]).await?;
    client.told(E, &[(&a, 1)]).await.map(|_| ())
}

async fn sotw_coming_back(lab: &mut Lab) -> Done {
    let [a, b, c] = lab.names(["a", "b", "c"]);
    lab.put(&[(E, &a, 1), (E, &b, 1), (E, &c, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a, &b]).await?;
    client.told(E, &[(&a, 1), (&b, 1)]).await?;
    // Its answer shows that it was read.
    client.want(E, &[&b, &c]).await?;
    client.told(E, &[(&c, 1)]).await?;
    client.want(E, &[&a, &b, &c]).await?;
    client.told(E, &[(&a, 1)]).await.map(|_| ())
}

async fn new_names(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    for of in [E, C] {
        lab.put(&[(of, &a, 1), (of, &b, 1)]).await?;
        let mut client = lab.open(of);
        client.want(of, &[&a]).await?;
        client.told(of, &[(&a, 1)]).await?;
        client.want(of, &[&a, &b]).await?;
        client.told(of, &[(&b, 1)]).await?;
    }
    Ok(())
}

async fn leaving_all(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    for of in [E, C] {
        lab.put(&[(of, &a, 1)]).await?;
        let mut client = lab.open(of);
        client.want(of, &[&a]).await?;
        client.told(of, &[(&a, 1)]).await?;
        client.want(of, &[]).await?;
        lab.barrier(&mut client).await?;
        client.heard(of).await?;
        lab.put(&[(of, &a, 2)]).await?;
        lab.barrier(&mut client).await?;
        let seen = client.heard(of).await?;
        expect(!mentions(&seen, &a), "nothing", format!("{a}, which was left"))?;
    }
    Ok(())
}

async fn nothing_else(lab: &mut Lab) -> Done {
    let [a, b, marker] = [lab.name("a"), lab.name("b"), lab.marker()];
    for of in [E, C] {
        lab.start(&[(of, &a, 1), (of, &b, 1)]).await?;
        let mut client = lab.open(of);
        client.want(of, &[&a, &marker]).await?;
        let mut seen = client.told(of, &[(&a, 1)]).await?;
        lab.put(&[(of, &b, 2), (of, &a, 2)]).await?;
        seen.extend(client.told(of, &[(&a, 2)]).await?);
        seen.extend(lab.mark(&mut client, of).await?);
        let others = seen.iter().flat_map(|said| &said.resources).find(|got| got.name != a && got.name != marker);
        expect(others.is_none(), format!("{a} and {marker}"), others.map(|got| &*got.name).unwrap_or_default())?;
    }
    Ok(())
}

async fn many(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(E, &a, 1), (E, &b, 1)]).await?;
    let names: Vec<_> = (0..NAMES).map(|n| lab.name(&format!("missing-{n}"))).collect();
    let mut names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut client = lab.open(E);
    client.want(E, &names).await?;
    names.push(&a);
    client.want(E, &names).await?;
    names.push(&b);
    client.want(E, &names).await?;
    client.told(E, &[(&a, 1), (&b, 1)]).await.map(|_| ())
}

/// How many names a client asks for that do not exist.
const NAMES: usize = 1000;

async fn created_later(lab: &mut Lab) -> Done {
    let [a, later] = lab.names(["a", "later"]);
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a, &later]).await?;
    client.told(E, &[(&a, 1)]).await?;
    lab.put(&[(E, &later, 1)]).await?;
    client.told(E, &[(&later, 1)]).await.map(|_| ())
}

async fn late_versions(lab: &mut Lab) -> Done {
    let [a, b, gone] = lab.names(["a", "b", "gone"]);
    let of = Of::Listener;
    lab.put(&[(of, &a, 1), (of, &b, 1)]).await?;
    let mut client = lab.open(of);
    client.want(of, &[&a, &b]).await?;
    let seen = client.told(of, &[(&a, 1), (&b, 1)]).await?;
    let version = seen.iter().find_map(|said| said.got(&b)).map(|got| got.version.clone()).unwrap_or_default();
    client.want(of, &[&a]).await?;
    let holds = vec![(b.clone(), version), (gone.clone(), "1".into())];
    client.send(Ask { names: vec![b.clone()], holds, ..ask(of) }).await?;
    let seen = client.told(of, &[(&b, 1)]).await?;
    expect(!mentions(&seen, &gone), format!("{b} alone"), format!("{gone}, of which only the versions speak"))
}

async fn some_names(lab: &mut Lab) -> Done {
    let [a, b, missing] = lab.names(["a", "b", "missing"]);
    lab.put(&[(E, &a, 1), (E, &b, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a, &missing]).await?;
    let seen = client.told(E, &[(&a, 1)]).await?;
    expect(times(&seen, &b) == 0, format!("{a} alone"), format!("{b} too"))
}

async fn unsubscribed_in_an_ack(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    let first = client.next(E, "endpoints").await?;
    client.send(Ask { leave: vec![a.clone()], nonce: first.nonce, ..ask(E) }).await?;
    lab.barrier(&mut client).await?;
    lab.put(&[(E, &a, 2)]).await?;
    lab.barrier(&mut client).await?;
    let seen = client.heard(E).await?;
    expect(!mentions(&seen, &a), "nothing", format!("{a}, which was left"))
}
