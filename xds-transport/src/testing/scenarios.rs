//! The histories that a source is put through.

use std::time::Instant;

use xdstp_cache::Removals;

use crate::testing::drawn::drawn;
use crate::testing::history::{GLOB, History, OTHER, PLAIN, Step, TREE, member};
use crate::testing::told::{errors, expect_empty_answer, lives};
use crate::testing::{Edit, Violation};

/// How many entries a pull visits at most: more than there are; one, so that each is cut off; and a few.
const PARTS: [usize; 4] = [100, 1, 2, 3];
/// How many histories are drawn.
const DRAWN: u64 = 200;

/// A scenario, played in one history.
type Scenario<S> = fn(&mut History<S>) -> Step;

/// Every scenario with every part; the first thing that is wrong ends it.
pub(crate) fn run_all<S: Edit>(source: &mut dyn FnMut() -> S) -> Result<(), Violation> {
    let scenarios: [(&'static str, Scenario<S>); 12] = [
        ("names", names),
        ("a wildcard", wildcard),
        ("globs", globs),
        ("interests that overlap", overlap),
        ("asked for again", again),
        ("left and covered", left),
        ("resumed", resumed),
        ("closed and opened anew", anew),
        ("additions first", additions_first),
        ("types apart", types_apart),
        ("lives for a time", lives),
        ("errors", errors),
    ];
    for part in PARTS {
        for (name, scenario) in scenarios {
            run(source, name, part, scenario)?;
        }
        for seed in 0..DRAWN {
            run(source, "a drawn history", part, |history| drawn(history, seed))?;
        }
    }
    Ok(())
}

fn run<S: Edit>(
    source: &mut dyn FnMut() -> S,
    scenario: &'static str,
    part: usize,
    play: impl FnOnce(&mut History<S>) -> Step,
) -> Result<(), Violation> {
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    let mut history = History::new(source(), part, Instant::now());
    let played = play(&mut history).and_then(|()| history.settle_all());
    played.map_err(|what| Violation { scenario, part, what, history: std::mem::take(&mut history.steps) })
}

/// Names that are there and names that are not, that come, change, go and come back.
fn names<S: Edit>(history: &mut History<S>) -> Step {
    history.put(PLAIN, "a", "1")?;
    history.put(PLAIN, "unasked", "1")?;
    let reader = history.open(PLAIN, &["a", "b", "c"])?;
    history.settle(reader)?;
    history.put(PLAIN, "b", "1")?;
    history.put(PLAIN, "a", "2")?;
    history.put(PLAIN, "a", "3")?;
    history.settle(reader)?;
    history.put(PLAIN, "a", "3")?;
    history.settle(reader)?;
    history.remove(PLAIN, "a")?;
    history.remove(PLAIN, "unasked")?;
    history.settle(reader)?;
    history.put(PLAIN, "a", "3")?;
    history.settle(reader)?;
    history.remove(PLAIN, "a")?;
    history.put(PLAIN, "a", "4")?;
    history.settle(reader)?;
    history.unsubscribe(reader, "a")?;
    history.put(PLAIN, "a", "5")?;
    history.remove(PLAIN, "b")?;
    history.settle(reader)?;
    history.subscribe(reader, "a")?;
    history.settle(reader)
}

/// Everything, when there is nothing and when there is something; a wildcard that is left hears no more.
fn wildcard<S: Edit>(history: &mut History<S>) -> Step {
    let early = history.open(PLAIN, &["*"])?;
    expect_empty_answer(history)?;
    history.settle(early)?;
    for name in ["a", "b", "c", "d"] {
        history.put(PLAIN, name, "1")?;
    }
    let late = history.open(PLAIN, &["*"])?;
    history.pull(late, Removals::Include)?;
    history.put(PLAIN, "a", "2")?;
    history.remove(PLAIN, "b")?;
    history.settle_all()?;
    history.unsubscribe(late, "*")?;
    history.put(PLAIN, "c", "2")?;
    history.remove(PLAIN, "d")?;
    history.settle_all()
}

/// One level of a tree, empty and not (rules 97, 98, 99).
fn globs<S: Edit>(history: &mut History<S>) -> Step {
    history.put(TREE, &member(GLOB, "deep/a"), "1")?;
    let reader = history.open(TREE, &[GLOB, OTHER])?;
    history.settle(reader)?;
    history.put(TREE, &member(GLOB, "a"), "1")?;
    history.put(TREE, &member(GLOB, "b"), "1")?;
    history.settle(reader)?;
    history.remove(TREE, &member(GLOB, "a"))?;
    history.settle(reader)?;
    history.remove(TREE, &member(GLOB, "b"))?;
    history.settle(reader)?;
    history.put(TREE, &member(GLOB, "a"), "2")?;
    history.put(TREE, &member(OTHER, "a"), "1")?;
    history.settle(reader)?;
    history.unsubscribe(reader, GLOB)?;
    history.put(TREE, &member(GLOB, "a"), "3")?;
    history.settle(reader)
}

/// What is asked for in more than one way is told once (rule 103).
fn overlap<S: Edit>(history: &mut History<S>) -> Step {
    for name in ["a", "b", "c"] {
        history.put(PLAIN, name, "1")?;
        history.put(TREE, &member(GLOB, name), "1")?;
    }
    history.open(PLAIN, &["a", "*", "b"])?;
    history.open(TREE, &[GLOB, &member(GLOB, "b"), &member(GLOB, "none")])?;
    history.settle_all()?;
    for name in ["b", "a", "none"] {
        history.put(PLAIN, name, "2")?;
        history.put(TREE, &member(GLOB, name), "2")?;
    }
    history.settle_all()?;
    history.remove(PLAIN, "b")?;
    history.remove(TREE, &member(GLOB, "b"))?;
    history.settle_all()
}

/// What is asked for once more is told once more, as it is, and what is not there too (rules 48, 108).
fn again<S: Edit>(history: &mut History<S>) -> Step {
    history.put(PLAIN, "a", "1")?;
    history.put(PLAIN, "b", "1")?;
    let names = history.open(PLAIN, &["a", "none"])?;
    let all = history.open(PLAIN, &["*"])?;
    history.settle_all()?;
    history.subscribe(names, "a")?;
    history.subscribe(names, "none")?;
    history.subscribe(all, "*")?;
    history.settle_all()?;
    history.put(TREE, &member(GLOB, "a"), "1")?;
    let glob = history.open(TREE, &[GLOB])?;
    history.settle(glob)?;
    history.subscribe(glob, GLOB)?;
    history.settle(glob)?;
    // It went, and before that is told it is asked for.
    history.remove(PLAIN, "a")?;
    history.subscribe(names, "a")?;
    history.subscribe(all, "*")?;
    history.settle_all()
}

/// What is left and covered by something else is told once more (rules 52, 53).
fn left<S: Edit>(history: &mut History<S>) -> Step {
    history.put(PLAIN, "a", "1")?;
    let all = history.open(PLAIN, &["*", "a"])?;
    history.settle(all)?;
    history.unsubscribe(all, "a")?;
    history.settle(all)?;
    history.put(TREE, &member(GLOB, "a"), "1")?;
    let glob = history.open(TREE, &[GLOB, &member(GLOB, "a")])?;
    history.settle(glob)?;
    history.unsubscribe(glob, &member(GLOB, "a"))?;
    history.settle(glob)?;
    history.unsubscribe(glob, GLOB)?;
    history.unsubscribe(glob, GLOB)?;
    history.settle(glob)
}

/// Who has something is told what it has not, and what is gone by now (rules 83 to 87).
fn resumed<S: Edit>(history: &mut History<S>) -> Step {
    for (name, version) in [("a", "1"), ("b", "2"), ("c", "1")] {
        history.put(PLAIN, name, version)?;
        history.put(TREE, &member(GLOB, name), version)?;
    }
    history.remove(PLAIN, "c")?;
    history.open_with(PLAIN, &["*"], &[("a", "1"), ("b", "1"), ("c", "1"), ("never", "1")])?;
    history.settle_all()?;
    history.open_with(PLAIN, &["a", "b", "c"], &[("a", "1"), ("b", "1"), ("c", "1"), ("unasked", "1")])?;
    history.settle_all()?;
    let [a, b, gone] = ["a", "b", "gone"].map(|name| member(GLOB, name));
    history.open_with(TREE, &[GLOB], &[(&*a, "1"), (&*b, "1"), (&*gone, "1")])?;
    history.settle_all()?;
    history.put(PLAIN, "a", "2")?;
    history.put(TREE, &a, "2")?;
    history.settle_all()
}

/// Of a subscriber that is closed nothing is left, and another is none the worse for it (rule 12).
fn anew<S: Edit>(history: &mut History<S>) -> Step {
    history.put(PLAIN, "a", "1")?;
    let stays = history.open(PLAIN, &["*"])?;
    let goes = history.open(PLAIN, &["a", "none", "*"])?;
    history.pull(goes, Removals::Include)?;
    history.close(goes);
    history.put(PLAIN, "a", "2")?;
    history.remove(PLAIN, "none")?;
    history.settle(stays)?;
    let comes = history.open(PLAIN, &["a"])?;
    history.settle(comes)?;
    history.put(PLAIN, "b", "1")?;
    history.settle_all()
}

/// Removals wait for who asks for that, and what never was there does not (rules 122, 158).
fn additions_first<S: Edit>(history: &mut History<S>) -> Step {
    for name in ["a", "b", "c"] {
        history.put(PLAIN, name, "1")?;
    }
    let all = history.open(PLAIN, &["*"])?;
    let names = history.open(PLAIN, &["a", "b"])?;
    history.settle_all()?;
    history.remove(PLAIN, "a")?;
    history.put(PLAIN, "b", "2")?;
    history.put(PLAIN, "d", "1")?;
    history.subscribe(names, "none")?;
    for reader in [all, names] {
        history.settle_additions(reader)?;
        history.settle_additions(reader)?;
    }
    history.remove(PLAIN, "b")?;
    history.put(PLAIN, "a", "2")?;
    history.settle_additions(all)?;
    history.settle_all()
}

/// Names of two types have nothing to do with each other (rule 7).
fn types_apart<S: Edit>(history: &mut History<S>) -> Step {
    history.put(PLAIN, "a", "1")?;
    history.put(TREE, "a", "2")?;
    history.open(PLAIN, &["a", "*"])?;
    history.open(TREE, &["a"])?;
    history.settle_all()?;
    history.remove(TREE, "a")?;
    history.put(PLAIN, "a", "3")?;
    history.settle_all()
}
