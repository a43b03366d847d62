//! What a server says of how names are asked for changes by chance, and so does all else.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::dpds::{cluster, dpds, map, world};
use super::*;

const ENVS: [&str; 3] = ["prod", "test", "qa"];
/// The members that a collection has for each.
const MEMBERS: [&[&str]; 3] = [&["1", "2"], &["1", "3"], &[]];
/// Longer than two waits between attempts.
const LONG: Duration = Duration::from_secs(400);
const DPDS: &str = "type.googleapis.com/envoy.config.dynamic_parameters.v3.DynamicParameterConstraintsMap";

#[derive(Clone, Copy, Debug)]
enum Step {
    Say(usize),
    /// It says nothing of use.
    Spoil,
    /// It is not there any more.
    Delete,
    Put(usize),
    Down(bool),
    Silent(bool),
    End,
    Pass(u64),
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    let env = 0..ENVS.len();
    prop_oneof![
        4 => env.clone().prop_map(Step::Say),
        1 => Just(Step::Spoil),
        1 => Just(Step::Delete),
        3 => env.prop_map(Step::Put),
        1 => any::<bool>().prop_map(Step::Down),
        1 => any::<bool>().prop_map(Step::Silent),
        1 => Just(Step::End),
        3 => prop_oneof![0..5_u64, 10..20_u64, 100..300_u64].prop_map(Step::Pass),
        4 => Just(Step::Look),
    ]
}

struct History {
    world: World,
    authority: &'static str,
    one: Watch<Cluster>,
    /// Over delta.
    all: Option<Watch<Cluster>>,
    /// What was told of the one, and of the members.
    content: Option<String>,
    members: BTreeMap<String, String>,
    /// Something is wrong with the one, and was told.
    wrong: bool,
    version: usize,
}

impl History {
    fn new(protocol: Protocol, authority: &'static str) -> Self {
        let world = world(protocol, authority, KEEPS);
        let one = world.client.watch_as(&cluster("x"));
        let all = (protocol == Protocol::Delta).then(|| world.client.watch_as(&cluster("d/*")));
        let (content, members) = (None, BTreeMap::new());
        Self { world, authority, one, all, content, members, wrong: false, version: 0 }
    }

    fn server(&self) -> crate::test::Server {
        self.world.network.server(if self.authority == "a" { TOP } else { OTHER })
    }

    fn act(&mut self, step: Step) {
        self.version += 1;
        let (server, version) = (self.server(), self.version.to_string());
        match step {
            Step::Say(env) => server.put(DPDS, &dpds(self.authority), &version, &map(CDS, "env", ENVS[env])),
            Step::Spoil => server.put(DPDS, &dpds(self.authority), &version, b"\x08\x01"),
            Step::Delete => server.remove(DPDS, &dpds(self.authority)),
            Step::Put(env) => self.put(env),
            Step::Down(true) => server.go_down("away"),
            Step::Down(false) => server.come_up(),
            Step::Silent(silent) => server.be_silent(silent),
            Step::End => server.end_streams(),
            Step::Pass(seconds) => self.world.network.pass(Duration::from_secs(seconds)),
            Step::Look => {}
        }
        self.world.network.settle();
    }

    /// What there is of an environment is new; a part of that is the same in all of them.
    fn put(&self, env: usize) {
        let content = format!("{} {}", ENVS[env], self.version / 5);
        for id in MEMBERS[env].iter().map(|member| format!("d/{member}")).chain(["x".to_owned()]) {
            let content = if id.ends_with('1') { "common" } else { &content };
            self.world.put_for(ENVS[env], &cluster(&id), content);
        }
    }

    fn look(&mut self) -> Result<(), TestCaseError> {
        while let Some(event) = self.one.try_next() {
            let words = words(&event);
            match event {
                Event::Put { resource, .. } => {
                    let is_news = self.wrong || self.content.as_ref() != Some(&resource.0);
                    prop_assert!(is_news, "{}: what is as it was is no news", words);
                    (self.content, self.wrong) = (Some(resource.0.clone()), false);
                }
                Event::Failed { .. } => prop_assert!(self.content.is_none(), "{}: it is taken away", words),
                Event::Ambient { error: Some(_), .. } => self.wrong = true,
                _ => {}
            }
        }
        while let Some(event) = self.all.as_mut().and_then(Watch::try_next) {
            match event {
                Event::Put { name, resource, .. } => _ = self.members.insert(name.to_string(), resource.0.clone()),
                Event::Removed { name } => {
                    let was_there = self.members.remove(name.as_str()).is_some();
                    prop_assert!(was_there, "{}: it was not there", name);
                }
                Event::Failed { name: Some(name), error } => prop_assert!(false, "{}: {}", name, error),
                _ => {}
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r084_watches_come_to_what_is_said_last_and_nothing_is_taken_away_before(
        steps in proptest::collection::vec(step(), 1..25),
        last in 0..ENVS.len(),
        elsewhere in any::<bool>(),
        sotw in any::<bool>(),
    ) {
        let protocol = if sotw { Protocol::Sotw } else { Protocol::Delta };
        let mut history = History::new(protocol, if elsewhere { "other" } else { "a" });
        (0..ENVS.len()).for_each(|env| history.put(env));
        for step in steps {
            history.act(step);
            if let Step::Look = step {
                history.look()?;
            }
        }
        for step in [Step::Down(false), Step::Silent(false), Step::Say(last), Step::Put(last)] {
            history.act(step);
        }
        for _ in 0..3 {
            history.world.network.pass(LONG);
            history.look()?;
        }
        let newest = history.content.clone().unwrap_or_default();
        prop_assert!(newest.starts_with(ENVS[last]), "{} where {} is said", newest, ENVS[last]);
        let members: Vec<_> = history.members.keys().cloned().collect();
        let of_last = if sotw { &[] } else { MEMBERS[last] };
        let expected: Vec<_> = of_last.iter().map(|id| cluster(&format!("d/{id}"))).collect();
        prop_assert_eq!(members, expected);
        prop_assert!(history.members.values().all(|content| content == "common" || *content == newest));
    }
}
