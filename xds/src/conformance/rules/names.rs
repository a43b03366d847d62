//! `xdstp:` names, and globs.

use crate::conformance::check::{Check, Done, expect};
use crate::conformance::client::{mentions, times};
use crate::conformance::lab::Lab;
use crate::conformance::messages::{Ask, Said};
use crate::conformance::method::{ALL, DELTA, SOTW};
use crate::conformance::resources::Of;

pub(crate) const CHECKS: &[Check] = &[
    check!(
        94,
        "xdstp",
        DELTA,
        parameter_order,
        "names are equal whatever the order of their parameters",
        "Envoy sorts parameters before it asks: what is named unsorted is never found"
    ),
    check!(
        95,
        "xdstp",
        ALL,
        spelling,
        "a name comes back as it was asked for",
        "Envoy tracks versions by the text: it asks for everything again at each reconnect"
    ),
    check!(
        96,
        "xdstp",
        DELTA,
        unsorted,
        "what is named with unsorted parameters is found, and sent, sorted",
        "Envoy refuses it: `Unexpected EDS cluster`"
    ),
    check!(
        48,
        "globs",
        DELTA,
        glob_again,
        "a glob that is subscribed again is sent again",
        "a client that lost its state gets nothing of it back"
    ),
    check!(
        53,
        "globs",
        DELTA,
        leaving_under_glob,
        "to leave a name under a glob is answered",
        "the client does not know whether it still has it"
    ),
    check!(
        97,
        "globs",
        DELTA,
        one_level,
        "a glob covers one level of one authority, type and set of parameters",
        "clients are sent members of other directories (go-control-plane matches by prefix)"
    ),
    check!(
        98,
        "globs",
        DELTA,
        member_names,
        "members come under concrete names, with the parameters of the glob",
        "Envoy cannot tell which collection a resource belongs to"
    ),
    check!(
        99,
        "globs",
        DELTA,
        empty_glob,
        "an empty glob is told as removed",
        "Envoy waits 15 s for its listeners and clusters"
    ),
    check!(
        100,
        "globs",
        DELTA,
        gone_while_away,
        "members that went while a client was away are told as removed",
        "Envoy lists no members when it comes back: what was deleted leaks for ever"
    ),
    check!(
        101,
        "globs",
        DELTA,
        gone_of_held,
        "a client that lists members is told which are gone",
        "what was deleted while a client was away stays there for ever"
    ),
    check!(
        102,
        "globs",
        SOTW,
        sotw_glob,
        "SotW globs of clusters lose members by absence",
        "Envoy keeps what was deleted"
    ),
    check!(
        103,
        "globs",
        DELTA,
        matched_twice,
        "what is matched twice is sent once, and stays when one match goes",
        "Envoy refuses the whole response, or loses what it still wants"
    ),
];

const C: Of = Of::Cluster;
const E: Of = Of::Endpoints;

