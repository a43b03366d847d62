//! Dynamic parameters: variants of one name (TP2), in either form.

use std::collections::BTreeMap;

use xds_matcher::draft::{
    Constraint, DynamicParameterConstraints, IntegerRangeList, KeyConstraints, Kind, Range as Integers,
};
use xds_transport::Dialect;
use xdstp_cache::Selector;

use crate::conformance::adapter::Change;
use crate::conformance::check::{Check, Done, Stop, expect};
use crate::conformance::lab::Lab;
use crate::conformance::messages::{Ask, Said};
use crate::conformance::method::{ALL, DELTA, DELTA_ADS};
use crate::conformance::resources::{Item, Of};

pub(crate) const CHECKS: &[Check] = &[
    check!(
        119,
        "parameters",
        ALL,
        by_constraints,
        "each client is sent the variant that is for it, which says beside the name which one it is",
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
        Final: 119,
        "parameters",
        DELTA,
        removal,
        "a removal says of which variant it is",
        "a client, or a caching relay, that has another variant of the name loses it"
    ),
    check!(
        Final: 120,
        "parameters",
        ALL,
        mixed,
        "names with parameters may stand beside names without",
        "a client that needs both is answered for one of them"
    ),
    check!(
        Draft: 119,
        "parameters",
        ALL,
        missing_key,
        "a variant without a key is for whatever is said of that key",
        "who says a key that the resources do not have yet is left with nothing"
    ),
    check!(
        Draft: 120,
        "parameters",
        ALL,
        first_field,
        "where the first request of a type has locators, names beside them do not count",
        "a client is sent, unwrapped, what it cannot tell from a variant"
    ),
    check!(
        Draft: 119,
        "ranges",
        ALL,
        ranges,
        "of variants within a range the largest is sent; or the constraint is refused by its name",
        "a client has a shard that is not its own, and is not told"
    ),
    check!(
        Draft: 119,
        "ranges",
        ALL,
        inverted,
        "what an inverted constraint matches is not sent; or the constraint is refused by its name",
        "a client has the one variant that is not for it, and is not told"
    ),
];

const E: Of = Of::Endpoints;

/// What a variant is for, as the adapter is told it.
type Pairs = &'static [(&'static str, &'static str)];

/// A variant that is for these exact values, in the form that is spoken.
fn variant(lab: &Lab, name: &str, content: u32, pairs: Pairs) -> Item {
    let item = Item::new(E, name, content);
    if lab.dialect == Dialect::Draft {
        return Item { parameters: Some(pairs), ..item };
    }
    let words: Vec<_> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Item { constraints: Some(words.join(" and ")), ..item }
}

async fn put(lab: &mut Lab, put: Vec<Item>) -> Done {
    lab.change(Change { put, remove: Vec::new() }).await
}

fn locator(name: &str, selector: Selector) -> Ask {
    Ask { type_url: E.type_url().into(), locators: vec![(name.into(), selector)], ..Ask::default() }
}

/// Exact values are the same in either form.
fn values(pairs: Pairs) -> Selector {
    Selector::Parameters(pairs.iter().copied().collect())
}

/// What only the draft can say of a key.
fn constraint(key: &str, kind: Kind, invert: bool) -> Done<Selector> {
    let of_key = KeyConstraints { constraints: vec![Constraint { kind: Some(kind) }], invert };
    let message = DynamicParameterConstraints { key_constraints: BTreeMap::from([(key.to_owned(), of_key)]) };
    message.lower().map(Selector::Constraints).map_err(Stop::inconclusive)
}

fn range(min: u64, max: u64) -> Kind {
    Kind::IntegerRangeList(IntegerRangeList { range: vec![Integers { min_value: Some(min), max_value: Some(max) }] })
}

async fn by_constraints(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    let [prod, test]: [Pairs; 2] = [&[("env", "prod")], &[("env", "test")]];
    put(lab, vec![variant(lab, &a, 1, prod), variant(lab, &a, 2, test)]).await?;
    for (pairs, content) in [(prod, 1), (test, 2)] {
        let mut client = lab.open(E);
        client.send(locator(&a, values(pairs))).await?;
        let is_it = |said: &Said| said.has(&a);
        let seen = client.until(E, &format!("{a}={content}"), is_it).await?;
        let got = seen.last().and_then(|said| said.got(&a)).cloned().unwrap_or_default();
        expect(got.content == Some(content), format!("{a}={content}"), format!("{:?}", got.content))?;
        expect(got.has_variant, "what says which variant it is", "a name alone")?;
    }
    Ok(())
}

