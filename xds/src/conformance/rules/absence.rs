//! What is gone, what never was, and what one response may hold.

use std::collections::BTreeSet;

use crate::conformance::check::{Check, Done, Stop, expect};
use crate::conformance::client::{mentions, times};
use crate::conformance::lab::Lab;
use crate::conformance::messages::{Ask, Said};
use crate::conformance::method::{ALL, DELTA, SOTW};
use crate::conformance::resources::{Item, Of};
use crate::conformance::rules::nonces::sends_all;

pub(crate) const CHECKS: &[Check] = &[
    check!(
        66,
        "absence",
        SOTW,
        full_state,
        "SotW listeners and clusters: each response is the full state, absence is deletion",
        "Envoy deletes what a response leaves out, and keeps what it should have left out"
    ),
    check!(
        67,
        "absence",
        SOTW,
        only_changes,
        "SotW, other types: only what changed is sent",
        "every change of one endpoint sends all of them to all (go-control-plane)"
    ),
    check!(69, "absence", ALL, once, "a name stands once in a response", "Envoy refuses the whole response"),
    check!(
        70,
        "absence",
        DELTA,
        missing,
        "over delta a name that does not exist is told",
        "Envoy and gRPC wait 15 s for each (go-control-plane #565)"
    ),
    check!(
        71,
        "absence",
        DELTA,
        missing_once,
        "a name that does not exist is told once for each subscription",
        "every response carries all names that do not exist"
    ),
    check!(
        79,
        "absence",
        ALL,
        drained,
        "endpoints without any are sent as a resource",
        "Envoy keeps the old hosts: a removal of endpoints does not drain them"
    ),
    check!(80, "absence", ALL, whole, "resources are sent whole", "what is missing is taken for its default"),
    check!(
        81,
        "absence",
        ALL,
        type_inside,
        "the type inside is the type of the response",
        "Envoy and gRPC refuse the whole response"
    ),
    check!(
        82,
        "absence",
        DELTA,
        name_inside,
        "the name outside is the name inside",
        "Envoy adds a cluster by one name and removes it by the other: it stays for ever"
    ),
    check!(
        106,
        "absence",
        DELTA,
        no_virtual_host,
        "a virtual host that is not there is an alias of nothing",
        "requests to that host hang until their timeout, instead of a 404"
    ),
    check!(
        107,
        "absence",
        DELTA,
        virtual_hosts,
        "virtual hosts are named by route configuration and host, and a wildcard of them is answered",
        "Envoy waits 15 s at its start"
    ),
    check!(
        108,
        "absence",
        DELTA,
        on_demand,
        "an unknown cluster is removed at once, and sent when it comes",
        "requests to a cluster on demand wait 5 s, instead of a 503"
    ),
    check!(
        109,
        "absence",
        ALL,
        odd_names,
        "odd names have a defined answer and end nothing",
        "one client's typing error ends its whole stream, again and again"
    ),
    check!(
        117,
        "absence",
        DELTA,
        errors,
        "a resource error of what does not exist has a removal beside it, and no resource",
        "Envoy and gRPC ignore resource errors: they wait for ever"
    ),
];

const C: Of = Of::Cluster;
const E: Of = Of::Endpoints;
const HOSTS: Of = Of::VirtualHost;

async fn full_state(lab: &mut Lab) -> Done {
    let [a, b, c] = lab.names(["a", "b", "c"]);
    for of in [C, Of::Listener] {
        lab.put(&[(of, &a, 1), (of, &b, 1), (of, &c, 1)]).await?;
        let mut client = lab.open(of);
        client.want(of, &[]).await?;
        client.told(of, &[(&a, 1), (&b, 1), (&c, 1)]).await?;
        lab.remove(of, &a).await?;
        let is_full = |said: &[Said]| said.last().is_some_and(|last| last.has(&b) && last.has(&c));
        let seen = client.gone(of, &a).await?;
        expect(is_full(&seen), format!("{b} and {c} beside what went"), "a part of them")?;
        lab.put(&[(of, &b, 2)]).await?;
        let seen = client.told(of, &[(&b, 2)]).await?;
        expect(is_full(&seen), format!("{c} beside what changed"), "what changed alone")?;
        lab.change(removal(&[(of, &b), (of, &c)])).await?;
        client.gone(of, &b).await?;
    }
    Ok(())
}

