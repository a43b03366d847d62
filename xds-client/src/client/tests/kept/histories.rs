//! A program begins anew, and its server comes and goes, by chance: what is there is what a server said last, or what was kept of
//! that, and nothing else takes anything away.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const NAMES: usize = 3;
/// Longer than two waits between attempts; and than what nobody watches is kept.
const LONG: [u64; 2] = [400, 700];

#[derive(Clone, Copy, Debug)]
enum Step {
    Watch(usize),
    Leave(usize),
    Put(usize),
    Remove(usize),
    Down(bool),
    Silent(bool),
    End,
    /// Everything is watched, or not any more.
    All(bool),
    /// The server is away, and another one says something, of no name and long nothing else.
    Switch,
    /// All watches are left, and what they were of is dropped before they are there again.
    Sweep,
    Save,
    /// With what was watched, or without.
    Restart(bool),
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
        2 => any::<bool>().prop_map(Step::All),
        1 => Just(Step::Switch),
        2 => Just(Step::Sweep),
        4 => Just(Step::Save),
        3 => any::<bool>().prop_map(Step::Restart),
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
    setting: Setting,
    names: [Name; NAMES],
    version: usize,
    down: bool,
    silent: bool,
    /// For how many seconds the program has.
    ran: u64,
    /// What is watched beside: everything, and what only the other server has.
    all: Option<Watch>,
    /// The server has spoken of everything, in this run: whoever watches a name later may be told that it is gone.
    all_is_told: bool,
    /// What that has had in this run.
    all_had: BTreeMap<String, BTreeSet<String>>,
    other: Option<Watch>,
}

/// In which world it happens.
#[derive(Clone, Copy, Debug)]
struct Setting {
    protocol: Protocol,
    /// What is deleted is used on.
    keeps: bool,
    /// There is another server, which says nothing of any name.
    two: bool,
    long: u64,
}

impl History {
    fn new(setting: Setting) -> Self {
        let Setting { protocol, keeps, two, .. } = setting;
        let servers: &[_] = if two { &[TOP, SECOND_SERVER] } else { &[TOP] };
        let program = Program::at(protocol, if keeps { KEEPS } else { DROPS }, servers);
        program.world.network.server(SECOND_SERVER).be_silent(true);
        let names = [(); NAMES].map(|()| Name::default());
        let (all, all_is_told, all_had) = (None, false, BTreeMap::new());
        Self {
            program,
            setting,
            names,
            version: 0,
            down: false,
            silent: false,
            ran: 0,
            all,
            all_is_told,
            all_had,
            other: None,
        }
    }

    /// Nothing is watched. What was, is returned.
    fn leave_all(&mut self) -> Vec<usize> {
        (self.all, self.other) = (None, None);
        let watched = (0..NAMES).filter(|at| self.names[*at].watch.is_some()).collect();
        self.names.iter_mut().for_each(|name| (name.watch, name.has) = (None, None));
        watched
    }

    fn watch_again(&mut self, all: bool, watched: &[usize]) {
        self.act(Step::All(all));
        watched.iter().for_each(|at| self.act(Step::Watch(*at)));
    }

