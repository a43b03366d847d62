//! What people order, and what they may not.

use super::*;

#[test]
fn a_rollback_goes_to_what_is_stable_or_to_what_is_kept() {
    let mut scope = Scope::with_candidate();
    let to = |to| Act::Rollback { to };
    assert_eq!(scope.person(to(Some(THREE))), Err(ControlError::NotKept(THREE)));
    assert_eq!(scope.person(to(None)), Ok(Transition::RolledBack));
    assert_eq!((scope.control.stable(), scope.control.refused()), (Some(ONE), &[TWO][..]));
    assert_eq!(scope.person(to(None)), Ok(Transition::Unchanged));
    // By name it may be had again; then what was stable before is not taken.
    assert_eq!(scope.person(to(Some(TWO))), Ok(Transition::RolledBack));
    assert_eq!((scope.control.stable(), scope.control.refused()), (Some(TWO), &[ONE][..]));
    assert_eq!(scope.publish(ONE), Ok(Transition::NotTaken));
    assert_eq!(Scope::new().person(to(None)), Err(ControlError::NothingStable));
}

#[test]
fn the_last_256_are_not_taken_again() {
    let mut scope = Scope::with_candidate();
    let release = |number: u16| Release::of_bytes(u128::from(number).to_be_bytes());
    for number in 0..300 {
        scope.publish(release(number)).unwrap();
        scope.person(Act::Rollback { to: None }).unwrap();
    }
    let refused: Vec<_> = (44..300).map(release).collect();
    assert_eq!(scope.control.refused(), refused);
}

#[test]
fn a_freeze_gives_everybody_what_is_stable_and_news_wait() {
    let mut scope = Scope::with_candidate();
    scope.now += HOLD;
    scope.advance().unwrap();
    assert_eq!(scope.person(Act::Unfreeze), Err(ControlError::NotFrozen));
    assert_eq!(scope.person(Act::Freeze), Ok(Transition::Frozen));
    assert_eq!((scope.served(), scope.control.due(&scope.stages)), ([Some(ONE), Some(ONE)], None));
    assert_eq!(scope.served_to("canary", Some(TWO)), Some(ONE));
    assert_eq!(scope.order(By::Person("bob".to_owned()), Act::Freeze), Ok(Transition::Unchanged));
    assert_eq!(scope.control.frozen().map(|said| (&*said.by, &*said.why)), Some(("ann", "because")));
    scope.now += 10 * HOLD;
    assert!(matches!(scope.advance(), Err(ControlError::Frozen(_))));
    assert!(matches!(scope.person(Act::Stage { at: 2 }), Err(ControlError::Frozen(_))));
    assert_eq!(scope.publish(THREE), Ok(Transition::Waits));
    assert_eq!(scope.publish(TWO), Ok(Transition::Waits));
    // Everybody had what is stable meanwhile: it goes on from the first stage.
    assert_eq!(scope.person(Act::Unfreeze), Ok(Transition::Unfrozen));
    assert_eq!(scope.served(), [Some(TWO), Some(ONE)]);
    assert_eq!(scope.advance(), Err(ControlError::TooEarly { left: HOLD }));
    assert_eq!(Scope::new().person(Act::Freeze), Err(ControlError::NothingStable));
}

#[test]
fn what_is_held_stays_in_its_stage() {
    let mut scope = Scope::with_candidate();
    assert_eq!(scope.person(Act::Hold), Ok(Transition::Held));
    assert_eq!(scope.person(Act::Hold), Ok(Transition::Unchanged));
    scope.now += 10 * HOLD;
    assert!(matches!(scope.advance(), Err(ControlError::Held(_))));
    assert_eq!(scope.served(), [Some(TWO), Some(ONE)], "who is in the stage gets it");
    assert_eq!(scope.person(Act::Stage { at: 3 }), Err(ControlError::NoStage { stage: 3, stages: 2 }));
    assert_eq!(scope.person(Act::Stage { at: 2 }), Ok(Transition::Promoted));
    assert_eq!(scope.served(), [Some(TWO), Some(TWO)]);
}

#[test]
fn what_is_for_others_to_do_is_not_done() {
    let mut scope = Scope::with_candidate();
    let before = scope.control.clone();
    let publisher = By::Publisher(before.publisher().unwrap());
    let [person, instance] = [By::Person("ann".to_owned()), By::Instance(Instance(7))];
    let people = [Act::Stage { at: 1 }, Act::Hold, Act::Rollback { to: None }, Act::Freeze, Act::Unfreeze];
    let relays = [
        Act::Publish { release: THREE, removes_much: false },
        Act::Advance { release: TWO },
        Act::Halt { release: TWO, then: OnHalt::Hold },
    ];
    let refused = people.iter().flat_map(|act| [(act, &publisher), (act, &instance)]);
    let refused = refused.chain(relays.iter().flat_map(|act| [(act, &person), (act, &instance)]));
    for (act, by) in refused.chain([(&Act::TakeOver, &person), (&Act::TakeOver, &publisher)]) {
        assert_eq!(scope.order(by.clone(), act.clone()), Err(ControlError::NotTheirs { by: by.to_string() }));
    }
    assert_eq!(scope.control, before);
}
