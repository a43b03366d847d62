//! The links of one subscriber are a list and a map, whatever comes and goes.

use proptest::prelude::*;

use super::*;
use crate::arena::{Arena, Key};
use crate::keys::{ListKey, SlotKey, SubscriberKey, WalkKey};
use crate::subscribers::link::{Link, To, Walk};

#[derive(Default)]
struct World {
    links: Arena<LinkKey, Link>,
    walks: Arena<WalkKey, Walk>,
    seed: foldhash::fast::RandomState,
    of: Links,
    /// What each is to, in order.
    model: Vec<Target>,
}

/// Every second one is a collection's, with the same key.
fn target(number: u32) -> Target {
    let raw = SlotKey::FIRST.raw().saturating_add(number / 2);
    if number.is_multiple_of(2) { Target::Slot(SlotKey::new(raw)) } else { Target::List(ListKey::new(raw)) }
}

impl World {
    fn by<T>(&mut self, then: impl FnOnce(&mut Links, Targets<'_>) -> T) -> T {
        let Self { links, walks, seed, of, .. } = self;
        then(of, Targets { links, walks, seed })
    }

    fn push(&mut self, to: Target) {
        if self.model.contains(&to) {
            return;
        }
        self.push_new(to);
    }

    fn push_new(&mut self, to: Target) {
        let key = match to {
            Target::Slot(slot) => To::Slot(slot),
            Target::List(list) => To::Walk(self.walks.add(Walk::new(list, 0, 0, 0))),
        };
        let at = self.links.add(Link::new(key, SubscriberKey::FIRST, false));
        self.by(|of, by| of.push(at, by));
        self.model.push(to);
    }

    fn find(&mut self, to: Target) -> Option<LinkKey> {
        self.by(|of, by| of.find(to, by))
    }

    fn free(&mut self, at: LinkKey) {
        if let To::Walk(walk) = self.links.remove(at).to() {
            self.walks.remove(walk);
        }
        self.by(Links::drop_left);
    }

    fn leave(&mut self, to: Target) {
        let Some(at) = self.find(to) else { return };
        self.by(|of, by| of.leave(at, by));
        let place = self.model.iter().position(|other| *other == to).unwrap();
        self.model.swap_remove(place);
        assert_eq!(self.find(to), Some(at), "it is found until it is gone");
        self.check();
        self.free(at);
        assert_eq!(self.find(to), None);
    }

    fn targets(&mut self) -> Vec<Target> {
        self.by(|of, by| of.as_slice().iter().map(|at| by.of(*at)).collect())
    }

    fn check(&mut self) {
        assert_eq!(self.targets(), self.model);
        for (place, to) in self.model.clone().into_iter().enumerate() {
            assert_eq!(self.find(to), self.of.as_slice().get(place).copied());
        }
    }

    fn close(&mut self, most: usize) {
        let collections = self.model.iter().any(|to| matches!(to, Target::List(_)));
        self.model.sort_by_key(|to| matches!(to, Target::Slot(_)));
        let mut closed = false;
        while !closed {
            let (part, last) = self.by(|of, by| of.close(most, collections, by));
            closed = last;
            let left: Vec<_> = self.model.drain(..part.len()).collect();
            assert!(part.len() == most || last);
            self.check();
            for (at, to) in part.into_iter().zip(left) {
                assert_eq!(self.find(to), Some(at), "it is found until it is gone");
                self.free(at);
                assert_eq!(self.find(to), None);
            }
            self.check();
        }
        assert!(self.links.len() == 0 && self.walks.len() == 0 && self.model.is_empty());
    }
}

#[test]
fn more_are_found_than_there_are_places_of_two_bytes() {
    let mut world = World::default();
    for number in 0..66_000 {
        world.push_new(target(2 * number));
    }
    for number in [0, 1, 65_535, 65_536, 65_999] {
        let at = world.of.as_slice()[number as usize];
        assert_eq!(world.find(target(2 * number)), Some(at));
    }
    assert_eq!(world.find(target(2 * 66_000)), None);
    for number in (1..66_000).rev() {
        let at = world.find(target(2 * number)).unwrap();
        world.by(|of, by| of.leave(at, by));
        world.free(at);
    }
    assert_eq!((world.targets(), world.of.all.capacity() <= LITTLE), (vec![target(0)], true), "the room is given back");
}

#[test]
fn where_places_no_longer_fit_into_two_bytes_none_is_lost() {
    let mut world = World::default();
    let numbers = |world: &mut World, expected: &[u32]| {
        let found = expected.iter().filter(|number| world.find(target(2 * **number)).is_some()).count();
        assert_eq!(found, expected.len());
    };
    let leave_first = |world: &mut World, number: u32| {
        let at = world.find(target(2 * number)).unwrap();
        world.by(|of, by| of.leave(at, by));
        world.free(at);
        assert_eq!(world.find(target(2 * number)), None);
    };
    (0..65_536).for_each(|number| world.push_new(target(2 * number)));
    // The last takes its place, and then two more come.
    leave_first(&mut world, 0);
    numbers(&mut world, &[1, 2, 65_534, 65_535]);
    (65_536..65_538).for_each(|number| world.push_new(target(2 * number)));
    leave_first(&mut world, 1);
    leave_first(&mut world, 65_535);
    numbers(&mut world, &[2, 65_534, 65_536, 65_537]);
}

proptest! {
    #[test]
    fn links_are_in_order_and_found(steps in proptest::collection::vec((0..4_u8, 0..120_u32), 0..300), most in 1..9_usize) {
        let mut world = World::default();
        for (step, number) in steps {
            match step {
                0 => world.leave(target(number)),
                _ => world.push(target(number)),
            }
            world.check();
        }
        world.close(most);
    }

    /// Those that were answered stay before those that were not looked at.
    #[test]
    fn what_was_passed_stays_before_what_was_not(passed in 0..40_u32, left in proptest::collection::vec(0..40_u32, 0..40)) {
        let mut world = World::default();
        (0..40).for_each(|number| world.push(target(2 * number)));
        world.of.first_unanswered = passed;
        for number in left {
            if let Some(at) = world.find(target(2 * number)) {
                world.by(|of, by| of.leave(at, by));
                world.free(at);
            }
            let mut before = world.targets();
            let behind = before.split_off(world.of.first_unanswered as usize);
            prop_assert!(before.iter().all(|to| (0..passed).any(|number| target(2 * number) == *to)));
            prop_assert!(behind.iter().all(|to| (passed..40).any(|number| target(2 * number) == *to)));
            for to in before.into_iter().chain(behind) {
                prop_assert!(world.find(to).is_some());
            }
        }
    }
}