    fn act(&mut self, step: Step) {
        self.version += 1;
        let (top, version) = (self.program.top(), self.version.to_string());
        match step {
            Step::Watch(at) => {
                let name = &mut self.names[at];
                if name.watch.is_none() {
                    name.is_late = name.watched || self.ran > 20 || self.all_is_told;
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
            Step::All(true) if self.all.is_none() => self.all = Some(self.program.world.client.watch(CDS, "*")),
            Step::All(true) => {}
            Step::All(false) => self.all = None,
            Step::Switch if self.setting.two => {
                self.act(Step::Down(true));
                self.other = Some(self.program.world.client.watch(EDS, &version));
                self.act(Step::Pass(5));
                speak(&self.program.world.network.server(SECOND_SERVER), self.setting.protocol, &version);
                self.act(Step::Pass(40));
            }
            Step::Switch => {}
            Step::Sweep => {
                let all = self.all.is_some();
                let watched = self.leave_all();
                self.program.world.network.settle();
                self.program.world.client.sweep(self.program.world.network.now());
                self.watch_again(all, &watched);
            }
            Step::Save => {
                self.program.save();
                for (at, name) in self.names.iter_mut().enumerate() {
                    name.save();
                    // Whether that was said of it or kept, everything does not tell.
                    name.kept.extend(self.all_had.get(&at.to_string()).into_iter().flatten().cloned().map(Some));
                }
            }
            Step::Restart(again) => {
                let all = self.all.is_some();
                let watched = self.leave_all();
                for name in &mut self.names {
                    (name.told, name.watched) = (None, false);
                }
                (self.ran, self.all_is_told, self.all_had) = (0, false, BTreeMap::new());
                self.program.restart(self.setting.protocol);
                if again {
                    self.watch_again(all, &watched);
                }
            }
            Step::Pass(seconds) => {
                self.ran += seconds;
                let left = self.names.iter_mut().filter(|name| name.watch.is_none());
                left.for_each(|name| name.left_for += seconds);
                self.program.world.network.pass(Duration::from_secs(seconds));
            }
        }
        self.program.world.network.settle();
        self.all_is_told |= self.all.is_some() && !self.down && !self.silent;
    }

    /// What everything has: nothing of it goes by itself.
    fn look_at_all(&mut self, after: Step) {
        let speaks = !self.down && !self.silent;
        let Some(all) = &mut self.all else { return };
        while let Some(event) = all.try_next() {
            match event {
                Event::Put { name, version, .. } => {
                    self.all_had.entry(name.to_string()).or_default().insert(version.to_string());
                }
                Event::Removed { name } => {
                    assert!(speaks, "{name}: nobody said that it is gone, {after:?}");
                    self.all_had.remove(name.as_str());
                    let at: usize = name.as_str().parse().unwrap();
                    let of = &mut self.names[at];
                    if of.watch.is_none() {
                        of.told = Some(None);
                    }
                }
                _ => {}
            }
        }
    }

    /// Everything that was heard has a word for it.
    fn look(&mut self, after: Step) {
        self.look_at_all(after);
        let speaks = !self.down && !self.silent;
        let keeps = self.setting.keeps;
        // Over SotW all that there is says of every name whether it is there.
        let all_is_said = self.setting.protocol == Protocol::Sotw && self.all.is_some();
        for (at, name) in self.names.iter_mut().enumerate() {
            let is_aged = name.is_aged() || name.is_late || all_is_said;
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
                        let may_lack = name.kept.is_empty() || name.kept.contains(&None) || is_aged;
                        assert!(!keeps || name.has.is_none() && may_lack, "{at}: it is to be used on, {after:?}");
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
        for step in [Step::Down(false), Step::Silent(false), Step::Pass(self.setting.long)] {
            self.act(step);
            self.look(step);
        }
        for (at, name) in self.names.iter().enumerate() {
            // Over SotW who never has a name says nothing of it.
            let unsaid = self.setting.protocol == Protocol::Sotw && name.there.is_none();
            if let Some(watch) = name.watch.as_ref().filter(|watch| !(unsaid && watch.is_stale())) {
                assert!(!watch.is_stale(), "{at}");
                assert!(name.has == name.there || self.setting.keeps && name.there.is_none(), "{at}: {:?}", name.has);
            }
        }
    }

    /// What was kept is there after a restart, though nobody is.
    fn begin_again(&mut self) {
        for step in [Step::Save, Step::Down(true), Step::Restart(false)] {
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

fn runs(setting: Setting, steps: &[Step]) {
    let mut history = History::new(setting);
    for step in steps {
        history.act(*step);
        history.look(*step);
    }
    history.settle();
    history.begin_again();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_what_is_there_is_what_was_said_last_or_kept(
        steps in proptest::collection::vec(step(), 1..30),
        delta in any::<bool>(),
        keeps in any::<bool>(),
        two in any::<bool>(),
        long in 0..LONG.len(),
    ) {
        let protocol = if delta { Protocol::Delta } else { Protocol::Sotw };
        runs(Setting { protocol, keeps, two, long: LONG[long] }, &steps);
    }
}

/// One of each kind that was a fault once: chance is not to be needed to come by them.
#[test]
fn what_went_wrong_once_does_not_again() {
    use Step::{All, Down, Leave, Pass, Put, Remove, Restart, Save, Silent, Sweep, Switch, Watch};
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        for keeps in [false, true] {
            for two in [false, true] {
                let setting = Setting { protocol, keeps, two, long: LONG[1] };
                for steps in [
                    &[Put(0), Watch(0), Save, Sweep, Save][..],
                    &[All(true), Put(0), Switch],
                    &[Put(0), Watch(0), Save, Remove(0), Restart(true)],
                    &[Watch(0), All(true), Put(0), Remove(0), Save, Restart(true)],
                    &[Put(0), Watch(0), Save, Down(true), Restart(true), Pass(2), Remove(0), Down(false)],
                    &[Put(0), All(true), Save, Silent(true), Watch(0), Remove(0), Sweep, Leave(0)],
                ] {
                    LONG.into_iter().for_each(|long| runs(Setting { long, ..setting }, steps));
                }
            }
        }
    }
}
