use super::*;

const KEEPS: Rules = Rules { fail_on_data_errors: false, timer_is_transient: false };
const DROPS: Rules = Rules { fail_on_data_errors: true, timer_is_transient: false };
const WAITS: Rules = Rules { fail_on_data_errors: false, timer_is_transient: true };
const BOTH: Rules = Rules { fail_on_data_errors: true, timer_is_transient: true };

const REQUESTED: Entry = Entry { status: Status::Requested, held: false };
const ACKED: Entry = Entry { status: Status::Acked, held: true };

fn entry(status: Status, held: bool) -> Entry {
    Entry { status, held }
}

/// Every state that there is: what was asked for is not held, what is accepted is, and what time decided was never there.
fn entries() -> Vec<Entry> {
    use Status::{DoesNotExist, Nacked, ReceivedError, Timeout};
    let either = [DoesNotExist, Nacked, ReceivedError].into_iter().flat_map(|of| [entry(of, false), entry(of, true)]);
    [REQUESTED, ACKED, entry(Timeout, false)].into_iter().chain(either).collect()
}

/// Says of every state, with these rules, what happens.
fn all(happens: Happens, rules: &[Rules], expected: impl Fn(Entry) -> (Entry, Hears)) {
    for (entry, rules) in entries().into_iter().flat_map(|entry| rules.iter().map(move |rules| (entry, *rules))) {
        assert_eq!(entry.after(happens, rules), expected(entry), "{entry:?}, {happens:?}, {rules:?}");
    }
}

fn wrong(status: Status, held: bool) -> (Entry, Hears) {
    (entry(status, held), if held { Hears::Ambient } else { Hears::Failed })
}

const ALL: [Rules; 4] = [KEEPS, DROPS, WAITS, BOTH];

#[test]
fn r063_what_came_ends_every_error() {
    all(Happens::Came, &ALL, |_| (ACKED, Hears::Changed));
}

#[test]
fn r043_what_came_as_it_is_held_is_news_only_after_an_error() {
    all(Happens::CameAgain, &ALL, |before| (ACKED, if before == ACKED { Hears::Nothing } else { Hears::Changed }));
}

#[test]
fn r057_what_is_refused_leaves_what_is_held_unless_the_server_fails_on_data_errors() {
    all(Happens::Refused, &[KEEPS, WAITS], |before| wrong(Status::Nacked, before.held));
    all(Happens::Refused, &[DROPS, BOTH], |_| wrong(Status::Nacked, false));
}

#[test]
fn r057_what_is_gone_leaves_what_is_held_unless_the_server_fails_on_data_errors() {
    all(Happens::Gone, &[KEEPS, WAITS], |before| wrong(Status::DoesNotExist, before.held));
    all(Happens::Gone, &[DROPS, BOTH], |_| wrong(Status::DoesNotExist, false));
}

#[test]
fn r056_an_error_that_passes_never_takes_anything_away() {
    all(Happens::Failed { transient: true }, &ALL, |before| wrong(Status::ReceivedError, before.held));
}

#[test]
fn r061_an_error_of_the_resource_is_one_of_its_data() {
    all(Happens::Failed { transient: false }, &[KEEPS, WAITS], |before| wrong(Status::ReceivedError, before.held));
    all(Happens::Failed { transient: false }, &[DROPS, BOTH], |_| wrong(Status::ReceivedError, false));
}

#[test]
fn r060_time_decides_of_what_nothing_was_said_of_and_of_nothing_else() {
    let told = |status| move |before| if before == REQUESTED { wrong(status, false) } else { (before, Hears::Nothing) };
    all(Happens::Silent, &[KEEPS, DROPS], told(Status::DoesNotExist));
    all(Happens::Silent, &[WAITS, BOTH], told(Status::Timeout));
}

#[test]
fn r056_a_server_that_is_away_changes_nothing_of_what_is_known() {
    all(Happens::Lost, &ALL, |before| wrong(before.status, before.held));
}

#[test]
fn r051_a_server_that_is_back_ends_its_absence_and_no_other_error() {
    all(Happens::Back, &ALL, |before| match before.status {
        Status::Requested | Status::Acked => (before, Hears::Cleared),
        status => wrong(status, before.held),
    });
}

#[test]
fn r062_the_status_is_what_is_held_and_the_newest_error() {
    let error = |cause| ResourceError::new(5, "because").found_by(cause);
    let refused = || error(Cause::Refused("1".into()));
    for held in [false, true] {
        let of = |error: ResourceError, rules| Entry::of(held, Some(&error), true, rules);
        assert_eq!(of(refused(), KEEPS), entry(Status::Nacked, held));
        assert_eq!(of(error(Cause::Said), KEEPS), entry(Status::ReceivedError, held));
        assert_eq!(of(error(Cause::Deleted), KEEPS), entry(Status::DoesNotExist, held));
        assert_eq!(of(error(Cause::Silence), KEEPS), entry(Status::DoesNotExist, held));
        assert_eq!(of(error(Cause::Silence), WAITS), entry(Status::Timeout, held));
    }
    assert_eq!(Entry::of(true, None, true, KEEPS), ACKED);
    assert_eq!(Entry::of(false, None, true, KEEPS), entry(Status::DoesNotExist, false));
    assert_eq!(Entry::of(false, None, false, KEEPS), REQUESTED);
}
