//! The table of states against what watches hear, over histories by chance.

use proptest::prelude::*;

use super::*;
use crate::federation::states::{Entry, Happens, Hears, Rules};

#[derive(Clone, Copy, Debug)]
enum Step {
    Put(u8),
    Bad(u8),
    Remove,
    Fail(i32),
    Lose,
    Return,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3_u8).prop_map(Step::Put),
        2 => (0..2_u8).prop_map(Step::Bad),
        2 => Just(Step::Remove),
        2 => prop_oneof![Just(7), Just(14)].prop_map(Step::Fail),
        1 => Just(Step::Lose),
        1 => Just(Step::Return),
    ]
}

/// What a server has of a name, as the table is told of it, and what was told last.
struct Model {
    entry: Entry,
    rules: Rules,
    /// What the server has, and the watch was told.
    server: Option<Step>,
    version: Option<u8>,
    /// The good version that the server has, whatever it says of that beside it.
    has: Option<u8>,
    error: Option<String>,
    lost: bool,
}

impl Model {
    fn hears(&mut self, happens: Happens) -> Hears {
        let (after, hears) = self.entry.after(happens, self.rules);
        self.entry = after;
        hears
    }
}

fn how(words: &str) -> Hears {
    match words.split(' ').next().unwrap() {
        "put" => Hears::Changed,
        "failed" => Hears::Failed,
        "ambient" => Hears::Ambient,
        "cleared" => Hears::Cleared,
        other => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn watches_hear_what_the_table_says(
        steps in proptest::collection::vec(step(), 1..12),
        drops in any::<bool>(),
        sotw in any::<bool>(),
    ) {
        let features = if drops { DROPS } else { KEEPS };
        let protocol = if sotw { Protocol::Sotw } else { Protocol::Delta };
        let world = World::of(protocol, features);
        let rules = Rules { fail_on_data_errors: drops, timer_is_transient: false };
        world.put(CDS, "x", "0");
        let mut watch = world.watch("x");
        assert_eq!(heard(&mut watch), ["put x 0"]);
        let entry = Entry::of(true, None, true, rules);
        let mut model = Model { entry, rules, server: Some(Step::Put(0)), version: Some(0), has: Some(0), error: None, lost: false };
        for step in steps {
            // While it is away, what a server has is no news; and what it had when it went is tested elsewhere.
            if model.lost && !matches!(step, Step::Return) {
                continue;
            }
            // Over SotW a server that has a resource sends that, and no error of it.
            if sotw && matches!(step, Step::Fail(_)) {
                continue;
            }
            let (happens, error) = match step {
                Step::Put(version) => {
                    world.put(CDS, "x", &version.to_string());
                    let again = model.version == Some(version);
                    (if again { Happens::CameAgain } else { Happens::Came }, None)
                }
                Step::Bad(version) => {
                    world.put(CDS, "x", &format!("bad {version}"));
                    (Happens::Refused, Some(format!("bad {version}")))
                }
                Step::Remove => {
                    world.top().remove(CDS, "x");
                    world.network.settle();
                    (Happens::Gone, Some("gone".to_owned()))
                }
                Step::Fail(code) => {
                    world.top().fail(CDS, "x", code, "because");
                    world.network.settle();
                    (Happens::Failed { transient: code == 14 }, Some(format!("code {code}")))
                }
                Step::Lose if !model.lost => {
                    world.top().go_down("gone");
                    world.network.pass(Duration::from_secs(10));
                    model.lost = true;
                    (Happens::Lost, None)
                }
                Step::Return if model.lost => {
                    world.top().come_up();
                    // Something has to be said, or nobody knows that it is back before long.
                    world.top().put(CDS, "y", "1", &message("y", "1"));
                    let _other = world.client.watch(CDS, "y");
                    world.network.pass(Duration::from_secs(200));
                    model.lost = false;
                    // Beside an error that passes, a new stream is sent what there is: it may have been dropped for one that lasts.
                    if model.error.as_deref() == Some("code 14") && !model.entry.held && model.has.is_some() {
                        (model.entry.held, model.version) = (true, model.has);
                    }
                    (Happens::Back, None)
                }
                Step::Lose | Step::Return => continue,
            };
            match step {
                Step::Put(version) => model.has = Some(version),
                Step::Bad(_) | Step::Remove => model.has = None,
                Step::Fail(_) | Step::Lose | Step::Return => {}
            }
            let told = heard(&mut watch);
            // An error that is told is not told again, nor is what a server says again of what it does not have.
            let same = error.is_some() && error == model.error;
            let before = model.entry;
            let hears = model.hears(happens);
            if same {
                model.entry = before;
                prop_assert!(told.is_empty(), "{step:?} {told:?}");
                continue;
            }
            match happens {
                Happens::Came | Happens::CameAgain => {
                    model.error = None;
                    if let Step::Put(version) = step { model.version = Some(version) }
                }
                Happens::Lost | Happens::Back => {}
                _ => model.error = error,
            }
            if !model.entry.held { model.version = None }
            model.server = Some(step);
            let expected: Vec<_> = [hears].into_iter().filter(|hears| *hears != Hears::Nothing).collect();
            let mut said: Vec<_> = told.iter().map(|words| how(words)).collect();
            if happens == Happens::Back && said.len() > 1 {
                // Of what has an error a new stream tells everything again: what counts is how that ends.
                prop_assert!(model.error.is_some(), "{told:?}");
                said.drain(..said.len() - 1);
            }
            prop_assert_eq!(said, expected, "{:?} after {:?}: {:?}", step, before, told);
            prop_assert_eq!(watch.status(), Some(model.entry.status), "{:?} after {:?}", step, before);
        }
    }
}
