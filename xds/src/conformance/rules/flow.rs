//! What is under way, and how large it may be.

use crate::conformance::adapter::Change;
use crate::conformance::check::{Check, Done, expect};
use crate::conformance::lab::Lab;
use crate::conformance::messages::{Ask, Said};
use crate::conformance::method::{ADS, DELTA_ADS, SOTW, SOTW_ADS};
use crate::conformance::resources::{Item, Of};

pub(crate) const CHECKS: &[Check] = &[
    check!(
        128,
        "flow",
        SOTW,
        newest,
        "a slow client is sent the newest state, once",
        "a client that was slow works through all that was missed, and gets slower"
    ),
    check!(
        129,
        "flow",
        SOTW_ADS,
        one_in_flight,
        "over SotW one response is in flight",
        "names that the client changes meanwhile are lost (envoy #10363)"
    ),
    check!(
        131,
        "size",
        ADS,
        large,
        "responses may be larger than 4 MiB",
        "a fleet grows until no client can start (envoy #36169, grpc-go #5790)"
    ),
    check!(
        132,
        "size",
        DELTA_ADS,
        large_request,
        "requests may be larger than 4 MiB",
        "a proxy that holds much cannot come back (envoy gateway #9564)"
    ),
    check!(
        133,
        "size",
        DELTA_ADS,
        split,
        "delta responses are split by size",
        "gRPC clients refuse what is larger than 4 MiB, and ask again for the same"
    ),
];

const C: Of = Of::Cluster;
const E: Of = Of::Endpoints;

async fn newest(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    let first = client.next(E, "endpoints").await?;
    for content in 2..=6 {
        lab.put(&[(E, &a, content)]).await?;
    }
    client.ack(&first).await?;
    let next = client.next(E, &format!("{a}=6")).await?;
    expect(next.has_content(&a, 6), format!("{a}=6"), next.line())
}

async fn one_in_flight(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    let first = client.next(E, "endpoints").await?;
    for content in 2..=4 {
        lab.put(&[(E, &a, content)]).await?;
    }
    lab.barrier(&mut client).await?;
    let early = client.strangers().filter(|said| said.is_of(E)).count();
    expect(early == 0, "nothing before the ACK", format!("{early} responses"))?;
    client.ack(&first).await?;
    client.told(E, &[(&a, 4)]).await.map(|_| ())
}

async fn large(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    let put = vec![Item { padding: 5 << 20, ..Item::new(C, a.as_str(), 1) }];
    lab.change(Change { put, remove: Vec::new() }).await?;
    let mut client = lab.open(C);
    client.want(C, &[&a]).await?;
    client.told(C, &[(&a, 1)]).await.map(|_| ())
}

async fn large_request(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(C, &a, 1)]).await?;
    let filler = "x".repeat(1000);
    let held = |n: usize| (lab.name(&format!("{filler}{n}")), "0".repeat(64));
    let holds: Vec<_> = (0..4500).map(held).collect();
    let mut client = lab.open(C);
    client.send(Ask { type_url: C.type_url().into(), names: vec![a.clone()], holds, ..Ask::default() }).await?;
    client.told(C, &[(&a, 1)]).await.map(|_| ())
}

async fn split(lab: &mut Lab) -> Done {
    let names: Vec<_> = (0..6).map(|n| lab.name(&format!("part-{n}"))).collect();
    let item = |name: &String| Item { padding: 1 << 20, ..Item::new(C, name.as_str(), 1) };
    lab.change(Change { put: names.iter().map(item).collect(), remove: Vec::new() }).await?;
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut client = lab.open(C);
    client.want(C, &names).await?;
    let all: Vec<_> = names.iter().map(|name| (*name, 1)).collect();
    let seen = client.told(C, &all).await?;
    let largest = seen.iter().map(|said: &Said| said.size).max().unwrap_or_default();
    expect(largest < 4 << 20, "responses of less than 4 MiB", format!("one of {largest} bytes"))
}
