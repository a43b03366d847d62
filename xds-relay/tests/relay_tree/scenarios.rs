//! What happens to a fleet, and what it costs whom.

use std::time::Duration;

use crate::fault::Fault;
use crate::load::Tier;
use crate::origin::GLOB;
use crate::tree::{EDGES, REGIONALS, REGIONS, Setting, Tree};

const SECOND: Duration = Duration::from_secs(1);
/// The streams of a relay to another: its own, and one for each node group.
const STREAMS: u64 = 5;
/// How often who comes back is answered: for each of two types, and for what changed meanwhile.
const AGAIN: u64 = 4;
/// What a resource has on the wire, at most.
const RESOURCE: u64 = 1300;

/// What is wrong, if anything is.
type Wrong = Result<(), String>;

fn check(holds: bool, words: impl FnOnce() -> String) -> Wrong {
    if holds { Ok(()) } else { Err(words()) }
}

/// A tree in which everybody has everything.
fn served(setting: Setting) -> Result<Tree, String> {
    let mut tree = Tree::new(setting);
    tree.run(tree.arrival());
    let took = tree.converges_within(120 * SECOND);
    check(took.is_some(), || "a fleet that comes slowly is not served".into())?;
    // Where an answer ends is asked after 15 s, of streams that were not quiet.
    tree.run(40 * SECOND);
    told_the_truth(&tree)?;
    tree.loads();
    Ok(tree)
}

/// Everybody holds what the origin has within this time, and was told nothing that is not so.
fn converges(tree: &mut Tree, within: Duration) -> Result<Duration, String> {
    let took = tree.converges_within(within);
    told_the_truth(tree)?;
    took.ok_or_else(|| format!("not everybody has everything after {within:?}"))
}

fn told_the_truth(tree: &Tree) -> Wrong {
    let ledger = tree.ledger.lock().unwrap();
    check(ledger.false_removals.is_empty(), || {
        let said = &ledger.false_removals;
        format!("{} removals that the origin did not say: {:?}", said.len(), said.first())
    })?;
    check(ledger.resent == 0, || format!("{} resources were sent to who holds them", ledger.resent))
}

/// What each tier had to do: the origin, the regional relays and the edges.
fn loads(tree: &mut Tree, what: &str) -> [Tier; 3] {
    let loads = tree.loads();
    for (tier, Tier { all, most }) in ["origin", "regional", "edge"].into_iter().zip(&loads) {
        println!("{what}: {tier}: {all}; of one at most: {most}");
    }
    loads
}

/// A change costs the origin what its regional relays are, each of those what its edges are, and each edge what its clients are.
fn changes_one(setting: Setting) -> Wrong {
    let mut tree = served(setting)?;
    let clients = tree.clients_by_edge();
    tree.put(None, &GLOB.replace('*', "c0"));
    let took = converges(&mut tree, 2 * SECOND)?;
    let mut reached = std::mem::take(&mut tree.ledger.lock().unwrap().reached);
    reached.sort_unstable();
    let at = |part: usize| reached[(reached.len() - 1) * part / 100] as f64 / 1000.0;
    println!("one resource: p50 {:.0} ms, p99 {:.0} ms, the last {:.0} ms, {took:?}", at(50), at(99), at(100));
    let [origin, regional, edge] = loads(&mut tree, "one resource");
    once(&origin, REGIONALS as u64)?;
    once(&regional, EDGES as u64)?;
    once(&edge, tree.setting.clients)?;
    let most = *clients.iter().max().unwrap() as u64 + AGAIN * edge.all.streams;
    check(edge.most.messages <= most, || format!("{} messages of an edge", edge.most.messages))?;
    check(regional.all.bytes < EDGES as u64 * RESOURCE, || format!("{} bytes between relays", regional.all.bytes))
}

/// A tier said so much, and to who lost its stream meanwhile what it answers who comes back with.
fn once(tier: &Tier, told: u64) -> Wrong {
    let most = told + AGAIN * tier.all.streams;
    check((told..=most).contains(&tier.all.messages), || format!("{}, and not {told}", tier.all))
}

/// Its clients go to the others, and come back to it as their streams age.
fn loses_an_edge(setting: Setting) -> Wrong {
    let age = Duration::from_secs(240);
    let mut tree = served(Setting { stream_age: age, ..setting })?;
    tree.kill(REGIONALS);
    let lost = GLOB.replace('*', "c1");
    tree.remove(None, &lost);
    let took = converges(&mut tree, 90 * SECOND)?;
    println!("a dead edge: everybody is served after {took:?}");
    check(tree.clients_by_edge()[0] == 0, || "somebody is at an edge that is dead".into())?;
    let [origin, regional, edge] = loads(&mut tree, "a dead edge");
    check(origin.all.messages == REGIONALS as u64 && origin.all.streams == 0, || {
        format!("the origin has {}", origin.all)
    })?;
    check(regional.all.streams == 0, || format!("edges opened {} streams", regional.all.streams))?;
    bounded(&tree, &edge)?;
    tree.revive(REGIONALS);
    tree.run(age + age / 2);
    converges(&mut tree, 60 * SECOND)?;
    let (back, fair) = (tree.clients_by_edge()[0], tree.setting.clients as usize / EDGES);
    println!("a dead edge: {back} clients are back, of {fair}");
    check(back > fair / 2, || format!("only {back} clients of {fair} came back"))?;
    let [_, _, edge] = loads(&mut tree, "ages");
    bounded(&tree, &edge)
}

