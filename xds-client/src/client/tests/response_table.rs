//! Responses of each kind for each type (S85 to S108): what is answered, and what is told.

use xds_transport::wire::Any;

use super::wire::{Read, Request, answer, bare, body, request, response, told, wrapper};
use super::*;

const OTHER_TYPE: &str = "type.googleapis.com/a.v3.Other";
const INVALID_ARGUMENT: i32 = 3;

/// A resource is sent like this.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Delta,
    /// Over SotW, with its name beside it.
    Wrapped,
    /// Over SotW, as its type has it.
    Bare,
}

impl Form {
    fn protocol(self) -> Protocol {
        if self == Self::Delta { Protocol::Delta } else { Protocol::Sotw }
    }

    fn names_resources(self) -> bool {
        self != Self::Bare
    }
}

/// Who watches `x` on a stream on which a server says what the test says.
struct Asked<const TYPE: usize> {
    form: Form,
    world: World,
    watch: Watch<Read<TYPE>>,
}

impl<const TYPE: usize> Asked<TYPE> {
    fn new(form: Form) -> Self {
        let world = World::of(form.protocol(), KEEPS);
        world.top().be_silent(true);
        let watch = world.client.watch_as("x");
        world.network.settle();
        let asked = request(&world.top(), form.protocol());
        assert_eq!((asked.type_url.as_str(), &asked.names[..]), (TYPES[TYPE], &["x".to_owned()][..]));
        assert_eq!((asked.version.as_str(), asked.nonce.as_str(), asked.error), ("", "", None));
        Self { form, world, watch }
    }

    /// What is answered to a response of this version, with these resources.
    fn sent(&self, version: &str, resources: &[(&str, Any)]) -> Request {
        let nonce = format!("nonce of {version}");
        let type_url = TYPES[TYPE];
        let sent = match self.form {
            Form::Bare => bare(type_url, (version, &nonce), resources.iter().map(|(_, any)| any.clone()).collect()),
            form => {
                let wrapped = resources.iter().map(|(name, any)| wrapper(name, version, any.clone()));
                response(form.protocol(), type_url, (version, &nonce), &wrapped.collect::<Vec<_>>())
            }
        };
        self.world.top().send(&sent);
        self.world.network.settle();
        let answer = answer(&self.world.top(), self.form.protocol(), &nonce);
        assert_eq!(answer.type_url, type_url);
        if self.form != Form::Delta {
            assert_eq!(answer.names, ["x"], "what is asked for stays so");
        }
        answer
    }

    fn refused(&self, version: &str, resources: &[(&str, Any)], in_use: &str) -> String {
        let answer = self.sent(version, resources);
        assert_eq!(answer.version, if self.form == Form::Delta { "" } else { in_use }, "{:?}", self.form);
        let (code, words) = answer.error.expect("it is refused");
        assert_eq!(code, INVALID_ARGUMENT, "{words}");
        words
    }

    fn accepted(&self, version: &str, resources: &[(&str, Any)]) {
        let answer = self.sent(version, resources);
        assert_eq!(answer.error, None, "{:?}", self.form);
        assert_eq!(answer.version, if self.form == Form::Delta { "" } else { version }, "{:?}", self.form);
    }

    fn heard(&mut self) -> Vec<String> {
        told(&mut self.watch)
    }

    /// The version of a bare resource is a hash of its content.
    fn hears_of_bad(&mut self, how: &str) {
        let [told] = &self.heard()[..] else { panic!("one thing is told: {:?}", self.form) };
        assert!(told.starts_with(&format!("{how} x: invalid at ")) && told.ends_with("(bad is bad)"), "{told}");
    }

    /// Nothing was said of it: it has its time.
    fn times_out(&mut self) {
        self.world.network.pass(PATIENCE - Duration::from_millis(1));
        assert_eq!(self.heard(), [""; 0], "{:?}", self.form);
        self.world.network.pass(Duration::from_millis(1));
        assert_eq!(self.heard(), ["failed x: timeout, an absence"], "{:?}", self.form);
    }

    /// Whatever was refused before, what is good is used.
    fn recovers(&mut self) {
        self.accepted("good", &[("x", body(TYPES[TYPE], "x", "good"))]);
        assert_eq!(self.heard(), ["put x good"], "{:?}", self.form);
    }
}

/// Runs a scenario for each type, which is its number, in each form.
macro_rules! for_each_type {
    ($scenario:ident) => {
        for form in [Form::Delta, Form::Wrapped, Form::Bare] {
            $scenario::<0>(Asked::new(form));
            $scenario::<1>(Asked::new(form));
            $scenario::<2>(Asked::new(form));
            $scenario::<3>(Asked::new(form));
        }
    };
}