fn removal(gone: &[(Of, &str)]) -> crate::conformance::adapter::Change {
    let remove = gone.iter().map(|(of, name)| (*of, (*name).to_owned())).collect();
    crate::conformance::adapter::Change { put: Vec::new(), remove }
}

async fn only_changes(lab: &mut Lab) -> Done {
    let [a, b, marker] = [lab.name("a"), lab.name("b"), lab.marker()];
    lab.start(&[(E, &a, 1), (E, &b, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a, &b, &marker]).await?;
    client.told(E, &[(&a, 1), (&b, 1), (&marker, 1)]).await?;
    lab.put(&[(E, &a, 2)]).await?;
    let mut seen = client.told(E, &[(&a, 2)]).await?;
    lab.remove(E, &a).await?;
    seen.extend(lab.mark(&mut client, E).await?);
    match times(&seen, &b) {
        0 => Ok(()),
        _ => Err(sends_all(&format!("that {b}, which did not change, is not sent"))),
    }
}

async fn once(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(C, &a, 1), (C, &b, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &["*", &a, &b]).await?;
    let mut seen = client.told(C, &[(&a, 1), (&b, 1)]).await?;
    lab.put(&[(C, &a, 2)]).await?;
    seen.extend(client.told(C, &[(&a, 2)]).await?);
    for said in &seen {
        let names = said.resources.iter().map(|got| &got.name).chain(&said.removed);
        let mut before = BTreeSet::new();
        let twice = names.into_iter().find(|name| !before.insert(*name));
        expect(twice.is_none(), "each name once", twice.map(|name| format!("{name} twice")).unwrap_or_default())?;
    }
    Ok(())
}

async fn missing(lab: &mut Lab) -> Done {
    let nope = lab.name("nope");
    let mut client = lab.open(E);
    client.want(E, &[&nope]).await?;
    client.until(E, &format!("{nope} as removed"), |said| said.removes(&nope)).await.map(|_| ())
}

async fn missing_once(lab: &mut Lab) -> Done {
    let [a, nope] = lab.names(["a", "nope"]);
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a, &nope]).await?;
    let told = format!("{nope} as removed");
    let mut has_a = false;
    let mut seen = Vec::new();
    let is_all = |said: &Said| {
        has_a |= said.has(&a);
        seen.extend(said.removed.clone());
        has_a && seen.contains(&nope)
    };
    client.until(E, &told, is_all).await?;
    let mut later = Vec::new();
    for content in 2..6 {
        lab.put(&[(E, &a, content)]).await?;
        later.extend(client.told(E, &[(&a, content)]).await?);
    }
    expect(!mentions(&later, &nope), "what changed", format!("{nope} again"))?;
    client.send(Ask { type_url: E.type_url().into(), names: vec![nope.clone()], ..Ask::default() }).await?;
    client.until(E, &format!("{nope} as removed, to who asks again"), |said| said.removes(&nope)).await.map(|_| ())
}

async fn drained(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a]).await?;
    client.told(E, &[(&a, 1)]).await?;
    lab.put(&[(E, &a, 0)]).await?;
    let seen = client.told(E, &[(&a, 0)]).await?;
    expect(!seen.iter().any(|said| said.removes(&a)), "a resource", "a removal")
}

async fn whole(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    for of in [C, E, Of::Listener, Of::Route] {
        lab.put(&[(of, &a, 7)]).await?;
        let mut client = lab.open(of);
        client.want(of, &[&a]).await?;
        let seen = client.told(of, &[(&a, 7)]).await?;
        let body = seen.iter().find_map(|said| said.got(&a)).and_then(|got| got.body.as_ref());
        let is_whole = body == Some(&Item::new(of, a.as_str(), 7).encode());
        expect(is_whole, format!("all that {a} has"), format!("{} that lack something", of.short()))?;
    }
    Ok(())
}