/// So many new streams a second as an edge takes: twice in one second, of which its bucket was full at the beginning.
fn bounded(tree: &Tree, edge: &Tier) -> Wrong {
    let most = 2 * tree.setting.new_streams();
    check(edge.most.most_streams <= most, || format!("{} new streams in a second", edge.most.most_streams))
}

/// Its edges go to the next region, and no client notices.
fn loses_a_region(setting: Setting) -> Wrong {
    let mut tree = served(setting)?;
    (0..REGIONALS).step_by(REGIONS).for_each(|regional| tree.kill(regional));
    tree.run(10 * SECOND);
    let [_, regional, edge] = loads(&mut tree, "a dead region");
    check(edge.all.messages <= AGAIN * edge.all.streams, || format!("clients were told {} things", edge.all.messages))?;
    // A third of the edges, with each of their streams, and those who lost one.
    let moved = EDGES as u64 / REGIONS as u64 * STREAMS;
    let streams = regional.all.streams;
    check((moved..moved + 2 * STREAMS).contains(&streams), || format!("{streams} streams moved"))?;
    tree.put(None, &GLOB.replace('*', "c2"));
    let took = converges(&mut tree, 10 * SECOND)?;
    println!("a dead region: an update is with everybody after {took:?}");
    (0..REGIONALS).step_by(REGIONS).for_each(|regional| tree.revive(regional));
    tree.remove(None, &GLOB.replace('*', "c3"));
    let took = converges(&mut tree, 10 * SECOND)?;
    println!("a region that is back: a removal is with everybody after {took:?}");
    loads(&mut tree, "a region that is back");
    Ok(())
}

/// Every relay dies, and comes back knowing nothing.
fn starts_anew(setting: Setting) -> Wrong {
    let age = Duration::from_secs(240);
    let mut tree = served(Setting { stream_age: age, ..setting })?;
    (0..REGIONALS + EDGES).for_each(|relay| tree.kill(relay));
    tree.run(3 * SECOND);
    tree.put(None, &GLOB.replace('*', "c4"));
    tree.remove(None, &GLOB.replace('*', "c5"));
    tree.put(Some(0), "listener-0");
    tree.run(2 * SECOND);
    (0..REGIONALS + EDGES).for_each(|relay| tree.revive(relay));
    let took = converges(&mut tree, 240 * SECOND)?;
    println!("all at once: everybody has everything after {took:?}");
    let [origin, _, edge] = loads(&mut tree, "all at once");
    bounded(&tree, &edge)?;
    let streams = REGIONALS as u64 * STREAMS;
    check(origin.all.streams <= 2 * streams, || format!("{} streams to the origin", origin.all.streams))?;
    // When those streams age there is no second storm.
    tree.run(age + age / 2);
    converges(&mut tree, 60 * SECOND)?;
    let [_, _, later] = loads(&mut tree, "as they age");
    let refused = later.all.refused;
    check(refused < tree.setting.clients / 10, || format!("{refused} were refused as their streams aged"))
}

fn holds(scenario: fn(Setting) -> Wrong) {
    scenario(Setting::sampled()).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn one_resource_goes_to_everybody_once() {
    holds(changes_one);
}

#[test]
fn the_clients_of_an_edge_that_dies_are_served_by_others_and_come_back() {
    holds(loses_an_edge);
}

#[test]
fn the_edges_of_a_region_that_dies_go_to_another_and_clients_do_not_notice() {
    holds(loses_a_region);
}

#[test]
fn a_tree_that_starts_anew_as_a_whole_is_there_soon_and_says_nothing_false() {
    holds(starts_anew);
}

#[test]
fn every_planted_fault_is_found() {
    for (fault, scenario, words) in [
        (Fault::NoAdmission, starts_anew as fn(Setting) -> Wrong, "new streams in a second"),
        (Fault::NoJitter, starts_anew, "were refused as their streams aged"),
        (Fault::Forgets, starts_anew, "removals that the origin did not say"),
        (Fault::Resends, loses_an_edge, "were sent to who holds them"),
    ] {
        let few = Setting { clients: 560, fault: Some(fault), ..Setting::sampled() };
        let wrong = scenario(few).err().unwrap_or_else(|| panic!("{fault:?} is not found"));
        assert!(wrong.contains(words), "{fault:?}: {wrong}");
        println!("{fault:?}: {wrong}");
    }
}
