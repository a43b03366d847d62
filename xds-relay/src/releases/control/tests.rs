//! What each order does, one by one.

use std::time::{Duration, SystemTime};

use xds_transport::wire::Node;

use super::error::ControlError;
use super::*;
use crate::releases::act::{Instance, OnHalt};
use crate::releases::stage::{Stage, Who};

mod people;

const HOLD: Duration = Duration::from_secs(60);
const ONE: Release = Release::of_bytes([1; 16]);
const TWO: Release = Release::of_bytes([2; 16]);
const THREE: Release = Release::of_bytes([3; 16]);

/// A control value, its stages (a canary, then everybody), and a clock.
struct Scope {
    control: Control,
    stages: Stages,
    now: SystemTime,
}

impl Scope {
    fn new() -> Self {
        let canary = Who::Match([("id".parse().unwrap(), "canary".to_owned())].into());
        let stages = [canary, Who::Percent("100%".parse().unwrap())].map(|who| Stage { who, hold: HOLD });
        let mut scope = Self { control: Control::default(), stages: Stages::new(stages), now: SystemTime::UNIX_EPOCH };
        scope.order(By::Instance(Instance(7)), Act::TakeOver).unwrap();
        scope
    }

    /// With the first release stable, and the second a candidate.
    fn with_candidate() -> Self {
        let mut scope = Self::new();
        assert_eq!(scope.publish(ONE), Ok(Transition::Promoted));
        assert_eq!(scope.publish(TWO), Ok(Transition::Opened));
        scope
    }

    fn order(&mut self, by: By, act: Act) -> Result<Transition, ControlError> {
        self.control.apply(&Order::new(act, by, "because", self.now), &self.stages, &|release| release != THREE)
    }

    fn by_publisher(&mut self, act: Act) -> Result<Transition, ControlError> {
        self.order(By::Publisher(self.control.publisher().unwrap()), act)
    }

    fn person(&mut self, act: Act) -> Result<Transition, ControlError> {
        self.order(By::Person("ann".to_owned()), act)
    }

    fn publish(&mut self, release: Release) -> Result<Transition, ControlError> {
        self.by_publisher(Act::Publish { release, removes_much: false })
    }

    fn advance(&mut self) -> Result<Transition, ControlError> {
        self.by_publisher(Act::Advance { release: TWO })
    }

    /// What the canary is served, and another; neither has anything.
    fn served(&self) -> [Option<Release>; 2] {
        ["canary", "other"].map(|id| self.served_to(id, None))
    }

    fn served_to(&self, id: &str, has: Option<Release>) -> Option<Release> {
        self.control.release_for(&self.stages, &Node { id: id.to_owned(), ..Node::default() }, has)
    }
}

#[test]
fn the_first_release_is_stable_at_once_and_the_next_goes_through_its_stages() {
    let mut scope = Scope::new();
    assert_eq!(scope.served(), [None, None]);
    assert_eq!(scope.publish(ONE), Ok(Transition::Promoted));
    assert_eq!(scope.served(), [Some(ONE), Some(ONE)]);
    assert_eq!(scope.publish(TWO), Ok(Transition::Opened));
    assert_eq!(scope.served(), [Some(TWO), Some(ONE)]);
    assert_eq!(scope.control.due(&scope.stages), Some(scope.now + HOLD));
    scope.now += HOLD - Duration::from_millis(1);
    assert_eq!(scope.advance(), Err(ControlError::TooEarly { left: Duration::from_millis(1) }));
    scope.now += Duration::from_millis(1);
    assert_eq!(scope.advance(), Ok(Transition::InStage(1)));
    assert_eq!(scope.served(), [Some(TWO), Some(TWO)]);
    assert_eq!(scope.control.stable(), Some(ONE));
    scope.now += HOLD;
    assert_eq!(scope.advance(), Ok(Transition::Promoted));
    assert_eq!((scope.control.stable(), scope.control.candidate()), (Some(TWO), None));
    assert_eq!((scope.advance(), scope.control.due(&scope.stages)), (Err(ControlError::NoCandidate), None));
}

#[test]
fn without_stages_a_release_is_stable_at_once_unless_it_is_frozen_or_removes_much() {
    let mut scope = Scope::new();
    scope.stages = Stages::default();
    assert_eq!([ONE, TWO].map(|release| scope.publish(release)), [Ok(Transition::Promoted), Ok(Transition::Promoted)]);
    scope.person(Act::Freeze).unwrap();
    assert_eq!(scope.publish(ONE), Ok(Transition::Waits));
    assert_eq!(scope.served(), [Some(TWO), Some(TWO)]);
    scope.person(Act::Unfreeze).unwrap();
    assert_eq!(scope.served(), [Some(TWO), Some(TWO)]);
    assert_eq!(scope.by_publisher(Act::Advance { release: ONE }), Ok(Transition::Promoted));
    let much = Act::Publish { release: TWO, removes_much: true };
    assert_eq!(scope.by_publisher(much), Ok(Transition::RemovesMuch));
    assert!(matches!(scope.advance(), Err(ControlError::Halted(said)) if said.why == "it removes much"));
    assert_eq!(scope.person(Act::Stage { at: 0 }), Ok(Transition::Promoted));
    assert_eq!(scope.served(), [Some(TWO), Some(TWO)]);
}

