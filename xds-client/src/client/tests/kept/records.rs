//! A store has a record of each scope that anything is kept of, and of no other, whenever a program ends.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use super::*;
use crate::state::{Commit, Compare, Listing, Memory, Op, Revision, StoreError, Watch as Changes};

const SCOPES: &str = "xds-relay/v1/scope/";
const KNOWN: &str = "xds-relay/v1/known/";
const DAY: Duration = Duration::from_secs(24 * 3600);
/// More of two of these than is written at once.
const LARGE: usize = 9 << 20;

/// A store in memory, of which that is so after each commit. Clones are the same store.
#[derive(Clone, Default)]
pub(super) struct Checked {
    inner: Memory,
    fails: Arc<Mutex<Option<Fails>>>,
}

/// What becomes of a commit that is said to have failed.
#[derive(Clone, Copy, Debug)]
enum Fails {
    Undone,
    Done,
    /// The same from the second on.
    AfterOne,
}

impl Store for Checked {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.inner.list(prefix)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Changes, StoreError> {
        self.inner.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        let fails = &mut *self.fails.lock().unwrap();
        let failed = || Err(io::Error::other("no space").into());
        if let Some(Fails::Undone) = fails {
            return failed();
        }
        let done = self.inner.commit(ops, compares);
        assert_eq!(self.records(), self.inhabited());
        match fails {
            Some(Fails::Done) => failed(),
            Some(after @ Fails::AfterOne) => {
                *after = Fails::Undone;
                done
            }
            _ => done,
        }
    }
}

impl Checked {
    fn behind(&self, prefix: &str) -> BTreeSet<String> {
        let entries = self.inner.list(prefix).unwrap().entries.into_iter();
        entries.map(|entry| entry.key[prefix.len()..].split('/').next().unwrap_or_default().to_owned()).collect()
    }

    /// The scopes that it has a record of.
    fn records(&self) -> BTreeSet<String> {
        self.behind(SCOPES)
    }

    /// Those that anything is kept of.
    fn inhabited(&self) -> BTreeSet<String> {
        self.behind(KNOWN)
    }

    fn fail(&self, fails: impl Into<Option<Fails>>) {
        *self.fails.lock().unwrap() = fails.into();
    }
}

impl Program {
    fn records(&self) -> usize {
        self.store.records().len()
    }

    /// Time passes, and what changed is written, if that can be.
    fn passes(&self, time: Duration) {
        self.world.network.pass(time);
        let now = self.world.network.now();
        let _ = self.world.client.save(now, self.began.1 + now.duration_since(self.began.0));
    }
}

#[test]
fn of_a_scope_that_was_only_seen_nothing_is_written() {
    whatever(|mut program, protocol| {
        let names = ["x".to_owned(), xdstp("a", CDS, "x")];
        program.top().be_silent(true);
        let watches = names.each_ref().map(|name| program.world.watch(name));
        program.save();
        program.passes(SECOND);
        program.top().go_down("away");
        program.passes(100 * SECOND);
        program.passes(8 * DAY);
        assert_eq!((program.records(), program.store.inhabited().len()), (0, 0), "{protocol:?}");
        drop(watches);
        program.restart(protocol);
        assert_eq!(program.records(), 0, "{protocol:?}");
    });
}

#[test]
fn nor_of_one_that_has_nothing_though_its_server_says_so() {
    whatever(|program, protocol| {
        let mut watch = program.world.watch_raw(EDS, "x");
        program.passes(100 * SECOND);
        assert!(heard(&mut watch).last().is_some_and(|said| said.starts_with("failed")), "{protocol:?}");
        let before = program.store.list("").unwrap().revision;
        drop(watch);
        program.passes(SECOND);
        program.passes(SECOND);
        assert_eq!((program.records(), program.store.list("").unwrap().revision), (0, before), "{protocol:?}");
    });
}

#[test]
fn the_record_of_a_scope_comes_with_its_first_resource_and_goes_with_its_last() {
    let mut program = Program::of(Protocol::Delta, DROPS);
    let names = ["x", "y"];
    let watches = names.map(|name| program.world.watch(name));
    program.passes(SECOND);
    assert_eq!(program.records(), 0);
    for name in names {
        program.world.put(CDS, name, "1");
        program.passes(SECOND);
        assert_eq!((program.records(), program.keeps(name)), (1, true), "{name}");
    }
    for (name, left) in [("x", 1), ("y", 0)] {
        program.top().remove(CDS, name);
        program.passes(SECOND);
        assert_eq!((program.records(), program.keeps(name)), (left, false), "{name}");
    }
    program.world.put(CDS, "x", "2");
    program.passes(SECOND);
    assert_eq!(program.records(), 1);
    program.top().go_down("away");
    drop(watches);
    program.restart(Protocol::Delta);
    assert_eq!(heard(&mut program.world.watch("x")).first().map(String::as_str), Some("put x 2"));
}

#[test]
fn the_record_goes_with_what_nobody_watches_any_more() {
    whatever(|program, protocol| {
        program.world.put(CDS, "x", "1");
        let watch = program.world.watch("x");
        program.passes(SECOND);
        drop(watch);
        program.passes(SECOND);
        assert_eq!(program.records(), 1, "{protocol:?}");
        program.passes(605 * SECOND);
        assert_eq!((program.records(), program.keeps("x")), (0, false), "{protocol:?}");
    });
}

