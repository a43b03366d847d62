use super::*;
use crate::Constraint;

fn overlap(a: &str, b: &str) -> Overlap {
    let (a, b): (Constraint, Constraint) = (a.parse().unwrap(), b.parse().unwrap());
    let overlap = a.overlap(&b);
    if let Overlap::Overlapping(both) = &overlap {
        assert!(a.matches(both) && b.matches(both), "{both} satisfies both");
    }
    overlap
}

#[test]
fn values_absence_and_everything_else_are_told_apart() {
    for (a, b) in [
        ("a=1", "a=2"),
        ("exists(a)", "not exists(a)"),
        ("a=1 and b=1", "a=1 and b=2"),
        ("exists(a) and not a=1", "a=1"),
        ("n in 1..3", "n in 4..6"),
        ("n in 5", "n=6"),
        ("false", "true"),
        ("(a=1 and b=1) or (a=2 and b=2)", "(a=1 and b=2) or (a=2 and b=1)"),
    ] {
        assert_eq!(overlap(a, b), Overlap::Disjoint, "{a} | {b}");
    }
    for (a, b) in [
        ("not a=1", "not a=2"),
        ("not a=1 and exists(a)", "not a=2"),
        ("n in 1..3", "n in 3..6"),
        ("n in 5", "not n=5"),
        ("n in 1..", "not n in 0..3"),
        ("n in 5", "n=005"),
        ("exists(n) and not n in 0..", "not n=other0"),
        ("true", "all()"),
    ] {
        assert!(matches!(overlap(a, b), Overlap::Overlapping(_)), "{a} | {b}");
    }
}

#[test]
fn a_question_that_takes_too_long_is_answered_unknown() {
    // Nine values in eight keys' places, all different: no search by cases decides this quickly.
    let pigeons = (0..9).map(|pigeon| {
        let holes = (0..8).map(|hole| Constraint::value(format!("{pigeon}.{hole}"), "in"));
        Constraint::any(holes).unwrap()
    });
    let alone = (0..8).flat_map(|hole| {
        (0..9).flat_map(move |one| {
            (0..one).map(move |other| {
                let both = [one, other].map(|pigeon| Constraint::value(format!("{pigeon}.{hole}"), "in"));
                Constraint::all(both).unwrap().negate().unwrap()
            })
        })
    });
    let (a, b) = (Constraint::all(pigeons).unwrap(), Constraint::all(alone).unwrap());
    assert_eq!(a.overlap(&b), Overlap::Unknown);
}

/// Many constants, and ranges on two keys whose every combination is to be tried: each takes steps.
#[test]
fn constants_and_ranges_are_steps_too() {
    let ranges = |key: &str, first: u64| {
        let ranges = (0..300).map(|i| IntRange::new(10 * i + first, 10 * i + first + 4).unwrap());
        Constraint::int_in(key, ranges).unwrap()
    };
    let list = |key: &str, first: u64| {
        let leaves = (0..300)
            .map(|i| Constraint::int_in(key, [IntRange::new(10 * i + first, 10 * i + first + 4).unwrap()]).unwrap());
        Constraint::any(leaves).unwrap()
    };
    let nothing = || Constraint::all((0..10_000).map(|_| Constraint::unconstrained())).unwrap();
    // Both keys are in ranges of one constraint and between those of the other, or one of them is absent.
    let absent = |key: &str| Constraint::exists(key).negate().unwrap();
    let either = |this: [Constraint; 2], that: [Constraint; 2]| {
        Constraint::any([Constraint::all(this).unwrap(), Constraint::all(that).unwrap()]).unwrap()
    };
    for (a, b) in [
        (
            Constraint::all([nothing(), ranges("a", 0), ranges("b", 0)]).unwrap(),
            either([ranges("a", 5), absent("b")], [absent("a"), ranges("b", 5)]),
        ),
        (
            Constraint::all([nothing(), list("a", 0), list("b", 0)]).unwrap(),
            either([list("a", 5), absent("b")], [absent("a"), list("b", 5)]),
        ),
    ] {
        let mut left = Overlap::STEPS;
        let found = satisfy(&[&Subject::new(&a), &Subject::new(&b)], Scope::All, &mut left);
        assert!(!matches!(found, Overlap::Overlapping(_)));
        assert!(found == Overlap::Disjoint || left == 0, "unknown only if the steps are used up");
    }
}

