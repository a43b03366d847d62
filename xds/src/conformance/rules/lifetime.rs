//! The wrapper, and what lives for a time.

use std::time::{Duration, Instant};

use crate::conformance::adapter::Change;
use crate::conformance::check::{Check, Done, Stop, expect};
use crate::conformance::client::Client;
use crate::conformance::lab::Lab;
use crate::conformance::messages::{Got, Said};
use crate::conformance::method::{ALL, DELTA_ADS, SOTW, SOTW_ADS};
use crate::conformance::resources::{Item, Of};

pub(crate) const CHECKS: &[Check] = &[
    check!(
        110,
        "wrapper",
        SOTW,
        bare,
        "a SotW resource is wrapped only for who says that it understands that",
        "older gRPC and Envoy refuse the whole response"
    ),
    check!(
        110,
        "ttl",
        ALL,
        no_ttl,
        "a TTL is told only to who says that it understands one",
        "clients forget what nobody refreshes for them"
    ),
    check!(
        111,
        "ttl",
        DELTA_ADS,
        refreshed,
        "what lives for a time is refreshed before that is over",
        "Envoy drops what is still there"
    ),
    check!(
        112,
        "ttl",
        DELTA_ADS,
        heartbeat,
        "a delta heartbeat is name, version and TTL",
        "Envoy refuses it: `type URL  embedded in an individual Any`"
    ),
    check!(
        113,
        "ttl",
        SOTW_ADS,
        full_refresh,
        "SotW clusters have no heartbeats: a refresh is the full state, with all that is in it",
        "Envoy deletes that cluster and all others (go-control-plane)"
    ),
];

const C: Of = Of::Cluster;
const E: Of = Of::Endpoints;

const WRAPPER: &str = "xds.config.resource-in-sotw";
const TTL: &str = "xds.config.supports-resource-ttl";
/// For how long something lives, in seconds.
const LIFE: u32 = 3;

async fn put_for_a_time(lab: &mut Lab, of: Of, name: &str) -> Done {
    let put = vec![Item { ttl: Some(LIFE), ..Item::new(of, name, 1) }];
    lab.change(Change { put, remove: Vec::new() }).await
}

async fn bare(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    for of in [C, E] {
        lab.put(&[(of, &a, 1)]).await?;
        let mut client = lab.open(of);
        client.want(of, &[&a]).await?;
        let seen = client.told(of, &[(&a, 1)]).await?;
        let is_bare = seen.iter().flat_map(|said| &said.resources).all(|got| !got.is_wrapped);
        expect(is_bare, format!("{} as they are", of.short()), "a wrapper")?;
    }
    Ok(())
}

async fn no_ttl(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    put_for_a_time(lab, E, &a).await?;
    let mut client = lab.open_by(lab.method, E, &[WRAPPER]);
    client.want(E, &[&a]).await?;
    let seen = client.told(E, &[(&a, 1)]).await?;
    let ttl = seen.iter().filter_map(|said| said.got(&a)).find_map(|got| got.ttl);
    expect(ttl.is_none(), "no TTL", format!("{ttl:?}"))
}

/// A client that was told of a resource that lives for a time, and how.
async fn told_of(lab: &mut Lab, name: &str) -> Done<(Client, Got)> {
    put_for_a_time(lab, E, name).await?;
    let mut client = lab.open_by(lab.method, E, &[TTL]);
    client.want(E, &[name]).await?;
    let seen = client.told(E, &[(name, 1)]).await?;
    match seen.iter().rev().find_map(|said| said.got(name)).filter(|got| got.ttl.is_some()) {
        Some(got) => Ok((client, got.clone())),
        None => Err(Stop::inconclusive("the server tells no TTL, so nothing is due")),
    }
}

async fn refreshed(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    let (mut client, _) = told_of(lab, &a).await?;
    let start = Instant::now();
    client.until(E, &format!("a refresh of {a}"), |said| said.has(&a)).await?;
    let life = Duration::from_secs(LIFE.into());
    expect(
        start.elapsed() < life,
        format!("a refresh of {a} within {life:?}"),
        format!("one after {:?}", start.elapsed()),
    )
}

async fn heartbeat(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    let (mut client, told) = told_of(lab, &a).await?;
    let seen = client.until(E, &format!("a heartbeat of {a}"), |said| said.has(&a)).await?;
    let beat = seen.last().and_then(|said| said.got(&a)).cloned().unwrap_or_default();
    let is_one = beat.version == told.version && beat.ttl.is_some();
    expect(is_one, format!("the version {} and a TTL", told.version), format!("{:?} {:?}", beat.version, beat.ttl))?;
    expect(beat.body.is_none(), "no content, which did not change", "the content again")
}

async fn full_refresh(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(C, &b, 1)]).await?;
    put_for_a_time(lab, C, &a).await?;
    let mut client = lab.open_by(lab.method, C, &[WRAPPER, TTL]);
    client.want(C, &[&a, &b]).await?;
    let seen = client.told(C, &[(&a, 1), (&b, 1)]).await?;
    if !seen.iter().filter_map(|said| said.got(&a)).any(|got| got.ttl.is_some()) {
        // Rule 114: which is as well.
        return Ok(());
    }
    let seen = client.until(C, "a refresh", |said: &Said| said.has(&a)).await?;
    let is_full = |said: &Said| [&a, &b].iter().all(|name| said.got(name).is_some_and(|got| got.body.is_some()));
    expect(seen.last().is_some_and(is_full), format!("{a} and {b}, with what is in them"), "a part of that")
}