#[test]
fn a_release_that_removes_much_is_had_by_nobody_before_somebody_says_so() {
    let mut scope = Scope::with_candidate();
    let much = Act::Publish { release: THREE, removes_much: true };
    assert_eq!(scope.by_publisher(much), Ok(Transition::RemovesMuch));
    assert_eq!((scope.served(), scope.control.due(&scope.stages)), ([Some(ONE), Some(ONE)], None));
    assert_eq!(scope.person(Act::Stage { at: 0 }), Ok(Transition::InStage(0)));
    assert_eq!(scope.served(), [Some(THREE), Some(ONE)]);
}

#[test]
fn who_has_what_halted_keeps_it_and_nobody_else_gets_it() {
    let mut scope = Scope::with_candidate();
    let halt = |release| Act::Halt { release, then: OnHalt::Hold };
    assert_eq!(scope.by_publisher(halt(THREE)), Err(ControlError::OtherCandidate { is: TWO, meant: THREE }));
    assert_eq!(scope.by_publisher(halt(TWO)), Ok(Transition::Halted));
    assert_eq!(scope.by_publisher(halt(TWO)), Ok(Transition::Unchanged));
    assert_eq!(scope.served(), [Some(ONE), Some(ONE)]);
    assert_eq!(scope.served_to("canary", Some(ONE)), Some(ONE));
    assert_eq!(scope.served_to("canary", Some(TWO)), Some(TWO));
    assert_eq!(scope.served_to("other", Some(TWO)), Some(ONE), "it is in no stage");
    scope.now += 10 * HOLD;
    assert!(matches!(scope.advance(), Err(ControlError::Halted(said)) if said.by == "relay 0000000000000007"));
    assert!(matches!(scope.person(Act::Hold), Err(ControlError::Halted(_))));
    assert_eq!(scope.publish(TWO), Ok(Transition::Unchanged), "it is not taken for new");
    assert_eq!(scope.person(Act::Stage { at: 1 }), Ok(Transition::InStage(1)));
    assert_eq!(scope.served(), [Some(TWO), Some(TWO)]);
}

#[test]
fn what_was_rolled_back_is_not_taken_again_until_its_content_changes() {
    let mut scope = Scope::with_candidate();
    let halt = Act::Halt { release: TWO, then: OnHalt::Rollback };
    assert_eq!(scope.by_publisher(halt), Ok(Transition::RolledBack));
    assert_eq!((scope.control.refused(), scope.served()), (&[TWO][..], [Some(ONE), Some(ONE)]));
    assert_eq!(scope.publish(TWO), Ok(Transition::NotTaken));
    assert_eq!(scope.control.not_taken().map(|not_taken| not_taken.release), Some(TWO));
    assert_eq!(scope.publish(THREE), Ok(Transition::Opened));
    // The origin goes back to what is not taken: nor does it want the other.
    assert_eq!(scope.publish(TWO), Ok(Transition::NotTaken));
    assert_eq!(scope.control.candidate(), None);
    assert_eq!(scope.publish(THREE), Ok(Transition::Opened));
    assert_eq!(scope.publish(ONE), Ok(Transition::Withdrawn));
    assert_eq!(scope.publish(ONE), Ok(Transition::Unchanged));
    assert_eq!(scope.served(), [Some(ONE), Some(ONE)]);
}

#[test]
fn a_new_release_replaces_the_candidate_and_begins_in_the_first_stage() {
    let mut scope = Scope::with_candidate();
    scope.now += HOLD;
    scope.advance().unwrap();
    assert_eq!(scope.publish(THREE), Ok(Transition::Opened));
    assert_eq!(scope.served(), [Some(THREE), Some(ONE)]);
    assert_eq!(scope.advance(), Err(ControlError::OtherCandidate { is: THREE, meant: TWO }));
    assert_eq!(scope.control.refused(), []);
}

#[test]
fn who_was_followed_does_nothing_any_more_and_a_stage_begins_anew() {
    let mut scope = Scope::with_candidate();
    let before = scope.control.publisher().unwrap();
    scope.now += HOLD;
    for instance in [8, 7] {
        assert_eq!(scope.order(By::Instance(Instance(instance)), Act::TakeOver), Ok(Transition::TookOver));
    }
    assert_eq!(scope.control.publisher(), Some(Publisher::new(Instance(7), 3)), "the same relay in another term");
    for act in [
        Act::Publish { release: ONE, removes_much: false },
        Act::Advance { release: TWO },
        Act::Halt { release: TWO, then: OnHalt::Rollback },
    ] {
        assert_eq!(scope.order(By::Publisher(before), act), Err(ControlError::NotThePublisher));
    }
    assert_eq!(scope.advance(), Err(ControlError::TooEarly { left: HOLD }));
    // The other's clock is behind: that is no reason to be early.
    scope.now -= HOLD / 2;
    assert_eq!(scope.advance(), Err(ControlError::TooEarly { left: HOLD }));
}

#[test]
fn a_candidate_is_in_the_last_stage_if_there_are_fewer_now() {
    let mut scope = Scope::with_candidate();
    scope.now += HOLD;
    scope.advance().unwrap();
    let canary = Who::Match([("id".parse().unwrap(), "canary".to_owned())].into());
    scope.stages = Stages::new([Stage { who: canary, hold: 2 * HOLD }]);
    assert_eq!(scope.served(), [Some(TWO), Some(ONE)]);
    scope.now += HOLD;
    assert_eq!(scope.advance(), Err(ControlError::TooEarly { left: HOLD }));
    scope.now += HOLD;
    assert_eq!(scope.advance(), Ok(Transition::Promoted));
}
