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

/// What is told of what a watch saw: one event at most.
fn see(progress: &mut Progress, place: usize, server: Option<usize>, event: xdstp_client::Event) -> Option<Event> {
    let told = all(progress, place, server, event);
    assert!(told.len() < 2, "{told:?}");
    told.into_iter().next()
}

fn all(progress: &mut Progress, place: usize, server: Option<usize>, event: xdstp_client::Event) -> Vec<Event> {
    progress.seen(place, From { server, stale: false }, event)
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
        seen.filter_map(|(place, event)| see(&mut progress, place, None, event)).count()
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
    let told = see(&mut progress, 0, None, absent("a")).unwrap();
    assert_eq!(kinds(&[told]), [(Some("a"), Kind::Absent)]);
    assert_eq!(see(&mut progress, 0, None, absent("a")), None);
    see(&mut progress, 1, None, put("b", "1", "x")).unwrap();
    assert_eq!((progress.is_waiting(), progress.verdict()), (false, Verdict::Wrong));
    assert_eq!(see(&mut progress, 1, None, deleted("b")).unwrap().what, What::Removed);

    see(&mut progress, 0, None, put("a", "1", "x")).unwrap();
    see(&mut progress, 1, None, put("b", "1", "x")).unwrap();
    assert_eq!(progress.verdict(), Verdict::There);
}

#[test]
fn a_collection_is_there_when_it_is_answered_be_it_empty() {
    let mut progress = progress(&[("*", 0)]);
    see(&mut progress, 0, None, put("a", "1", "x")).unwrap();
    assert!(progress.is_waiting());
    assert_eq!(see(&mut progress, 0, None, removed("never")), None);
    assert_eq!(see(&mut progress, 0, None, xdstp_client::Event::Answered).unwrap().what, What::Answered);
    assert_eq!((progress.is_waiting(), progress.verdict()), (false, Verdict::There));
}

#[test]
fn a_lost_stream_is_an_error_or_makes_what_was_printed_stale_and_takes_nothing_away() {
    let mut progress = progress(&[("a", 0), ("b", 1)]);
    see(&mut progress, 0, None, put("a", "1", "x")).unwrap();
    let of_held = see(&mut progress, 0, None, lost("gone")).unwrap();
    assert!(matches!(of_held.what, What::Ambient(Some(Failure { kind: Kind::Unreachable, .. }))), "{of_held:?}");
    assert_eq!(see(&mut progress, 0, None, lost("again")), None, "it is said once");
    assert_eq!(see(&mut progress, 0, None, back()).unwrap().what, What::Ambient(None));
    assert_eq!(see(&mut progress, 0, None, back()), None);

    let of_nothing = see(&mut progress, 1, None, lost("gone")).unwrap();
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
        see(&mut progress, 0, None, lost(words)).unwrap();
        see(&mut progress, 1, None, lost("Unavailable: PermissionDenied, it seems")).unwrap();
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
    see(&mut progress, 0, None, put("a", "1", "x")).unwrap();
    assert_eq!(progress.verdict(), Verdict::Wrong);
}

#[test]
fn that_the_trouble_of_a_resource_is_over_is_told_though_it_is_as_it_was() {
    let mut progress = progress(&[("a", 0)]);
    let refused = Error::Invalid { version: "2".into(), reason: "no".into() };
    let ambient = xdstp_client::Event::Ambient { name: Some(name("a")), error: Some(refused) };
    see(&mut progress, 0, None, put("a", "1", "x")).unwrap();
    let told = see(&mut progress, 0, None, ambient).unwrap();
    assert!(matches!(told.what, What::Ambient(Some(Failure { kind: Kind::Invalid, .. }))), "{told:?}");
    let over = see(&mut progress, 0, None, put("a", "1", "x"));
    assert_eq!(over, Some(Event { server: Some(0), name: Some("a".into()), what: What::Ambient(None) }));
    assert_eq!(see(&mut progress, 0, None, put("a", "1", "x")), None);
}

const LIST: &str = "xdstp://a/envoy.config.cluster.v3.ClusterCollection/all";

