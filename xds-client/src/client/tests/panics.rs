//! A program's reader that panics (rule 44).

use super::wire::{body, wrapper};
use super::*;

/// A cluster, whose reader panics at what says so.
#[derive(Debug)]
struct Panicking;

impl Resource for Panicking {
    fn type_url() -> String {
        CDS.into()
    }

    fn decode(message: Bytes) -> Result<Self, Reason> {
        assert!(!String::from_utf8_lossy(&message).contains("panic"), "on purpose");
        Ok(Self)
    }
}

const PANICKED: &str = "what reads such resources failed (it panicked)";

#[test]
fn r044_what_a_reader_panics_at_is_refused_and_what_is_beside_it_is_used() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.top().be_silent(true);
        let [mut bad, mut good] = ["x", "y"].map(|name| world.client.watch_as::<Panicking>(name));
        world.network.settle();
        wire::requests(&world.top(), protocol);
        let resources = [("x", "panic"), ("y", "1")];
        let resources = resources.map(|(name, version)| wrapper(name, version, body(CDS, name, version)));
        world.top().send(&wire::response(protocol, CDS, ("1", "n1"), &resources));
        world.network.settle();
        let answer = wire::answer(&world.top(), protocol, "n1");
        assert_eq!(answer.error, Some((3, format!("x: {PANICKED}"))), "{protocol:?}");
        assert_eq!(heard(&mut bad), [format!("failed x: invalid at \"panic\" ({PANICKED})")]);
        assert_eq!(heard(&mut good), ["put y 1"]);
    }
}

/// What came before anybody read such resources is read when a watch is looked at.
#[test]
fn r044_a_reader_that_panics_at_what_was_there_before_it_fails_that_watch_only() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "panic");
        world.put(CDS, "y", "1");
        let mut raw = world.watch_raw(CDS, "x");
        assert_eq!(heard(&mut raw), ["put x panic"]);
        let _raw = world.watch_raw(CDS, "y");
        let mut typed = ["x", "y"].map(|name| world.client.watch_as::<Panicking>(name));
        let refused = format!("failed x: invalid at \"panic\" ({PANICKED})");
        assert_eq!(typed.each_mut().map(heard), [vec![refused], vec!["put y 1".into()]], "{protocol:?}");
        world.put(CDS, "x", "2");
        assert_eq!(heard(&mut raw), ["put x 2"]);
        assert_eq!(typed.each_mut().map(heard), [vec!["put x 2".to_owned()], vec![]], "{protocol:?}");
    }
}

/// Of two that watch one type of resources as different types, the second reads for itself.
#[test]
fn r044_the_second_type_of_a_type_of_resources_may_panic_and_the_first_goes_on() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        let mut first = world.watch("x");
        let mut second = world.client.watch_as::<Panicking>("x");
        heard(&mut first);
        heard(&mut second);
        world.put(CDS, "x", "panic");
        assert_eq!(heard(&mut first), ["put x panic"]);
        assert_eq!(heard(&mut second), [format!("failed x: invalid at \"panic\" ({PANICKED})")], "{protocol:?}");
        assert_eq!(world.top().take_refused(), [""; 0], "the first can use it");
        world.put(CDS, "x", "2");
        assert_eq!((heard(&mut first), heard(&mut second)), (vec!["put x 2".into()], vec!["put x 2".to_owned()]));
    }
}
