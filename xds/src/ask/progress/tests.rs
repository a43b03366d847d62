use super::*;

fn name(text: &str) -> ResourceName {
    text.parse().unwrap()
}

fn put(text: &str, version: &str, body: &'static str) -> xdstp_client::Event {
    xdstp_client::Event::Put { name: name(text), version: version.into(), resource: body.into() }
}

fn removed(text: &str) -> xdstp_client::Event {
    xdstp_client::Event::Removed { name: name(text) }
}

fn absent(text: &str) -> xdstp_client::Event {
    xdstp_client::Event::Failed { name: Some(name(text)), error: Error::Absent }
}

/// Deleted, and what there was of it stays in use.
fn deleted(text: &str) -> xdstp_client::Event {
    xdstp_client::Event::Ambient { name: Some(name(text)), error: Some(Error::Absent) }
}

fn unreachable(reason: &str) -> Error {
    Error::Unreachable { server: "s".into(), node: "".into(), reason: reason.into() }
}

fn lost(reason: &str) -> xdstp_client::Event {
    xdstp_client::Event::Failed { name: None, error: unreachable(reason) }
}

fn back() -> xdstp_client::Event {
    xdstp_client::Event::Ambient { name: None, error: None }
}

/// Asked for by name, of servers `s0`, `s1` and so on.
fn progress(asked: &[(&str, usize)]) -> Progress {
    let servers = asked.iter().map(|(_, server)| server + 1).max().unwrap_or_default();
    let mut progress = Progress::new((0..servers).map(|server| format!("s{server}")));
    asked.iter().for_each(|(text, server)| progress.ask(name(text).into(), *server));
    progress
}

fn kinds(events: &[Event]) -> Vec<(Option<&str>, Kind)> {
    let kind = |event: &Event| match &event.what {
        What::Error(failure) => failure.kind,
        what => panic!("{what:?}"),
    };
    events.iter().map(|event| (event.name.as_deref(), kind(event))).collect()
}

#[test]
fn what_several_names_cover_is_news_once_for_each_change() {
    let mut progress = progress(&[("*", 0), ("a", 0)]);
    let mut news = |events: &[xdstp_client::Event]| {
        let seen = (0..2).flat_map(|place| events.iter().map(move |event| (place, event.clone())));
        seen.filter_map(|(place, event)| progress.seen(place, None, event)).count()
    };
    assert_eq!(news(&[put("a", "1", "x")]), 1);
    assert_eq!(news(&[put("a", "2", "x")]), 1);
    assert_eq!(news(&[put("a", "2", "y")]), 1, "new content at an old version");
    assert_eq!(news(&[removed("a")]), 1);
    assert_eq!(news(&[put("a", "2", "y")]), 1, "it is back");
}

#[test]
fn a_name_that_never_was_is_absent_and_one_that_was_is_removed() {
    let mut progress = progress(&[("a", 0), ("b", 0)]);
    assert!(progress.is_waiting());
    let told = progress.seen(0, None, absent("a")).unwrap();
    assert_eq!(kinds(&[told]), [(Some("a"), Kind::Absent)]);
    assert_eq!(progress.seen(0, None, absent("a")), None);
    progress.seen(1, None, put("b", "1", "x")).unwrap();
    assert_eq!((progress.is_waiting(), progress.verdict()), (false, Verdict::Wrong));
    assert_eq!(progress.seen(1, None, deleted("b")).unwrap().what, What::Removed);

    progress.seen(0, None, put("a", "1", "x")).unwrap();
    progress.seen(1, None, put("b", "1", "x")).unwrap();
    assert_eq!(progress.verdict(), Verdict::There);
}

#[test]
fn a_collection_is_there_when_it_is_answered_be_it_empty() {
    let mut progress = progress(&[("*", 0)]);
    progress.seen(0, None, put("a", "1", "x")).unwrap();
    assert!(progress.is_waiting());
    assert_eq!(progress.seen(0, None, removed("never")), None);
    assert_eq!(progress.seen(0, None, xdstp_client::Event::Answered).unwrap().what, What::Answered);
    assert_eq!((progress.is_waiting(), progress.verdict()), (false, Verdict::There));
}

#[test]
fn a_lost_stream_is_an_error_or_makes_what_was_printed_stale_and_takes_nothing_away() {
    let mut progress = progress(&[("a", 0), ("b", 1)]);
    progress.seen(0, None, put("a", "1", "x")).unwrap();
    let of_held = progress.seen(0, None, lost("gone")).unwrap();
    assert!(matches!(of_held.what, What::Ambient(Some(Failure { kind: Kind::Unreachable, .. }))), "{of_held:?}");
    assert_eq!(progress.seen(0, None, lost("again")), None, "it is said once");
    assert_eq!(progress.seen(0, None, back()).unwrap().what, What::Ambient(None));
    assert_eq!(progress.seen(0, None, back()), None);

    let of_nothing = progress.seen(1, None, lost("gone")).unwrap();
    assert_eq!(kinds(&[of_nothing]), [(None, Kind::Unreachable)]);
    let given_up = progress.give_up(Duration::from_secs(1));
    assert_eq!(kinds(&given_up), [(Some("b"), Kind::Unreachable)]);
    assert_eq!(progress.verdict(), Verdict::Unknown);
    assert_eq!(progress.into_held().len(), 1);
}

#[test]
fn silence_is_no_absence() {
    let mut progress = progress(&[("a", 0)]);
    let given_up = progress.give_up(Duration::from_millis(1500));
    assert_eq!(kinds(&given_up), [(Some("a"), Kind::Timeout)]);
    let What::Error(failure) = &given_up[0].what else { panic!("{given_up:?}") };
    assert_eq!(failure.message, "no answer for a within 1.5 s");
    assert_eq!(progress.verdict(), Verdict::Unknown);
}

#[test]
fn who_does_not_want_to_be_asked_is_not_waited_for() {
    for words in ["PermissionDenied: no", "the origin has no /x: it may speak sotw (Unimplemented: no)"] {
        let mut progress = progress(&[("a", 0), ("b", 1)]);
        progress.seen(0, None, lost(words)).unwrap();
        progress.seen(1, None, lost("Unavailable: PermissionDenied, it seems")).unwrap();
        assert_eq!(kinds(&progress.give_up_refused()), [(Some("a"), Kind::Refused)]);
        assert!(progress.is_waiting());
    }
}

#[test]
fn what_cannot_be_asked_for_is_wrong_and_the_others_go_on() {
    let mut progress = progress(&[("a", 0)]);
    let refused = progress.refuse("xdstp:", "no name");
    assert_eq!(kinds(&[refused]), [(Some("xdstp:"), Kind::Invalid)]);
    assert_eq!((progress.is_waiting(), progress.verdict()), (true, Verdict::Unknown));
    progress.seen(0, None, put("a", "1", "x")).unwrap();
    assert_eq!(progress.verdict(), Verdict::Wrong);
}
