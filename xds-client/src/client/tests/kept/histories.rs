//! A program begins anew, and its server comes and goes, by chance: what is there is what a server said last, or what was kept of
//! that, and nothing else takes anything away.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const NAMES: usize = 3;
/// Longer than two waits between attempts.
const LONG: u64 = 400;

#[derive(Clone, Copy, Debug)]
enum Step {
    Watch(usize),
    Leave(usize),
    Put(usize),
    Remove(usize),
    Down(bool),
    Silent(bool),
    End,
    Save,
    Restart,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES;
    prop_oneof![
        4 => name.clone().prop_map(Step::Watch),
        2 => name.clone().prop_map(Step::Leave),
        3 => name.clone().prop_map(Step::Put),
        2 => name.prop_map(Step::Remove),
        2 => any::<bool>().prop_map(Step::Down),
        2 => any::<bool>().prop_map(Step::Silent),
        1 => Just(Step::End),
        4 => Just(Step::Save),
        2 => Just(Step::Restart),
        3 => prop_oneof![0..3_u64, 10..20_u64, 60..70_u64].prop_map(Step::Pass),
    ]
}

/// What is known of one name.
#[derive(Default)]
struct Name {
    watch: Option<Watch>,
    /// What the server has, and had ever.
    there: Option<String>,
    ever: BTreeSet<String>,
    /// What the watch has.
    has: Option<String>,
    /// What a server told this program last: that it is there, or not.
    told: Option<Option<String>>,
    /// What of that may have been written down last: what was left, the client has for a while.
    kept: BTreeSet<Option<String>>,
    /// For how many seconds nobody has watched it: what nobody watches is not kept for ever.
    left_for: u64,
    /// It was watched in this run before this watch, or that came late: what was kept is not at hand any more.
    is_late: bool,
    watched: bool,
}

impl Name {
    /// What nobody watches is known to be gone, or not known any more.
    fn save(&mut self) {
        if self.kept.is_empty() {
            self.kept.insert(None);
        }
        if let Some(told) = self.told.clone() {
            if self.watch.is_some() && self.has == told || told.is_none() {
                self.kept.clear();
                self.left_for = 0;
            }
            self.kept.insert(told);
        }
    }

    /// What may be read.
    fn may_be(&self, version: &Option<String>) -> bool {
        self.kept.contains(version) || version.is_none() && self.kept.is_empty()
    }

    /// What was left may be asked for still, and its removal be heard.
    fn is_left(&mut self) {
        if self.watch.is_none() && self.there.is_none() {
            self.kept.insert(None);
        }
    }

    fn is_aged(&self) -> bool {
        self.left_for > 500
    }
}

struct History {
    program: Program,
    protocol: Protocol,
    names: [Name; NAMES],
    version: usize,
    down: bool,
    silent: bool,
    /// For how many seconds the program has.
    ran: u64,
}

impl History {
    fn new(protocol: Protocol) -> Self {
        let (names, program) = ([(); NAMES].map(|()| Name::default()), Program::of(protocol, DROPS));
        Self { program, protocol, names, version: 0, down: false, silent: false, ran: 0 }
    }

    fn act(&mut self, step: Step) {
        self.version += 1;
        let (top, version) = (self.program.top(), self.version.to_string());
        match step {
            Step::Watch(at) => {
                let name = &mut self.names[at];
                if name.watch.is_none() {
                    name.is_late = name.watched || self.ran > 20;
                    name.watched = true;
                    (name.watch, name.has) = (Some(self.program.world.client.watch(CDS, &at.to_string())), None);
                }
            }
            Step::Leave(at) => {
                let name = &mut self.names[at];
                (name.watch, name.has) = (None, None);
                name.is_left();
            }
            Step::Put(at) => {
                top.put(CDS, &at.to_string(), &version, &message(&at.to_string(), &version));
                let name = &mut self.names[at];
                name.ever.insert(version.clone());
                name.there = Some(version);
            }
            Step::Remove(at) => {
                top.remove(CDS, &at.to_string());
                self.names[at].there = None;
                self.names[at].is_left();
            }
            Step::Down(true) => (self.down, _) = (true, top.go_down("away")),
            Step::Down(false) => (self.down, _) = (false, top.come_up()),
            Step::Silent(silent) => (self.silent, _) = (silent, top.be_silent(silent)),
            Step::End => top.end_streams(),
            Step::Save => {
                self.program.save();
                for name in &mut self.names {
                    name.save();
                }
            }
            Step::Restart => {
                for name in &mut self.names {
                    (name.watch, name.has, name.told, name.watched) = (None, None, None, false);
                }
                self.ran = 0;
                self.program.restart(self.protocol);
            }
            Step::Pass(seconds) => {
                self.ran += seconds;
                let left = self.names.iter_mut().filter(|name| name.watch.is_none());
                left.for_each(|name| name.left_for += seconds);
                self.program.world.network.pass(Duration::from_secs(seconds));
            }
        }
        self.program.world.network.settle();
    }