#[test]
fn a_range_is_told_from_its_neighbours() {
    for (a, b) in [("n in 5..9", "n in 9"), ("n in 0", "n in ..0"), ("n in 18446744073709551615", "n in 7..")] {
        assert!(matches!(overlap(a, b), Overlap::Overlapping(_)), "{a} | {b}");
    }
    for (a, b) in [("n in 5..9", "n in 10"), ("n in 5..9", "n in 4"), ("n in 1..", "n in 0"), ("n in 5", "n=x5")] {
        assert_eq!(overlap(a, b), Overlap::Disjoint, "{a} | {b}");
    }
    // An integer that no range is about is as good as any other text: no neighbour of a bound is tried.
    let constraint: Constraint = "n in 5..9,20 and not n=7".parse().unwrap();
    let mut search = Search::default();
    search.compile(constraint.node(), false);
    let atoms = search.keys[0].atoms(&[], &mut 100);
    assert_eq!(atoms.iter().filter(|atom| matches!(atom, Atom::Integer(_))).count(), 2);
}

/// However long the texts are that are compared again and again.
#[test]
fn long_texts_are_as_many_steps_as_it_takes_to_compare_them() {
    // No value is told from the others before its end, and all are to be tried.
    let nor = |from: usize, bytes: usize| {
        let nots = (from..from + 300).map(|i| Constraint::value("k", format!("{i:x>bytes$}")).negate().unwrap());
        Constraint::all(nots.chain([Constraint::exists("k")])).unwrap()
    };
    let used = |bytes: usize| {
        let (a, b) = (nor(0, bytes), nor(300, bytes));
        let mut left = Overlap::STEPS;
        let found = satisfy(&[&Subject::new(&a), &Subject::new(&b)], Scope::All, &mut left);
        (Overlap::STEPS - left, found)
    };
    let ((short, both), (long, same)) = (used(8), used(1280));
    assert!(matches!(both, Overlap::Overlapping(_)) && both == same);
    assert!(long > short + 600 * 10, "{long} {short}");
    assert_eq!(used(20_000), (Overlap::STEPS, Overlap::Unknown));
}

/// Of equal texts one is enough: comparing it is no matter of its length.
#[test]
fn a_value_is_compared_once_with_each_that_is_like_it() {
    let value = |i: usize| Constraint::value("k", format!("{i:x>1000}"));
    let any = |from: usize| Constraint::any((from..from + 50).map(value)).unwrap();
    let (a, b) = (any(0), Constraint::all([any(25), any(49)]).unwrap());
    let Overlap::Overlapping(both) = a.overlap(&b) else { panic!("one is in all") };
    assert!(a.matches(&both) && b.matches(&both));
    assert_eq!(any(0).overlap(&any(50)), Overlap::Disjoint);
}

/// A text that no leaf mentions is looked for among those that they do.
#[test]
fn looking_for_another_text_is_steps_too() {
    let used = |name: &str| {
        let nots = (0..1000).map(|i| Constraint::value("k", format!("{name}{i}")).negate().unwrap());
        let a = Constraint::all(nots.chain([Constraint::exists("k")])).unwrap();
        let mut left = Overlap::STEPS;
        let found = satisfy(&[&Subject::new(&a)], Scope::All, &mut left);
        assert!(matches!(found, Overlap::Overlapping(_)));
        Overlap::STEPS - left
    };
    assert!(used("other") >= used("what!") + 1000);
}