async fn parameter_order(lab: &mut Lab) -> Done {
    let [sorted, other] = ["a?k=1&z=2", "a?z=2&k=1"].map(|rest| lab.xdstp(E, rest));
    lab.put(&[(E, &sorted, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&other]).await?;
    let is_it = |said: &Said| said.resources.iter().any(|got| got.content == Some(1));
    client.until(E, &format!("{sorted}, by another order"), is_it).await.map(|_| ())
}

async fn spelling(lab: &mut Lab) -> Done {
    let name = lab.xdstp(E, "a?k=1&z=2");
    lab.put(&[(E, &name, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&name]).await?;
    client.told(E, &[(&name, 1)]).await.map(|_| ())
}

async fn unsorted(lab: &mut Lab) -> Done {
    let [sorted, written] = ["a?k=1&z=2", "a?z=2&k=1"].map(|rest| lab.xdstp(E, rest));
    lab.put(&[(E, &written, 1)]).await?;
    let mut client = lab.open(E);
    client.want(E, &[&sorted]).await?;
    client.told(E, &[(&sorted, 1)]).await.map(|_| ())
}

async fn glob_again(lab: &mut Lab) -> Done {
    let [glob, a] = ["*", "a"].map(|rest| lab.xdstp(C, rest));
    lab.put(&[(C, &a, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[&glob]).await?;
    client.told(C, &[(&a, 1)]).await?;
    client.send(Ask { type_url: C.type_url().into(), names: vec![glob], ..Ask::default() }).await?;
    client.until(C, &format!("{a} again"), |said| said.has(&a)).await.map(|_| ())
}

async fn leaving_under_glob(lab: &mut Lab) -> Done {
    let [glob, a, nope] = ["*", "a", "nope"].map(|rest| lab.xdstp(C, rest));
    lab.put(&[(C, &a, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[&glob, &a, &nope]).await?;
    client.told(C, &[(&a, 1)]).await?;
    let ask = || Ask { type_url: C.type_url().into(), ..Ask::default() };
    client.send(Ask { leave: vec![a.clone()], ..ask() }).await?;
    client.until(C, &format!("{a}, which the glob has"), |said| said.has(&a)).await?;
    client.send(Ask { leave: vec![nope.clone()], ..ask() }).await?;
    client.until(C, &format!("{nope} as removed"), |said| said.removes(&nope)).await.map(|_| ())
}

async fn one_level(lab: &mut Lab) -> Done {
    let [glob, child, marker] = ["dir/*", "dir/a", "dir/marker"].map(|rest| lab.xdstp(C, rest));
    let others = ["dir/x/y", "dir/a?k=1", "dire/a", "dir"].map(|rest| lab.xdstp(C, rest));
    let elsewhere = child.replacen("conformance", "elsewhere", 1);
    let others: Vec<_> = others.iter().chain([&elsewhere]).map(String::as_str).collect();
    let put = |content| others.iter().map(move |name| (C, *name, content));
    lab.put(&put(1).chain([(C, &*child, 1), (C, &*marker, 1)]).collect::<Vec<_>>()).await?;
    let mut client = lab.open(C);
    client.want(C, &[&glob]).await?;
    let mut seen = client.told(C, &[(&child, 1), (&marker, 1)]).await?;
    lab.put(&put(2).collect::<Vec<_>>()).await?;
    lab.put(&[(C, &marker, 2)]).await?;
    seen.extend(client.told(C, &[(&marker, 2)]).await?);
    let other = others.iter().find(|name| mentions(&seen, name));
    expect(other.is_none(), format!("{child} and {marker}"), other.unwrap_or(&""))
}

async fn member_names(lab: &mut Lab) -> Done {
    let [glob, member] = ["*?k=1&z=2", "a?k=1&z=2"].map(|rest| lab.xdstp(C, rest));
    lab.put(&[(C, &member, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[&glob]).await?;
    let is_it = |said: &Said| said.resources.iter().any(|got| got.content == Some(1));
    let seen = client.until(C, &member, is_it).await?;
    let got = seen.iter().flat_map(|said| &said.resources).find(|got| got.content == Some(1));
    let name = got.map(|got| &*got.name).unwrap_or_default();
    expect(name == member, &member, name)
}

async fn empty_glob(lab: &mut Lab) -> Done {
    let [glob, a] = ["*", "a"].map(|rest| lab.xdstp(C, rest));
    let mut client = lab.open(C);
    client.want(C, &[&glob]).await?;
    client.until(C, &format!("{glob} as removed"), |said| said.removes(&glob)).await?;
    lab.put(&[(C, &a, 1)]).await?;
    client.told(C, &[(&a, 1)]).await?;
    lab.remove(C, &a).await?;
    client.gone(C, &a).await.map(|_| ())
}

async fn gone_while_away(lab: &mut Lab) -> Done {
    let [glob, a, b] = ["*", "a", "b"].map(|rest| lab.xdstp(C, rest));
    lab.put(&[(C, &a, 1), (C, &b, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[&glob]).await?;
    client.told(C, &[(&a, 1), (&b, 1)]).await?;
    drop(client);
    lab.remove(C, &a).await?;
    let mut client = lab.open(C);
    client.want(C, &[&glob]).await?;
    client.gone(C, &a).await.map(|_| ())
}

async fn gone_of_held(lab: &mut Lab) -> Done {
    let [glob, a, b] = ["*", "a", "b"].map(|rest| lab.xdstp(C, rest));
    lab.put(&[(C, &a, 1), (C, &b, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[&glob]).await?;
    let seen = client.told(C, &[(&a, 1), (&b, 1)]).await?;
    let version = |name: &String| seen.iter().find_map(|said| said.got(name)).map(|got| got.version.clone());
    let holds = [&a, &b].map(|name| (name.clone(), version(name).unwrap_or_default())).into();
    drop(client);
    lab.remove(C, &a).await?;
    let mut client = lab.open(C);
    client.send(Ask { type_url: C.type_url().into(), names: vec![glob], holds, ..Ask::default() }).await?;
    client.gone(C, &a).await.map(|_| ())
}

async fn sotw_glob(lab: &mut Lab) -> Done {
    let [glob, a, b] = ["*", "a", "b"].map(|rest| lab.xdstp(C, rest));
    lab.put(&[(C, &a, 1), (C, &b, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[&glob]).await?;
    client.told(C, &[(&a, 1), (&b, 1)]).await?;
    lab.remove(C, &a).await?;
    let seen = client.gone(C, &a).await?;
    expect(seen.last().is_some_and(|said| said.has(&b)), format!("{b} alone"), format!("a response without {b}"))
}

async fn matched_twice(lab: &mut Lab) -> Done {
    let [glob, a, marker] = ["*", "a", "marker"].map(|rest| lab.xdstp(C, rest));
    lab.put(&[(C, &a, 1), (C, &marker, 1)]).await?;
    let mut client = lab.open(C);
    client.want(C, &[&glob, &a]).await?;
    let mut seen = client.told(C, &[(&a, 1), (&marker, 1)]).await?;
    lab.put(&[(C, &marker, 2)]).await?;
    seen.extend(client.told(C, &[(&marker, 2)]).await?);
    expect(times(&seen, &a) == 1, format!("{a} once"), format!("{} times", times(&seen, &a)))?;
    client.want(C, &[&a]).await?;
    lab.put(&[(C, &a, 2)]).await?;
    client.told(C, &[(&a, 2)]).await.map(|_| ())
}