#[test]
fn s085_to_s088_what_cannot_be_read_is_refused_and_told_if_it_is_known_what_it_is() {
    fn scenario<const TYPE: usize>(mut asked: Asked<TYPE>) {
        let unreadable = Any { type_url: TYPES[TYPE].into(), value: Bytes::from_static(b"\x0a\xff") };
        let words = asked.refused("1", &[("x", unreadable)], "");
        if asked.form.names_resources() {
            assert!(words.starts_with("x: "), "{words}");
            let [told] = &asked.heard()[..] else { panic!("one thing is told: {:?}", asked.form) };
            assert!(told.starts_with("failed x: invalid"), "{told}");
        } else {
            asked.times_out();
        }
        asked.recovers();
    }
    for_each_type!(scenario);
}

#[test]
fn s089_to_s092_an_empty_response_is_acknowledged_and_says_nothing_of_what_was_never_there() {
    fn scenario<const TYPE: usize>(mut asked: Asked<TYPE>) {
        asked.accepted("1", &[]);
        asked.times_out();
        asked.recovers();
    }
    for_each_type!(scenario);
}

#[test]
fn s093_to_s096_a_resource_of_another_type_is_refused() {
    fn scenario<const TYPE: usize>(mut asked: Asked<TYPE>) {
        let words = asked.refused("1", &[("x", body(OTHER_TYPE, "x", "1"))], "");
        assert!(words.contains(OTHER_TYPE), "{words}");
        let [told] = &asked.heard()[..] else { panic!("one thing is told: {:?}", asked.form) };
        assert!(told.starts_with("failed x: invalid") && told.contains(OTHER_TYPE), "{told}");
        asked.recovers();
    }
    for_each_type!(scenario);
}

#[test]
fn s097_to_s100_one_bad_resource_is_refused_by_its_name_and_told() {
    fn scenario<const TYPE: usize>(mut asked: Asked<TYPE>) {
        let words = asked.refused("1", &[("x", body(TYPES[TYPE], "x", "bad"))], "");
        assert_eq!(words, "x: bad is bad");
        asked.hears_of_bad("failed");
        asked.recovers();
        assert_eq!(asked.refused("2", &[("x", body(TYPES[TYPE], "x", "bad"))], "good"), "x: bad is bad");
        asked.hears_of_bad("ambient");
    }
    for_each_type!(scenario);
}

#[test]
fn s101_to_s104_one_good_resource_is_acknowledged_and_told() {
    fn scenario<const TYPE: usize>(mut asked: Asked<TYPE>) {
        asked.accepted("1", &[("x", body(TYPES[TYPE], "x", "1"))]);
        assert_eq!(asked.heard(), ["put x 1"]);
        asked.world.network.pass(PATIENCE * 2);
        assert_eq!(asked.heard(), [""; 0], "it came in time");
    }
    for_each_type!(scenario);
}

#[test]
fn s105_to_s108_of_two_where_one_was_asked_for_the_other_is_neither_refused_nor_kept() {
    fn scenario<const TYPE: usize>(mut asked: Asked<TYPE>) {
        let type_url = TYPES[TYPE];
        asked.accepted("1", &[("y", body(type_url, "y", "1")), ("x", body(type_url, "x", "1"))]);
        assert_eq!(asked.heard(), ["put x 1"]);
        let names = asked.world.client.status(true).generic_xds_configs;
        assert_eq!(names.iter().map(|config| config.name.as_str()).collect::<Vec<_>>(), ["x"]);
        // Who asks for it later has it from the server, and not from what was passed over.
        let mut other = asked.world.client.watch_as::<Read<TYPE>>("y");
        assert_eq!(told(&mut other), [""; 0]);
        asked.world.network.settle();
        let wanted = request(&asked.world.top(), asked.form.protocol());
        assert!(wanted.names.contains(&"y".to_owned()), "{wanted:?}");
    }
    for_each_type!(scenario);
}

#[test]
fn with_good_beside_bad_the_good_are_used_and_all_that_is_wrong_is_said() {
    fn scenario<const TYPE: usize>(mut asked: Asked<TYPE>) {
        let type_url = TYPES[TYPE];
        let resources =
            [("x", body(type_url, "x", "1")), ("y", body(OTHER_TYPE, "y", "1")), ("z", body(OTHER_TYPE, "z", "1"))];
        let words = asked.refused("1", &resources, "");
        assert_eq!(words.matches(OTHER_TYPE).count(), 2, "{words}");
        assert_eq!(asked.heard(), ["put x 1"], "{:?}", asked.form);
    }
    for_each_type!(scenario);
}