async fn swap(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    let prod: Pairs = &[("env", "prod")];
    put(lab, vec![variant(lab, &a, 1, prod)]).await?;
    let mut client = lab.open(E);
    client.send(locator(&a, values(prod))).await?;
    client.told(E, &[(&a, 1)]).await?;
    let next = if lab.dialect == Dialect::Draft {
        variant(lab, &a, 2, &[("env", "prod"), ("canary", "no")])
    } else {
        Item { constraints: Some("env=prod and not canary=yes".into()), ..Item::new(E, &*a, 2) }
    };
    lab.change(Change { put: vec![next], remove: vec![(E, a.clone())] }).await?;
    let is_it = |said: &Said| said.has_content(&a, 2) || said.removes(&a);
    let seen = client.until(E, &format!("{a}=2"), is_it).await?;
    let is_one = seen.last().is_some_and(|said| said.has_content(&a, 2));
    expect(is_one, format!("{a}=2, and what it takes the place of in the same response"), "a removal by itself")
}

async fn removal(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    let [prod, test]: [Pairs; 2] = [&[("env", "prod")], &[("env", "test")]];
    let others = variant(lab, &a, 2, test);
    put(lab, vec![variant(lab, &a, 1, prod), others.clone()]).await?;
    let mut client = lab.open(E);
    client.send(locator(&a, values(prod))).await?;
    client.told(E, &[(&a, 1)]).await?;
    lab.change(Change { put: vec![others], remove: vec![(E, a.clone())] }).await?;
    let seen = client.gone(E, &a).await?;
    let says_which = seen.last().is_some_and(|said| said.variants_removed.contains(&a));
    expect(says_which, format!("{a} in removed_resource_names, with its constraints"), "its name alone")
}

async fn mixed(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    let prod: Pairs = &[("env", "prod")];
    put(lab, vec![variant(lab, &a, 1, prod), Item::new(E, b.as_str(), 2)]).await?;
    let mut client = lab.open(E);
    client.send(Ask { names: vec![b.clone()], ..locator(&a, values(prod)) }).await?;
    client.told(E, &[(&a, 1), (&b, 2)]).await.map(|_| ())
}

async fn missing_key(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    put(lab, vec![variant(lab, &a, 1, &[("env", "prod")])]).await?;
    let mut client = lab.open(E);
    client.send(locator(&a, values(&[("env", "prod"), ("version", "v1")]))).await?;
    client.told(E, &[(&a, 1)]).await.map(|_| ())
}

async fn first_field(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    let prod: Pairs = &[("env", "prod")];
    put(lab, vec![variant(lab, &a, 1, prod), Item::new(E, b.as_str(), 1)]).await?;
    let mut client = lab.open(E);
    client.send(Ask { names: vec![b.clone()], ..locator(&a, values(prod)) }).await?;
    let mut seen = client.told(E, &[(&a, 1)]).await?;
    // What is sent of the name is sent before the next change of the other.
    for content in [2, 3] {
        put(lab, vec![Item::new(E, b.as_str(), content), variant(lab, &a, content, prod)]).await?;
        seen.extend(client.told(E, &[(&a, content)]).await?);
    }
    let is_there = seen.iter().any(|said| said.has(&b));
    expect(!is_there, format!("{a} alone"), format!("{b}, which stood beside it as a name"))
}

async fn ranges(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    let shards: [Pairs; 2] = [&[("shard", "3")], &[("shard", "5")]];
    put(lab, vec![variant(lab, &a, 3, shards[0]), variant(lab, &a, 5, shards[1])]).await?;
    for (min, max, content) in [(0, 4, 3), (4, 9, 5), (0, 9, 5)] {
        let selector = constraint("shard", range(min, max), false)?;
        is_that_or_refused(lab, &a, content, "shard", selector).await?;
    }
    Ok(())
}

async fn inverted(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    let [prod, test]: [Pairs; 2] = [&[("env", "prod")], &[("env", "test")]];
    put(lab, vec![variant(lab, &a, 1, prod), variant(lab, &a, 2, test)]).await?;
    for (not, content) in [("prod", 2), ("test", 1)] {
        let selector = constraint("env", Kind::Value(not.into()), true)?;
        is_that_or_refused(lab, &a, content, "env", selector).await?;
    }
    Ok(())
}

/// A server that gets its resources from one of the final form cannot ask for this. Then it says what it is that it cannot.
async fn is_that_or_refused(lab: &mut Lab, name: &str, content: u32, key: &str, selector: Selector) -> Done {
    let expected = format!("{name}={content}, or a refusal that names key_constraints[{key:?}]");
    let mut client = lab.open(E);
    client.send(locator(name, selector)).await?;
    let names_it = |text: &str| text.contains("key_constraints") && text.contains(key);
    loop {
        let said = match client.next(E, &expected).await {
            Ok(said) => said,
            Err(Stop::Fail { seen, .. }) if seen.starts_with("the stream ended") && names_it(&seen) => return Ok(()),
            Err(stop) => return Err(stop),
        };
        client.ack(&said).await?;
        if let Some(at) = said.errors.iter().position(|(of, _)| of == name) {
            let why = said.reasons.get(at).map_or("", String::as_str);
            return expect(names_it(why), expected, format!("an error without it: {why}"));
        }
        if let Some(got) = said.got(name) {
            return expect(got.content == Some(content), expected, format!("{name}={:?}", got.content));
        }
        expect(!said.removes(name), &expected, "that it does not exist")?;
    }
}