    /// Everything that was heard has a word for it.
    fn look(&mut self, after: Step) {
        let speaks = !self.down && !self.silent;
        for (at, name) in self.names.iter_mut().enumerate() {
            let is_aged = name.is_aged() || name.is_late;
            let Some(watch) = &mut name.watch else { continue };
            while let Some(event) = watch.try_next() {
                match event {
                    Event::Put { version, .. } => {
                        let version = version.to_string();
                        assert!(name.ever.contains(&version), "{at}: {version} was never there, {after:?}");
                        if watch.is_stale() {
                            let is_kept = name.kept.contains(&Some(version.clone()));
                            assert!(is_kept, "{at}: {version} is stale, and was not kept, {after:?}");
                        }
                        name.has = Some(version);
                    }
                    Event::Removed { .. } | Event::Failed { error: Error::Absent, .. } => {
                        assert!(speaks || name.has.is_none(), "{at}: nobody said that it is gone, {after:?}");
                        (name.has, name.told) = (None, Some(None));
                    }
                    Event::Failed { error: Error::Timeout { .. }, .. } => {
                        assert_eq!(name.has, None, "{at}: a silence took it, {after:?}");
                        assert!(
                            name.kept.is_empty() || name.kept.contains(&None) || is_aged,
                            "{at}: it was known, {after:?}"
                        );
                    }
                    _ => {}
                }
            }
            if !watch.is_stale()
                && let Some(has) = &name.has
            {
                name.told = Some(Some(has.clone()));
            }
        }
    }

    /// In the end all is as the server has it.
    fn settle(&mut self) {
        for step in [Step::Down(false), Step::Silent(false), Step::Pass(LONG)] {
            self.act(step);
            self.look(step);
        }
        for (at, name) in self.names.iter().enumerate() {
            // Over SotW who never has a name says nothing of it.
            let unsaid = self.protocol == Protocol::Sotw && name.there.is_none();
            if let Some(watch) = name.watch.as_ref().filter(|watch| !(unsaid && watch.is_stale())) {
                assert_eq!((&name.has, watch.is_stale()), (&name.there, false), "{at}");
            }
        }
    }

    /// What was kept is there after a restart, though nobody is.
    fn begin_again(&mut self) {
        for step in [Step::Save, Step::Down(true), Step::Restart] {
            self.act(step);
        }
        (0..NAMES).for_each(|at| self.act(Step::Watch(at)));
        self.act(Step::Pass(1));
        self.look(Step::Pass(1));
        for (at, name) in self.names.iter().enumerate().filter(|(_, name)| !name.is_aged()) {
            // What was left may have been asked for still as the server came back.
            let is_newer = || name.has == name.there;
            assert!(name.may_be(&name.has) || is_newer(), "{at}: {:?} after the last restart", name.has);
        }
    }
}

fn runs(protocol: Protocol, steps: &[Step]) {
    let mut history = History::new(protocol);
    for step in steps {
        history.act(*step);
        history.look(*step);
    }
    history.settle();
    history.begin_again();
}

proptest! {
    #[test]
    fn whatever_happens_what_is_there_is_what_was_said_last_or_kept(
        steps in proptest::collection::vec(step(), 1..30),
        delta in any::<bool>(),
    ) {
        runs(if delta { Protocol::Delta } else { Protocol::Sotw }, &steps);
    }
}
