//! The table of what becomes of a name's debts, and that it is what happens.

use proptest::prelude::*;

use super::*;

impl Debt {
    const ALL: [Self; 7] = [Removal, Missing, Self::Answer, Error, Comparison, Unsent, Concluded];
}

/// All reasons why a name is owed.
fn debts(owed: &Owed, name: &ResourceName) -> BTreeSet<Debt> {
    Debt::ALL.into_iter().filter(|debt| owed.owes(*debt, name)).collect()
}

/// What happens to a name.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Gone,
    Went,
    Missed,
    Absent { sent: bool },
    Empty,
    Conclude { there: bool },
    Answer,
    Fail,
    Bring,
    Spare,
    Came,
    Stays,
    ToldGone,
    ToldError { removed: bool },
    Asked,
    Unwanted { keeps: bool },
    Lapse,
    Clear(Debt),
}

/// What an event does to the debts of its name, if it has one of `when` and none of `unless`.
struct Row {
    event: Event,
    when: &'static [Debt],
    unless: &'static [Debt],
    sets: &'static [Debt],
    clears: &'static [Debt],
}

const fn row(event: Event, sets: &'static [Debt], clears: &'static [Debt]) -> Row {
    Row { event, when: &[], unless: &[], sets, clears }
}

use Debt::{Comparison, Concluded, Error, Missing, Removal, Unsent};

/// The first row that fits counts; where none does, nothing changes.
const TABLE: &[Row] = &[
    row(Event::Gone, &[Removal], &[]),
    Row { when: &[Concluded], ..row(Event::Went, &[], &[Concluded]) },
    row(Event::Went, &[Removal], &[Missing]),
    row(Event::Missed, &[Removal], &[Missing]),
    Row { unless: &[Removal, Comparison], ..row(Event::Absent { sent: false }, &[Removal, Missing], &[]) },
    row(Event::Absent { sent: false }, &[Removal], &[]),
    row(Event::Absent { sent: true }, &[Removal], &[]),
    row(Event::Empty, &[Removal, Missing], &[]),
    Row { when: &[Comparison], ..row(Event::Conclude { there: false }, &[Removal, Concluded], &[Comparison]) },
    row(Event::Conclude { there: true }, &[], &[Comparison]),
    row(Event::Answer, &[Debt::Answer], &[]),
    row(Event::Fail, &[Error], &[]),
    row(Event::Bring, &[Comparison], &[]),
    row(Event::Spare, &[Unsent], &[]),
    row(Event::Came, &[], &[Missing, Comparison, Concluded]),
    row(Event::Stays, &[], &[Removal, Missing]),
    row(Event::ToldGone, &[], &[Missing, Comparison]),
    row(Event::ToldError { removed: true }, &[], &[Removal, Missing, Comparison, Concluded]),
    row(Event::ToldError { removed: false }, &[], &[Concluded]),
    row(Event::Asked, &[], &[Comparison]),
    row(Event::Unwanted { keeps: true }, &[Removal], &[Debt::Answer]),
    row(Event::Unwanted { keeps: false }, &[], &[Removal, Debt::Answer]),
    row(Event::Clear(Removal), &[], &[Removal]),
    row(Event::Clear(Missing), &[], &[Missing]),
    row(Event::Clear(Debt::Answer), &[], &[Debt::Answer]),
    row(Event::Clear(Error), &[], &[Error]),
    row(Event::Clear(Comparison), &[], &[Comparison]),
    row(Event::Clear(Unsent), &[], &[Unsent]),
    row(Event::Clear(Concluded), &[], &[Concluded]),
];

fn after(event: Event, before: &BTreeSet<Debt>) -> BTreeSet<Debt> {
    let has = |debt: &Debt| before.contains(debt);
    let fits = |row: &&Row| {
        row.event == event && (row.when.is_empty() || row.when.iter().any(has)) && !row.unless.iter().any(has)
    };
    let Some(row) = TABLE.iter().find(fits) else { return before.clone() };
    before.iter().filter(|debt| !row.clears.contains(debt)).chain(row.sets).copied().collect()
}

fn happen(owed: &mut Owed, event: Event, name: &ResourceName) {
    let of = || name.clone();
    match event {
        Event::Gone => _ = owed.gone(of()),
        Event::Went => owed.went(name),
        Event::Missed => owed.missed(of()),
        Event::Absent { sent } => owed.absent(of(), sent),
        Event::Empty => owed.empty(of()),
        Event::Conclude { there } => owed.conclude(of(), there),
        Event::Answer => owed.answer(of()),
        Event::Fail => owed.fail(of()),
        Event::Bring => owed.bring(of(), Some("1".into())),
        Event::Spare => owed.spare(of()),
        Event::Came => _ = owed.came(name),
        Event::Stays => owed.stays(name),
        Event::ToldGone => owed.told_gone(name),
        Event::ToldError { removed } => owed.told_error(name, removed),
        Event::Asked => _ = owed.asked(name, name),
        Event::Unwanted { keeps } => owed.unwanted(name, keeps),
        Event::Lapse => _ = owed.lapse(name),
        Event::Clear(debt) => _ = owed.clear(debt, name),
    }
}

fn event() -> impl Strategy<Value = Event> {
    let of_table = (0..TABLE.len()).prop_map(|at| TABLE[at].event);
    prop_oneof![40 => of_table, 1 => Just(Event::Lapse), 1 => Just(Event::Conclude { there: false })]
}

proptest! {
    #[test]
    fn what_happens_to_a_name_changes_its_debts_as_the_table_says_and_those_of_no_other(
        steps in proptest::collection::vec((event(), 0..3_usize), 0..80),
    ) {
        let names = ["plain", "xdstp://a/T/0/1", "xdstp://a/T/0/*"].map(|text| text.parse::<ResourceName>().unwrap());
        let mut owed = Owed::default();
        for (event, which) in steps {
            let before = names.each_ref().map(|name| debts(&owed, name));
            happen(&mut owed, event, &names[which]);
            for (at, name) in names.iter().enumerate() {
                let expected = if at == which { after(event, &before[at]) } else { before[at].clone() };
                assert_eq!(debts(&owed, name), expected, "{event:?} of {:?}", before[at]);
            }
            for debt in Debt::ALL {
                assert_eq!(owed.owes_any(debt), names.iter().any(|name| owed.owes(debt, name)), "{debt:?}");
            }
        }
    }

    #[test]
    fn each_reason_is_told_in_the_order_of_names(events in proptest::collection::vec((event(), 0..3_usize), 0..80)) {
        let names = ["a", "b", "c"].map(|text| text.parse::<ResourceName>().unwrap());
        let mut owed = Owed::default();
        events.into_iter().for_each(|(event, which)| happen(&mut owed, event, &names[which]));
        type Next = fn(&mut Owed) -> Option<ResourceName>;
        let next: [(Debt, Next); 4] = [
            (Removal, Owed::next_removal),
            (Missing, Owed::next_missing),
            (Debt::Answer, Owed::next_answer),
            (Error, Owed::next_error),
        ];
        for (debt, next) in next {
            let expected: Vec<_> = names.iter().filter(|name| debts(&owed, name).contains(&debt)).cloned().collect();
            assert_eq!(std::iter::from_fn(|| next(&mut owed)).collect::<Vec<_>>(), expected, "{debt:?}");
        }
    }
}
