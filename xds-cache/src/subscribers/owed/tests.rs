//! The table of what becomes of a name's debts, and that it is what happens.

use proptest::prelude::*;

use super::Debt::{Comparison, Concluded, Error, Missing, Removal, Unsent};
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
    DeferRemoval,
    DeferMissing,
    DeferError,
    Clear(Debt),
}

const EVENTS: &[Event] = &[
    Event::Gone,
    Event::Went,
    Event::Missed,
    Event::Absent { sent: false },
    Event::Absent { sent: true },
    Event::Empty,
    Event::Conclude { there: false },
    Event::Conclude { there: true },
    Event::Answer,
    Event::Fail,
    Event::Bring,
    Event::Spare,
    Event::Came,
    Event::Stays,
    Event::ToldGone,
    Event::ToldError { removed: true },
    Event::ToldError { removed: false },
    Event::Asked,
    Event::Unwanted { keeps: true },
    Event::Unwanted { keeps: false },
    Event::Lapse,
    Event::DeferRemoval,
    Event::DeferMissing,
    Event::DeferError,
    Event::Clear(Removal),
    Event::Clear(Missing),
    Event::Clear(Debt::Answer),
    Event::Clear(Error),
    Event::Clear(Comparison),
    Event::Clear(Unsent),
    Event::Clear(Concluded),
];

/// What an event does to the debts of its name.
struct Row {
    event: String,
    /// What is to be so, of the debts before or of what the event says.
    conditions: Vec<String>,
    sets: Vec<Debt>,
    clears: Vec<Debt>,
}

/// The table of the documentation.
fn table() -> Vec<Row> {
    let rows = include_str!("../owed.rs").lines().filter_map(|line| line.strip_prefix("/// | `"));
    let row = |line: &str| {
        let (event, cells) = line.split_once('`').unwrap();
        let cells: Vec<_> = cells.split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 2 + Debt::ALL.len() + 1, "{line}");
        let debts = |what: &str| {
            let with = |(debt, cell): (Debt, &&str)| (*cell == what).then_some(debt);
            Debt::ALL.into_iter().zip(&cells[2..]).filter_map(with).collect::<Vec<_>>()
        };
        let (sets, clears) = (debts("set"), debts("clear"));
        let filled = cells[2..].iter().filter(|cell| !cell.is_empty()).count();
        assert_eq!(sets.len() + clears.len(), filled, "{line}");
        let conditions = cells[1].split(", ").filter(|condition| !condition.is_empty()).map(str::to_owned).collect();
        Row { event: event.to_owned(), conditions, sets, clears }
    };
    rows.map(row).collect()
}

impl Event {
    /// Its name in the table, and what it says of the name.
    fn written(self) -> (&'static str, &'static str) {
        match self {
            Self::Gone => ("gone", ""),
            Self::Went => ("went", ""),
            Self::Missed => ("missed", ""),
            Self::Absent { sent } => ("absent", if sent { "" } else { "unsent" }),
            Self::Empty => ("empty", ""),
            Self::Conclude { there } => ("conclude", if there { "" } else { "lacking" }),
            Self::Answer => ("answer", ""),
            Self::Fail => ("fail", ""),
            Self::Bring => ("bring", ""),
            Self::Spare => ("spare", ""),
            Self::Came => ("came", ""),
            Self::Stays => ("stays", ""),
            Self::ToldGone => ("told_gone", ""),
            Self::ToldError { removed } => ("told_error", if removed { "removed" } else { "" }),
            Self::Asked => ("asked", ""),
            Self::Unwanted { keeps } => ("unwanted", if keeps { "kept" } else { "" }),
            Self::Lapse => ("lapse", ""),
            Self::DeferRemoval => ("defer_removals", ""),
            Self::DeferMissing => ("defer_missing", ""),
            Self::DeferError => ("defer_errors", ""),
            Self::Clear(_) => ("clear", ""),
        }
    }
}

fn after(event: Event, before: &BTreeSet<Debt>, table: &[Row]) -> BTreeSet<Debt> {
    if let Event::Clear(debt) = event {
        return before.iter().filter(|other| **other != debt).copied().collect();
    }
    let (name, said) = event.written();
    let is_owed = |text: &str| before.iter().any(|debt| format!("{debt:?}") == text);
    let holds = |condition: &String| match condition.strip_prefix("no ") {
        Some(debt) => !is_owed(debt),
        None => condition == said || is_owed(condition),
    };
    let row = table.iter().find(|row| row.event == name && row.conditions.iter().all(holds));
    let row = row.unwrap_or_else(|| panic!("no row for {event:?}"));
    before.iter().filter(|debt| !row.clears.contains(debt)).chain(&row.sets).copied().collect()
}

#[test]
fn each_row_of_the_table_is_of_something_that_happens() {
    let words = Debt::ALL.map(|debt| format!("{debt:?}"));
    let events: Vec<_> = EVENTS.iter().map(|event| event.written()).collect();
    let table = table();
    for Row { event, conditions, .. } in &table {
        assert!(events.iter().any(|(name, _)| name == event), "{event}");
        for condition in conditions {
            let debt = condition.strip_prefix("no ").unwrap_or(condition);
            let is_said = events.contains(&(event, condition));
            assert!(is_said || words.iter().any(|word| word == debt), "{event}: {condition}");
        }
    }
    for (name, said) in events {
        let of_event = || table.iter().filter(|row| row.event == name);
        assert!(name == "clear" || of_event().any(|row| row.conditions.is_empty()), "{name}");
        assert!(said.is_empty() || of_event().any(|row| row.conditions.iter().any(|is| is == said)), "{name}: {said}");
    }
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
        Event::DeferRemoval => owed.defer_removals(vec![of()]),
        Event::DeferMissing => owed.defer_missing(vec![of()]),
        Event::DeferError => owed.defer_errors([of()].into()),
        Event::Clear(debt) => _ = owed.clear(debt, name),
    }
}

fn event() -> impl Strategy<Value = Event> {
    proptest::sample::select(EVENTS)
}

proptest! {
    #[test]
    fn what_happens_to_a_name_changes_its_debts_as_the_table_says_and_those_of_no_other(
        steps in proptest::collection::vec((event(), 0..3_usize), 0..80),
    ) {
        let names = ["plain", "xdstp://a/T/0/1", "xdstp://a/T/0/*"].map(|text| text.parse::<ResourceName>().unwrap());
        let (mut owed, table) = (Owed::default(), table());
        for (event, which) in steps {
            let before = names.each_ref().map(|name| debts(&owed, name));
            happen(&mut owed, event, &names[which]);
            for (at, name) in names.iter().enumerate() {
                let expected = if at == which { after(event, &before[at], &table) } else { before[at].clone() };
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

#[test]
fn who_asks_for_a_name_may_hold_what_it_brought_along_or_is_to_be_told_of_unless_it_cannot_have_it() {
    let name: ResourceName = "a".parse().unwrap();
    let asked = |happens: fn(&mut Owed, ResourceName)| {
        let mut owed = Owed::default();
        happens(&mut owed, name.clone());
        owed.asked(&name, &name)
    };
    assert!(!asked(|_, _| ()));
    assert!(asked(|owed, name| owed.bring(name, None)));
    assert!(asked(|owed, name| _ = owed.gone(name)));
    assert!(asked(Owed::answer));
    assert!(!asked(|owed, name| owed.absent(name, false)));
}
