//! What a server that is back does not have, and one below it gave meanwhile (gRFC A71).

use super::fallback::{SERVERS, several, told};
use super::*;

/// Two servers, of which the first is back and was asked for these, but has not answered, as the second begins to.
fn back(protocol: Protocol, content: &str, later: Option<&str>) -> (World, Watch<Cluster>, Option<Watch<Cluster>>) {
    let world = several(protocol, &[KEEPS; 2]);
    world.put_at(1, "x", content);
    world.at(0).go_down("away");
    (0..2).for_each(|server| world.at(server).be_silent(true));
    let first = world.watch(later.unwrap_or("x"));
    world.at(0).come_up();
    world.seconds(5);
    assert_eq!(world.streams(), [1, 1, 0], "{protocol:?}");
    let second = later.map(|_| world.watch("x"));
    world.at(1).be_silent(false);
    world.network.settle();
    (world, first, second)
}

#[test]
fn r069_what_the_one_that_is_back_was_asked_for_before_another_gave_it_is_gone_if_it_lacks_it() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let (world, mut x, _) = back(protocol, "1", None);
        assert_eq!(told(&mut x), ["put x 1"], "{protocol:?}");
        world.at(0).be_silent(false);
        world.network.settle();
        assert_eq!((told(&mut x), world.streams()), (vec!["ambient x: absent".to_owned()], [1, 0, 0]), "{protocol:?}");
        world.put_at(0, "x", "2");
        assert_eq!(told(&mut x), ["put x 2"], "{protocol:?}");
    }
}

#[test]
fn r069_what_another_sent_that_is_of_no_use_is_gone_if_the_one_that_is_back_lacks_it() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let (world, mut x, _) = back(protocol, "bad", None);
        assert_eq!(told(&mut x), [r#"failed x: invalid at "bad of 1" (bad is bad)"#], "{protocol:?}");
        world.at(0).be_silent(false);
        world.network.settle();
        assert_eq!(told(&mut x), ["failed x: absent"], "{protocol:?}");
    }
}

/// Its first full state may have been written before that was asked for, and the next one was not.
#[test]
fn r069_what_its_full_state_may_have_crossed_is_gone_once_another_lacks_it_too() {
    let (world, mut y, x) = back(Protocol::Sotw, "1", Some("y"));
    let mut x = x.unwrap();
    assert_eq!(told(&mut x), ["put x 1"]);
    world.at(0).be_silent(false);
    world.network.settle();
    assert_eq!((told(&mut x).len(), world.streams()), (0, [1, 0, 0]));
    world.put_at(0, "y", "1");
    assert_eq!(told(&mut y).last().unwrap(), "put y 1");
    assert_eq!(told(&mut x), ["ambient x: absent"]);
}

/// Neither that it is silent nor that it goes again says anything.
#[test]
fn r069_what_the_one_that_is_back_says_nothing_of_stays_as_it_is() {
    for goes in [false, true] {
        let (world, mut x, _) = back(Protocol::Sotw, "1", None);
        if goes {
            world.at(0).go_down("away again");
        }
        world.seconds(60);
        assert_eq!(told(&mut x), ["put x 1"], "goes: {goes}");
        assert_eq!(world.network.server(SERVERS[1]).streams(), 1);
    }
}
