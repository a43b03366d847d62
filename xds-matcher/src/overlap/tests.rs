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
    let atoms = search.keys[0].atoms(&Admitted::default());
    assert_eq!(atoms.iter().filter(|atom| matches!(atom, Atom::Integer(_))).count(), 2);
}
