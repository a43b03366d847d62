//! A resource has another name, has it no more, and a program begins anew, by chance: no name that a server said is gone leads
//! anywhere because of what was kept.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 2] = ["x", "y"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Watch(usize),
    Leave(usize),
    /// `x` is there, as `y` or not.
    Put(bool),
    Remove,
    /// It is not there as `y` any more, and who says nothing else says that.
    Unname,
    Silent(bool),
    Save,
    Restart,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..2_usize).prop_map(Step::Watch),
        2 => (0..2_usize).prop_map(Step::Leave),
        3 => any::<bool>().prop_map(Step::Put),
        1 => Just(Step::Remove),
        3 => Just(Step::Unname),
        3 => any::<bool>().prop_map(Step::Silent),
        3 => Just(Step::Save),
        3 => Just(Step::Restart),
        2 => prop_oneof![0..3_u64, 10..20_u64].prop_map(Step::Pass),
    ]
}

struct History {
    program: Program,
    watches: [Option<Watch<Cluster>>; 2],
    /// The server has `x`, and that is `y`.
    there: [bool; 2],
    /// The last that a server said of a name in this run: that it is gone.
    gone: [bool; 2],
    version: usize,
    /// The versions of `x` that are `y`, too.
    named: BTreeSet<String>,
}

impl History {
    fn new() -> Self {
        let program = Program::of(Protocol::Delta, DROPS);
        Self { program, watches: [None, None], there: [false; 2], gone: [false; 2], version: 0, named: BTreeSet::new() }
    }

    fn act(&mut self, step: Step) {
        self.version += 1;
        let (top, version) = (self.program.top(), self.version.to_string());
        match step {
            Step::Watch(at) => {
                if self.watches[at].is_none() {
                    self.watches[at] = Some(self.program.world.client.watch_as(NAMES[at]));
                }
            }
            Step::Leave(at) => self.watches[at] = None,
            Step::Put(named) => {
                if named {
                    top.put_by_alias(CDS, ("x", "y"), &version, &message("x", &version));
                    self.named.insert(version);
                } else {
                    top.put(CDS, "x", &version, &message("x", &version));
                }
                self.there = [true, named];
            }
            Step::Remove => {
                top.remove(CDS, "x");
                self.there = [false; 2];
            }
            Step::Unname => {
                if self.there[0] {
                    top.put(CDS, "x", &version, &message("x", &version));
                }
                self.there[1] = false;
                if self.watches[1].is_some() {
                    say_gone(&self.program, &["y"]);
                }
            }
            Step::Silent(silent) => top.be_silent(silent),
            Step::Save => self.program.save(),
            Step::Restart => {
                (self.watches, self.gone) = ([None, None], [false; 2]);
                self.program.restart(Protocol::Delta);
            }
            Step::Pass(seconds) => self.program.world.network.pass(Duration::from_secs(seconds)),
        }
        self.program.world.network.settle();
    }

    fn look(&mut self, after: Step) {
        for (at, watch) in self.watches.iter_mut().enumerate() {
            let Some(watch) = watch else { continue };
            while let Some(event) = watch.try_next() {
                match event {
                    Event::Put { version, .. } => {
                        let is_kept = watch.is_stale() || !self.there[at];
                        assert!(!(is_kept && self.gone[at]), "{} is gone, {after:?}", NAMES[at]);
                        self.gone[at] = false;
                        // Who watches the one is told of the other by that (rule 105).
                        self.gone[1] &= watch.is_stale() || !self.named.contains(&version.to_string());
                    }
                    Event::Failed { error: Error::Absent, .. } => self.gone[at] = true,
                    _ => {}
                }
            }
        }
    }

    /// What each name has after a restart, though nobody is there, is what it had.
    fn begin_again(&mut self) {
        self.act(Step::Silent(false));
        self.act(Step::Pass(100));
        let watched = self.watches.each_ref().map(Option::is_some);
        self.act(Step::Save);
        self.program.top().go_down("away");
        self.act(Step::Restart);
        (0..2).for_each(|at| self.act(Step::Watch(at)));
        self.act(Step::Pass(1));
        for at in (0..2).filter(|at| watched[*at]) {
            let said = heard(self.watches[at].as_mut().unwrap());
            let is_put = said.iter().any(|said| said.starts_with("put"));
            assert_eq!(is_put, self.there[at], "{}: {said:?}", NAMES[at]);
        }
    }
}

fn runs(steps: &[Step]) {
    let mut history = History::new();
    for step in steps {
        history.act(*step);
        history.look(*step);
    }
    history.begin_again();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_name_that_is_gone_leads_anywhere_because_of_what_was_kept(
        steps in proptest::collection::vec(step(), 1..25),
    ) {
        runs(&steps);
    }
}

/// One of each kind that was a fault once: chance is not to be needed to come by them.
#[test]
fn what_led_somewhere_once_though_it_was_gone_does_not_again() {
    use Step::{Leave, Put, Save, Silent, Watch};
    // It is not there by its other name any more, and left before anybody has written that.
    runs(&[Watch(1), Watch(0), Put(true), Save, Put(false), Leave(0)]);
    // It is there by a name that was gone: who watches it is told so, and its server says nothing more.
    runs(&[Watch(1), Watch(0), Leave(1), Put(true), Silent(true), Put(false), Watch(1)]);
}