#[test]
fn a_list_that_goes_is_told_and_wrong_until_it_is_back() {
    let mut progress = progress(&[(LIST, 0)]);
    see(&mut progress, 0, None, put("m", "1", "x")).unwrap();
    see(&mut progress, 0, None, xdstp_client::Event::Answered).unwrap();
    let gone = see(&mut progress, 0, None, deleted(LIST)).unwrap();
    assert!(matches!(gone.what, What::Ambient(Some(Failure { kind: Kind::Absent, .. }))), "{gone:?}");
    assert_eq!((gone.name.as_deref(), progress.verdict()), (Some(LIST), Verdict::Wrong));
    assert_eq!(see(&mut progress, 0, None, deleted(LIST)), None, "it is said once");
    let back = xdstp_client::Event::Ambient { name: Some(name(LIST)), error: None };
    let back = see(&mut progress, 0, None, back).unwrap();
    assert_eq!((back.name.as_deref(), back.what), (Some(LIST), What::Ambient(None)));
    assert_eq!(progress.verdict(), Verdict::There);
}

#[test]
fn with_a_list_of_which_nothing_is_used_on_what_it_alone_has_is_removed() {
    let mut progress = progress(&[(LIST, 0), ("also", 0)]);
    for member in ["also", "m"] {
        see(&mut progress, 0, None, put(member, "1", "x")).unwrap();
    }
    assert_eq!(see(&mut progress, 1, None, put("also", "1", "x")), None);
    see(&mut progress, 0, None, xdstp_client::Event::Answered).unwrap();
    let told = all(&mut progress, 0, None, absent(LIST));
    assert_eq!((told[0].name.as_deref(), &told[0].what), (Some("m"), &What::Removed));
    assert_eq!(kinds(&told[1..]), [(Some(LIST), Kind::Absent)]);
    assert_eq!(progress.verdict(), Verdict::Wrong);
    see(&mut progress, 0, None, put("m", "1", "x")).expect("it is back");
    see(&mut progress, 0, None, xdstp_client::Event::Answered).unwrap();
    assert_eq!(progress.verdict(), Verdict::There);
}

#[test]
fn a_collection_is_as_its_members_are() {
    let refused = Error::Refused { code: 7, reason: "no".into() };
    for (error, kind, verdict) in [
        (Error::Absent, Kind::Absent, Verdict::Wrong),
        (refused, Kind::Refused, Verdict::Unknown),
        (unreachable("gone"), Kind::Unreachable, Verdict::Unknown),
        (unreachable("PermissionDenied: not you"), Kind::Refused, Verdict::Unknown),
    ] {
        let mut progress = progress(&[(LIST, 0)]);
        let failed = xdstp_client::Event::Failed { name: Some(name("m")), error };
        let told = see(&mut progress, 0, None, failed.clone()).unwrap();
        assert_eq!(kinds(&[told]), [(Some("m"), kind)]);
        see(&mut progress, 0, None, xdstp_client::Event::Answered).unwrap();
        assert_eq!(progress.verdict(), verdict);
        assert_eq!(progress.is_waiting(), kind == Kind::Unreachable, "{kind:?}");
        see(&mut progress, 0, None, put("m", "1", "x")).unwrap();
        assert_eq!((progress.verdict(), progress.is_waiting()), (Verdict::There, false));
    }
    let mut progress = progress(&[(LIST, 0)]);
    see(&mut progress, 0, None, absent("m")).unwrap();
    see(&mut progress, 0, None, xdstp_client::Event::Answered).unwrap();
    assert_eq!(see(&mut progress, 0, None, removed("m")), None);
    assert_eq!(progress.verdict(), Verdict::There, "it is no member any more");
}

#[test]
fn what_is_wrong_is_over_when_it_is_for_all_who_were_told_so() {
    let mut progress = progress(&[("*", 0), ("a", 0)]);
    let refused = || Error::Refused { code: 7, reason: "no".into() };
    let ambient = || xdstp_client::Event::Ambient { name: Some(name("a")), error: Some(refused()) };
    see(&mut progress, 0, None, put("a", "1", "x")).unwrap();
    see(&mut progress, 0, None, ambient()).unwrap();
    assert_eq!(
        see(&mut progress, 1, None, put("a", "1", "x")),
        None,
        "the other was told so, and this one is yet to be"
    );
    assert_eq!(see(&mut progress, 1, None, ambient()), None, "it is said once");
    assert_eq!(see(&mut progress, 0, None, put("a", "1", "x")), None);
    assert_eq!(see(&mut progress, 1, None, put("a", "1", "x")).unwrap().what, What::Ambient(None));
}

