//! Dynamic parameters: variants of one name (TP2).

use crate::conformance::adapter::Change;
use crate::conformance::check::{Check, Done, expect};
use crate::conformance::lab::Lab;
use crate::conformance::messages::{Ask, Said};
use crate::conformance::method::{ALL, DELTA_ADS};
use crate::conformance::resources::{Item, Of};

pub(crate) const CHECKS: &[Check] = &[
    check!(
        119,
        "parameters",
        ALL,
        by_constraints,
        "variants are told apart by constraints, which stand beside the name",
        "a caching relay hands one client's variant to another"
    ),
    check!(
        119,
        "parameters",
        DELTA_ADS,
        swap,
        "a client whose variant changes is told in one response",
        "for a moment a client has two of one name, or none"
    ),
    check!(
        120,
        "parameters",
        ALL,
        mixed,
        "names with parameters may stand beside names without",
        "a client that needs both is answered for one of them"
    ),
];

const E: Of = Of::Endpoints;

fn variant(name: &str, content: u32, constraints: &str) -> Item {
    Item { constraints: Some(constraints.into()), ..Item::new(E, name, content) }
}

async fn put(lab: &mut Lab, put: Vec<Item>) -> Done {
    lab.change(Change { put, remove: Vec::new() }).await
}

fn locator(name: &str, env: &'static str) -> Ask {
    Ask { type_url: E.type_url().into(), locators: vec![(name.into(), vec![("env", env)])], ..Ask::default() }
}

async fn by_constraints(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    put(lab, vec![variant(&a, 1, "env=prod"), variant(&a, 2, "env=test")]).await?;
    for (env, content) in [("prod", 1), ("test", 2)] {
        let mut client = lab.open(E);
        client.send(locator(&a, env)).await?;
        let is_it = |said: &Said| said.has(&a);
        let seen = client.until(E, &format!("{a}={content}"), is_it).await?;
        let got = seen.last().and_then(|said| said.got(&a)).cloned().unwrap_or_default();
        expect(got.content == Some(content), format!("{a}={content}"), format!("{:?}", got.content))?;
        expect(got.has_constraints, "resource_name with the constraints", "a name alone")?;
    }
    Ok(())
}

async fn swap(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    put(lab, vec![variant(&a, 1, "env=prod")]).await?;
    let mut client = lab.open(E);
    client.send(locator(&a, "prod")).await?;
    client.told(E, &[(&a, 1)]).await?;
    let change = Change { put: vec![variant(&a, 2, "env=prod and not canary=yes")], remove: vec![(E, a.clone())] };
    lab.change(change).await?;
    let is_it = |said: &Said| said.has_content(&a, 2) || said.removes(&a);
    let seen = client.until(E, &format!("{a}=2"), is_it).await?;
    let is_one = seen.last().is_some_and(|said| said.has_content(&a, 2));
    expect(is_one, format!("{a}=2, and what it takes the place of in the same response"), "a removal by itself")
}

async fn mixed(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    put(lab, vec![variant(&a, 1, "env=prod"), Item::new(E, b.as_str(), 2)]).await?;
    let mut client = lab.open(E);
    client.send(Ask { names: vec![b.clone()], ..locator(&a, "prod") }).await?;
    client.told(E, &[(&a, 1), (&b, 2)]).await.map(|_| ())
}