/// A collection has no body; what was read of it counts as what was written.
#[test]
fn the_record_goes_with_what_was_read_and_nobody_watches_any_more() {
    whatever(|mut program, protocol| {
        program.world.put(CDS, "x", "1");
        let watches = ["*", "x"].map(|name| program.world.watch(name));
        program.passes(SECOND);
        assert!(program.keeps("*") && program.keeps("x"), "{protocol:?}");
        drop(watches);
        program.restart(protocol);
        let watches = ["*", "x"].map(|name| program.world.watch(name));
        program.passes(SECOND);
        program.passes(SECOND);
        drop(watches);
        program.passes(SECOND);
        assert_eq!(program.records(), 1, "{protocol:?}");
        program.passes(605 * SECOND);
        program.passes(SECOND);
        let left: Vec<_> = program.keys().into_iter().filter(|key| key.starts_with(KNOWN)).collect();
        assert_eq!((program.records(), left), (0, vec![]), "{protocol:?}");
    });
}

#[test]
fn a_commit_that_fails_has_a_scope_and_what_is_kept_of_it_or_neither() {
    for fails in [Fails::Undone, Fails::Done] {
        for ends in [false, true] {
            let mut program = Program::of(Protocol::Delta, DROPS);
            program.world.put(CDS, "x", "1");
            let mut watch = program.world.watch("x");
            program.store.fail(fails);
            program.passes(SECOND);
            // It may be otherwise by the time that it is tried again.
            program.top().remove(CDS, "x");
            program.passes(SECOND);
            program.world.put(CDS, "x", "2");
            program.passes(SECOND);
            let is_done = matches!(fails, Fails::Done);
            assert_eq!(program.records(), usize::from(is_done), "{fails:?}");
            program.store.fail(None);
            if !ends {
                program.passes(SECOND);
                assert_eq!(program.records(), 1, "{fails:?}");
            }
            program.top().go_down("away");
            drop(watch);
            program.restart(Protocol::Delta);
            watch = program.world.watch("x");
            let is_there = !ends || is_done;
            assert_eq!(heard(&mut watch).contains(&"put x 2".to_owned()), is_there, "{fails:?} {ends}");
        }
    }
}

#[test]
fn who_ends_between_two_commits_finds_the_scopes_of_the_first_whole() {
    let mut program = Program::new(Protocol::Delta);
    let names = ["x".to_owned(), xdstp("a", EDS, "x"), xdstp("a", EDS, "y")];
    for name in &names {
        program.top().put(EDS, name, "1", &vec![0; LARGE]);
    }
    let watches = names.each_ref().map(|name| program.world.watch_raw(EDS, name));
    program.store.fail(Fails::AfterOne);
    program.passes(SECOND);
    assert_eq!(program.records(), 1, "one is more than enough at once");
    program.passes(SECOND);
    assert_eq!(program.records(), 1);
    program.store.fail(None);
    program.top().go_down("away");
    drop(watches);
    program.restart(Protocol::Delta);
    assert_eq!(program.records(), 1);
    let mut watches = names.each_ref().map(|name| program.world.watch_raw(EDS, name));
    let served = watches.each_mut().map(|watch| heard(watch).iter().any(|said| said.starts_with("put")));
    let kept = names.each_ref().map(|name| program.keeps(name));
    assert_eq!(served, kept);
    assert!(kept.contains(&true) && kept.contains(&false), "{kept:?}");
}

/// Another version wrote one of each scope that it saw.
#[test]
fn a_record_of_a_scope_that_nothing_is_kept_of_goes_at_the_next_start() {
    let mut program = Program::new(Protocol::Delta);
    let names = ["x".to_owned(), xdstp("a", CDS, "x")];
    for name in &names {
        program.world.put(CDS, name, "1");
    }
    let watches = names.each_ref().map(|name| program.world.watch(name));
    program.save();
    assert_eq!(program.records(), 2);
    let keys = program.keys().into_iter().filter(|key| key.starts_with(KNOWN) && key.ends_with("\0x"));
    let _ = program.store.inner.commit(&keys.map(Op::Delete).collect::<Vec<_>>(), &[]).unwrap();
    assert_eq!((program.records(), program.store.inhabited().len()), (2, 1));
    program.top().go_down("away");
    drop(watches);
    program.restart(Protocol::Delta);
    assert_eq!(program.records(), 1);
    assert_eq!(heard(&mut program.world.watch(&names[1])).first(), Some(&format!("put {} 1", names[1])));
}

#[test]
fn it_is_said_each_day_of_a_scope_that_is_used_and_has_something_and_of_no_other() {
    let program = Program::new(Protocol::Delta);
    program.world.put(CDS, "x", "1");
    let _watches = ["x".to_owned(), xdstp("a", CDS, "x")].map(|name| program.world.watch(&name));
    program.passes(SECOND);
    let written = |program: &Program| {
        let records = program.store.list(SCOPES).unwrap().entries;
        records.iter().map(|record| record.revision).collect::<Vec<_>>()
    };
    let first = written(&program);
    program.passes(DAY / 2);
    assert_eq!(written(&program), first);
    for _ in 0..3 {
        let before = written(&program);
        program.passes(DAY + DAY / 12);
        let after = written(&program);
        assert!(after.len() == 1 && after[0] > before[0], "{before:?} {after:?}");
    }
}