#[test]
fn what_was_stale_and_is_as_it_was_is_told_once() {
    let mut progress = progress(&[("*", 0)]);
    let stale = From { server: None, stale: true };
    for member in ["a", "b"] {
        let told = progress.seen(0, stale, put(member, "1", "x"));
        assert!(matches!(told[0].what, What::Put { stale: true, .. }), "{told:?}");
    }
    assert_eq!(see(&mut progress, 0, None, put("a", "1", "x")).unwrap().what, What::Ambient(None));
    let confirmed = progress.confirmed(0);
    assert_eq!(confirmed, [Event { server: Some(0), name: Some("b".into()), what: What::Ambient(None) }]);
    assert_eq!(progress.confirmed(0), []);
}

#[test]
fn of_several_servers_the_end_of_a_trouble_is_told_of_the_one_that_was_named() {
    let mut progress = Progress::new(["first".to_owned(), "second".to_owned()]);
    progress.ask(name("a").into(), 0);
    let of_second = Error::Unreachable { server: "second".into(), node: "".into(), reason: "gone".into() };
    see(&mut progress, 0, Some(0), put("a", "1", "x")).unwrap();
    let event = xdstp_client::Event::Ambient { name: None, error: Some(of_second) };
    let lost = see(&mut progress, 0, Some(0), event).unwrap();
    let What::Ambient(Some(failure)) = &lost.what else { panic!("{lost:?}") };
    assert_eq!((lost.server, &*failure.message), (Some(1), "no stream to second: gone"));
    let found = see(&mut progress, 0, Some(0), back()).unwrap();
    assert_eq!((found.server, found.what), (Some(1), What::Ambient(None)));
}

#[test]
fn a_server_that_is_back_is_told_though_something_is_wrong_with_the_resource_still() {
    for error in [Error::Absent, Error::Refused { code: 7, reason: "no".into() }] {
        let mut progress = progress(&[("a", 0)]);
        let amiss = || xdstp_client::Event::Ambient { name: Some(name("a")), error: Some(error.clone()) };
        see(&mut progress, 0, None, put("a", "1", "x")).unwrap();
        see(&mut progress, 0, None, amiss()).unwrap();
        see(&mut progress, 0, None, lost("gone")).unwrap();
        // A watch says that again, in place of the end of the trouble.
        let found = see(&mut progress, 0, None, amiss()).unwrap();
        assert_eq!(found, Event { server: Some(0), name: None, what: What::Ambient(None) });
    }
}

#[test]
fn a_collection_that_its_server_does_not_send_is_not_there_whatever_was_answered_before() {
    for (asked, error, expected) in [
        ("*", Error::Refused { code: 7, reason: "not yours".into() }, Verdict::Unknown),
        ("xdstp://a/T/d/*", Error::Refused { code: 7, reason: "not yours".into() }, Verdict::Unknown),
        ("xdstp://a/T/d/*", Error::Absent, Verdict::Wrong),
    ] {
        let mut progress = progress(&[(asked, 0)]);
        see(&mut progress, 0, None, put("xdstp://a/T/d/1", "1", "x")).unwrap();
        let failed = xdstp_client::Event::Failed { name: Some(name(asked)), error };
        let told = see(&mut progress, 0, None, failed).unwrap();
        assert_eq!((told.name.as_deref(), matches!(told.what, What::Error(_))), (Some(asked), true));
        see(&mut progress, 0, None, xdstp_client::Event::Answered).unwrap();
        assert_eq!((progress.is_waiting(), progress.verdict()), (false, expected), "{asked}");
    }
}

#[test]
fn that_a_collection_is_refused_is_told_once_though_it_was_answered_before() {
    for asked in ["*", "xdstp://a/T/d/*"] {
        let mut progress = progress(&[(asked, 0)]);
        see(&mut progress, 0, None, xdstp_client::Event::Answered).unwrap();
        let error = Error::Refused { code: 7, reason: "not yours".into() };
        let refused = xdstp_client::Event::Ambient { name: Some(name(asked)), error: Some(error) };
        let told = see(&mut progress, 0, None, refused.clone()).unwrap();
        assert_eq!(kinds(&[told]), [(Some(asked), Kind::Refused)]);
        assert_eq!(see(&mut progress, 0, None, refused), None);
        assert_eq!(progress.verdict(), Verdict::Unknown);
    }
}