async fn type_inside(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    for of in [C, E] {
        lab.put(&[(of, &a, 1)]).await?;
        let mut client = lab.open(of);
        client.want(of, &[&a]).await?;
        let is_it = |said: &Said| said.has(&a) || said.resources.iter().any(|got| got.type_url != of.type_url());
        let seen = client.until(of, &format!("{} {a}", of.short()), is_it).await?;
        let others = seen.iter().flat_map(|said| &said.resources).find(|got| got.type_url != of.type_url());
        expect(others.is_none(), of.type_url(), others.map(|got| got.type_url.clone()).unwrap_or_default())?;
    }
    Ok(())
}

async fn name_inside(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    for of in [C, E, Of::Listener, Of::Route] {
        lab.put(&[(of, &a, 1)]).await?;
        let mut client = lab.open(of);
        client.want(of, &[&a]).await?;
        let is_it = |said: &Said| said.resources.iter().any(|got| got.inside == a);
        let seen = client.until(of, &format!("{} {a}", of.short()), is_it).await?;
        let other = seen.iter().flat_map(|said| &said.resources).find(|got| got.name != got.inside);
        let shown = other.map(|got| format!("{} outside, {} inside", got.name, got.inside));
        expect(other.is_none(), "one name", shown.unwrap_or_default())?;
    }
    Ok(())
}

async fn no_virtual_host(lab: &mut Lab) -> Done {
    let name = format!("{}/nobody.example", lab.name("routes"));
    let mut client = lab.open(HOSTS);
    client.want(HOSTS, &[&name]).await?;
    let is_it = |said: &Said| mentions(std::slice::from_ref(said), &name);
    let seen = client.until(HOSTS, &format!("{name} as an alias of nothing"), is_it).await?;
    let said = seen.last().and_then(|said| said.got(&name));
    let said = said.ok_or_else(|| Stop::fail("a resource that stands for nothing", "a removal"))?;
    let is_alias = said.body.is_none() && said.aliases.contains(&name);
    expect(is_alias, format!("the alias {name}, and nothing that it stands for"), format!("aliases {:?}", said.aliases))
}

async fn virtual_hosts(lab: &mut Lab) -> Done {
    let [one, other] = ["one.example", "other.example:80"].map(|host| format!("{}/{host}", lab.name("routes")));
    lab.put(&[(HOSTS, &one, 1)]).await?;
    let mut client = lab.open(HOSTS);
    client.want(HOSTS, &[]).await?;
    client.told(HOSTS, &[(&one, 1)]).await?;
    lab.put(&[(HOSTS, &other, 1)]).await?;
    client.told(HOSTS, &[(&other, 1)]).await.map(|_| ())
}

async fn on_demand(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    let mut client = lab.open(C);
    client.want(C, &[&a]).await?;
    client.until(C, &format!("{a} as removed"), |said| said.removes(&a)).await?;
    lab.put(&[(C, &a, 1)]).await?;
    client.told(C, &[(&a, 1)]).await.map(|_| ())
}

async fn odd_names(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(E, &a, 1)]).await?;
    let long = "n".repeat(4096);
    let odd = ["", "\u{1}\n", "xdstp:", "xdstp://", "xdstp://a/%zz/b", "xdstp://a/T/*?*", "../..", &long];
    let mut client = lab.open(E);
    for name in odd {
        client.want(E, &[name]).await?;
    }
    client.want(E, &[&a]).await?;
    client.told(E, &[(&a, 1)]).await.map(|_| ())
}

async fn errors(lab: &mut Lab) -> Done {
    let [a, nope] = lab.names(["a", "nope"]);
    lab.put(&[(E, &a, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&a, &nope]).await?;
    let is_it = |said: &Said| said.removes(&nope) || said.errors.iter().any(|(name, _)| *name == nope);
    let mut seen = client.until(E, &format!("{nope} as removed"), is_it).await?;
    lab.put(&[(E, &a, 2)]).await?;
    seen.extend(client.told(E, &[(&a, 2)]).await?);
    for said in &seen {
        for (name, code) in &said.errors {
            expect(
                said.removes(name),
                format!("{name} as removed beside its error"),
                format!("the error {code} alone"),
            )?;
            expect(!said.has(name), format!("{name} with an error"), "a resource beside it")?;
        }
    }
    Ok(())
}
