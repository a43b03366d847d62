//! Several at one store, each of whom may be behind.

use super::*;

/// Two relays and a person at each, one after the other in every order: each order of so many is done by one of the two, who knows
/// what it saw last.
#[test]
fn whoever_is_behind_undoes_nothing_and_one_publishes() {
    const DEPTH: usize = 3;
    let releases = [0, 1, 2].map(|number| content([(number, vec![1])]));
    let acts = |relay: usize, publisher: Publisher| {
        let release = manifest(&releases[relay + 1]).release();
        let (by, person) = (By::Publisher(publisher), By::Person("ann".to_owned()));
        [
            (Act::TakeOver, By::Instance(Instance(relay as u64 + 1))),
            (Act::Publish { release, removes_much: false }, by.clone()),
            (Act::Halt { release, then: OnHalt::Rollback }, by),
            (Act::Freeze, person.clone()),
            (Act::Unfreeze, person.clone()),
            (Act::Rollback { to: None }, person),
        ]
    };
    let choices = 2 * acts(0, Publisher::new(Instance(1), 0)).len();
    for number in 0..choices.pow(DEPTH as u32) {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let mut first = Relay::start(store.clone());
        for content in &releases[..2] {
            first.order(Act::Publish { release: manifest(content).release(), removes_much: false }).unwrap();
        }
        let mut publishers = [first.publisher, Publisher::new(Instance(2), 0)];
        let mut relays = [first.stored, Stored::open(store.clone(), SCOPE).unwrap()];
        // By who sees everything: a control value that all orders are done on, one after the other.
        let mut whole = relays[0].control().clone();
        for step in 0..DEPTH {
            let choice = number / choices.pow(step as u32) % choices;
            let relay = choice % 2;
            let (act, by) = acts(relay, publishers[relay])[choice / 2].clone();
            let order = Order::new(act.clone(), by, "", now());
            let applied = relays[relay].apply(&order, &stages());
            let expected = whole.apply(&order, &stages(), &|_| false);
            match (&applied, &expected) {
                (Ok(applied), Ok(expected)) => assert_eq!((applied.transition, applied.is_kept), (*expected, true)),
                (Err(StoredError::Control(error)), Err(expected)) => assert_eq!(error, expected),
                _ => panic!("{order:?}: {applied:?} and not {expected:?}"),
            }
            if act == Act::TakeOver {
                publishers[relay] = relays[relay].control().publisher().unwrap();
            }
            assert_eq!(Stored::open(store.clone(), SCOPE).unwrap().control(), &whole, "{order:?}");
        }
    }
}

/// Somebody names a release of before at the moment that it is kept no more, to make room for another one.
#[test]
fn nobody_goes_back_to_a_release_that_is_kept_no_more() {
    for (is_swept_first, is_refreshed) in [(true, false), (true, true), (false, false)] {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let mut first = Relay::start(store.clone());
        let releases: Vec<_> = (0..22).map(|number| content([(0, vec![number])])).collect();
        for content in &releases[..20] {
            first.publish(content).unwrap();
        }
        let oldest = manifest(&releases[0]).release();
        // The first is stable, and so stays: the second is the oldest that may go.
        let second = manifest(&releases[1]).release();
        let mut other = Stored::open(store.clone(), SCOPE).unwrap();
        assert!(other.has(oldest) && other.has(second));
        let back = Order::new(Act::Rollback { to: Some(second) }, By::Person("ann".to_owned()), "", now());
        if is_swept_first {
            first.save(&releases[20]).unwrap();
            if is_refreshed {
                // It has read who is served what, and not what there is.
                other.refresh(&stages()).unwrap();
            }
            let error = other.apply(&back, &stages()).unwrap_err();
            assert!(matches!(error, StoredError::Control(ControlError::NotKept(of)) if of == second), "{error}");
        } else {
            other.apply(&back, &stages()).unwrap();
            assert!(matches!(first.save(&releases[20]), Err(StoredError::Contended)));
        }
        let all = Stored::open(store, SCOPE).unwrap();
        assert!(all.has(all.control().stable().unwrap()));
    }
}
