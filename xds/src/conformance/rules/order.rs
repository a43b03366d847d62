//! The order of what is sent.

use crate::conformance::adapter::Change;
use crate::conformance::check::{Check, Done, Stop, expect};
use crate::conformance::client::{Client, mentions};
use crate::conformance::lab::Lab;
use crate::conformance::messages::Said;
use crate::conformance::method::{ADS, DELTA, DELTA_ADS};
use crate::conformance::resources::{Item, Of};

pub(crate) const CHECKS: &[Check] = &[
    check!(
        122,
        "order",
        ADS,
        make,
        "one change goes out in order: clusters, endpoints, listeners, routes",
        "Envoy answers with 503 for as long as it has routes to clusters that are yet to come"
    ),
    check!(
        122,
        "order",
        ADS,
        before_break,
        "clusters that are not used any more go after the routes that used them",
        "Envoy answers with 503 for as long as its routes lead to what is gone"
    ),
    check!(
        123,
        "order",
        ADS,
        no_wait,
        "endpoints do not wait for the ACK of clusters",
        "Envoy acknowledges clusters when it has their endpoints: both wait 15 s"
    ),
    check!(
        124,
        "order",
        DELTA_ADS,
        endpoints_again,
        "a changed cluster is followed by its endpoints",
        "Envoy warms the changed cluster for 15 s (go-control-plane #245, envoy #13009)"
    ),
    check!(
        125,
        "order",
        ADS,
        no_routes,
        "a changed listener sends no routes",
        "every listener that changes sends all its routes"
    ),
    check!(
        134,
        "order",
        DELTA,
        additions_first,
        "additions go before removals",
        "what replaces something comes after that is gone"
    ),
];

const C: Of = Of::Cluster;
const E: Of = Of::Endpoints;
const L: Of = Of::Listener;
const R: Of = Of::Route;

/// A client that has one of each type, by this name.
async fn with_all(lab: &mut Lab, name: &str) -> Done<Client> {
    lab.put(&[C, E, L, R].map(|of| (of, name, 1))).await?;
    let mut client = lab.open(C);
    for of in [C, E, L, R] {
        client.want(of, &[name]).await?;
        client.told(of, &[(name, 1)]).await?;
    }
    Ok(client)
}

/// What comes of whatever type, each acknowledged, in its order, until all was there that is waited for.
async fn read(client: &mut Client, expected: &str, mut is_all: impl FnMut(&Said) -> bool) -> Done<Vec<Said>> {
    let mut seen = Vec::new();
    while seen.len() < MOST {
        let said = client.any(expected).await?;
        client.ack(&said).await?;
        let found = is_all(&said);
        seen.push(said);
        if found {
            return Ok(seen);
        }
    }
    Err(Stop::fail(expected, format!("{MOST} responses without it")))
}

/// How many responses are read for a change.
const MOST: usize = 100;

async fn make(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    let mut client = with_all(lab, &a).await?;
    lab.put(&[C, E, L, R].map(|of| (of, &*a, 2))).await?;
    let mut order = Vec::new();
    let is_all = |said: &Said| {
        let of = Of::of_type_url(&said.type_url).filter(|of| said.has_content(&a, 2) && !order.contains(of));
        order.extend(of);
        order.len() == 4
    };
    read(&mut client, &format!("{a}=2 of all four types"), is_all).await?;
    let shown: Vec<_> = order.iter().map(|of| of.short()).collect();
    expect(order == [C, E, L, R], "clusters, endpoints, listeners, routes", shown.join(", "))
}

async fn before_break(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    let mut client = with_all(lab, &a).await?;
    let put = vec![Item::new(L, a.as_str(), 2), Item::new(R, a.as_str(), 2)];
    lab.change(Change { put, remove: vec![(C, a.clone())] }).await?;
    let is_sotw = lab.method.is_sotw();
    let (mut routes, mut gone, mut early) = (false, false, false);
    let is_all = |said: &Said| {
        routes |= said.is_of(R) && said.has_content(&a, 2);
        let goes = said.is_of(C) && if is_sotw { !said.has(&a) } else { said.removes(&a) };
        early |= goes && !routes;
        gone |= goes;
        routes && gone
    };
    read(&mut client, &format!("routes {a}=2, and {a} of clusters gone"), is_all).await?;
    expect(!early, "the routes, and then the removal of the cluster", "the removal first")
}

async fn no_wait(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(C, &a, 1), (E, &a, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[&a]).await?;
    // Not acknowledged.
    client.next(C, "clusters").await?;
    client.want(E, &[&a]).await?;
    client.told(E, &[(&a, 1)]).await.map(|_| ())
}

async fn endpoints_again(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(C, &a, 1), (E, &a, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[&a]).await?;
    client.told(C, &[(&a, 1)]).await?;
    client.want(E, &[&a]).await?;
    client.told(E, &[(&a, 1)]).await?;
    lab.put(&[(C, &a, 2)]).await?;
    client.told(C, &[(&a, 2)]).await?;
    client.until(E, &format!("endpoints {a} again"), |said| said.has(&a)).await.map(|_| ())
}

async fn no_routes(lab: &mut Lab) -> Done {
    let [a, marker] = [lab.name("a"), lab.marker()];
    lab.start(&[(R, &a, 1)]).await?;
    lab.put(&[(L, &a, 1)]).await?;
    let mut client = lab.open(L);
    client.want(L, &[&a]).await?;
    client.told(L, &[(&a, 1)]).await?;
    client.want(R, &[&a, &marker]).await?;
    client.told(R, &[(&a, 1), (&marker, 1)]).await?;
    lab.put(&[(L, &a, 2)]).await?;
    client.told(L, &[(&a, 2)]).await?;
    let seen = lab.mark(&mut client, R).await?;
    expect(!mentions(&seen, &a), "no routes", format!("{a}, which did not change"))
}

async fn additions_first(lab: &mut Lab) -> Done {
    let [old, new] = lab.names(["old", "new"]);
    lab.put(&[(E, &old, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&old, &new]).await?;
    client.told(E, &[(&old, 1)]).await?;
    lab.change(Change { put: vec![Item::new(E, new.as_str(), 1)], remove: vec![(E, old.clone())] }).await?;
    let (mut came, mut early) = (false, false);
    let is_all = |said: &Said| {
        came |= said.has(&new);
        early |= said.removes(&old) && !came;
        came && (early || said.removes(&old))
    };
    client.until(E, &format!("{new}, and {old} as removed"), is_all).await?;
    expect(!early, format!("{new}, and then {old} as removed"), "the removal first")
}
