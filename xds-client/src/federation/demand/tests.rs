use super::*;

const LINGER: Duration = Duration::from_secs(30);

fn wish(name: &str) -> Wish {
    ("T".into(), Interest::from(name.parse::<ResourceName>().unwrap()))
}

fn expire(demand: &mut Demand, now: Instant, connected: bool, stays: impl Fn(&Wish) -> bool) -> Vec<Wish> {
    let (over, more) = demand.expire(now, usize::MAX, (connected, &BTreeSet::new()), stays);
    assert!(!more);
    over
}

fn told(demand: &mut Demand) -> String {
    let mut told = Vec::new();
    demand.take_asks(0, None, usize::MAX, &mut |command| match command {
        Command::Subscribe(_, interest) => told.push(format!("+{interest}")),
        Command::Unsubscribe(_, interest) => told.push(format!("-{interest}")),
        _ => {}
    });
    told.join(" ")
}

#[test]
fn rule_141_what_lingers_is_not_asked_for_again_unless_its_answer_is_forgotten() {
    let now = Instant::now();
    let mut demand = Demand::new(LINGER);
    assert!(demand.want(wish("a"), false));
    assert_eq!(told(&mut demand), "+a");
    demand.leave(wish("a"));
    assert_eq!(expire(&mut demand, now, true, |_| false), []);
    assert!(!demand.want(wish("a"), true));
    assert_eq!(demand.poll_timeout(), None);
    demand.leave(wish("a"));
    assert!(demand.want(wish("a"), false));
    assert_eq!(told(&mut demand), "-a +a");
}

#[test]
fn what_was_never_told_need_not_be_taken_back() {
    let now = Instant::now();
    let mut demand = Demand::new(Duration::ZERO);
    demand.want(wish("a"), false);
    demand.leave(wish("a"));
    assert_eq!(expire(&mut demand, now, true, |_| true), [wish("a")]);
    assert_eq!(told(&mut demand), "");
    assert!(demand.is_idle());
}

#[test]
fn what_is_wanted_anew_before_the_origin_is_told_is_asked_for_again() {
    let now = Instant::now();
    let mut demand = Demand::new(Duration::ZERO);
    demand.want(wish("a"), false);
    told(&mut demand);
    demand.leave(wish("a"));
    expire(&mut demand, now, true, |_| true);
    assert!(demand.want(wish("a"), false));
    assert_eq!(told(&mut demand), "-a +a");
}

/// What can be served stays while the origin is away, and its time is not reported twice.
#[test]
fn an_origin_that_is_away_keeps_what_it_answered() {
    let now = Instant::now();
    let mut demand = Demand::new(LINGER);
    for name in ["held", "not"] {
        demand.want(wish(name), false);
        demand.leave(wish(name));
    }
    expire(&mut demand, now, false, |_| true);
    assert_eq!(demand.poll_timeout(), Some(now + LINGER));
    assert_eq!(expire(&mut demand, now + LINGER, false, |wish| wish.1.as_str() == "held"), [wish("not")]);
    assert_eq!(demand.poll_timeout(), None);
    assert!(!demand.is_idle());
    assert_eq!(expire(&mut demand, now + LINGER, true, |_| true), [wish("held")]);
    assert!(demand.wanted().is_empty());
}

#[test]
fn what_lingers_without_an_answer_can_be_forgone() {
    let now = Instant::now();
    let mut demand = Demand::new(LINGER);
    for name in ["held", "not", "wanted"] {
        demand.want(wish(name), false);
    }
    assert_eq!(told(&mut demand), "+held +not +wanted");
    for name in ["held", "not"] {
        demand.leave(wish(name));
    }
    assert_eq!(demand.forgo(now, |wish| wish.1.as_str() == "held"), [wish("not")]);
    assert_eq!(told(&mut demand), "-not");
    assert_eq!(expire(&mut demand, now + LINGER, true, |_| true), [wish("held")]);
    assert_eq!(demand.wanted(), &BTreeSet::from([wish("wanted")]));
}

/// What nobody wants takes nobody's place who is there: no more of it lingers than there is room for, in all scopes together.
#[test]
fn what_lingers_beyond_its_room_goes_in_order_of_time() {
    let now = Instant::now();
    let room = Quota::new("lingering_names", "lingering names", 2);
    let [mut one, mut other] = [(); 2].map(|()| Demand::new(Linger { time: LINGER, room: room.clone() }));
    let leave = |demand: &mut Demand, name: &str, seconds: u64| {
        demand.want(wish(name), false);
        demand.leave(wish(name));
        expire(demand, now + Duration::from_secs(seconds), false, |_| true)
    };
    assert_eq!(leave(&mut one, "b", 0), []);
    assert_eq!(leave(&mut one, "a", 1), []);
    assert_eq!(leave(&mut one, "c", 2), [wish("b")]);
    assert_eq!(leave(&mut other, "d", 3), [wish("d")], "what others have lingering is theirs");
    assert!(other.wanted().is_empty() && other.poll_timeout().is_none());
    // Who is wanted again makes room, and is not touched.
    assert!(!one.want(wish("c"), true));
    assert_eq!(leave(&mut other, "d", 4), []);
    assert_eq!(leave(&mut one, "e", 5), [wish("a")]);
    assert_eq!(one.wanted(), &BTreeSet::from([wish("c"), wish("e")]));
    // The room of a scope that goes is free.
    drop(other);
    assert_eq!(leave(&mut one, "f", 6), []);
}

/// What many names want, expire and tell is done a few at a time: nothing is lost or told twice in between.
#[test]
fn what_is_much_is_told_and_given_up_in_parts() {
    let now = Instant::now();
    let mut demand = Demand::new(LINGER);
    let told = |demand: &mut Demand| {
        let mut parts = Vec::new();
        loop {
            let mut part = Vec::new();
            let more = demand.take_asks(0, None, 2, &mut |command| match command {
                Command::Subscribe(_, interest) => part.push(format!("+{interest}")),
                Command::Unsubscribe(_, interest) => part.push(format!("-{interest}")),
                _ => {}
            });
            parts.push(part.join(" "));
            if !more {
                return parts;
            }
        }
    };
    ["a", "b", "c", "d"].iter().for_each(|name| assert!(demand.want(wish(name), false)));
    assert_eq!(told(&mut demand), ["+a +b", "+c +d"]);
    ["a", "b", "c"].iter().for_each(|name| demand.leave(wish(name)));
    assert_eq!(demand.expire(now, 2, (true, &BTreeSet::new()), |_| false), (vec![], true));
    assert_eq!(demand.expire(now, 2, (true, &BTreeSet::new()), |_| false), (vec![], false));
    assert_eq!(demand.expire(now + LINGER, 2, (true, &BTreeSet::new()), |_| false), (vec![wish("a"), wish("b")], true));
    assert!(demand.want(wish("e"), false));
    assert_eq!(demand.expire(now + LINGER, 2, (true, &BTreeSet::new()), |_| false), (vec![wish("c")], false));
    assert_eq!(told(&mut demand), ["-a -b", "-c +e"]);
    assert_eq!(told(&mut demand), [""]);
}

/// What had no room is tried again with the next telling, not within one that goes on.
#[test]
fn what_had_no_room_waits_for_the_next_telling() {
    let room = RequestRoom::new(1 << 10);
    let long = "n".repeat(500);
    let mut demand = Demand::new(Duration::ZERO);
    for name in ["a", "b", "c"] {
        demand.want(wish(&format!("{name}{long}")), false);
    }
    let mut told = 0;
    while demand.take_asks(0, Some(&room), 1, &mut |_| told += 1) {}
    assert_eq!((told, demand.lacking(0).unwrap().len()), (1, 1));
    assert!(!demand.want(wish(&format!("b{long}")), false), "it is wanted already");
    demand.leave(wish(&format!("a{long}")));
    assert_eq!(expire(&mut demand, Instant::now(), true, |_| false).len(), 1);
    let mut told = Vec::new();
    while demand.take_asks(0, Some(&room), 1, &mut |command| told.push(command)) {}
    assert!(matches!(told[..], [Command::Unsubscribe(..), Command::Subscribe(..)]));
    assert!(!demand.is_idle());
}

#[test]
fn a_type_is_wanted_as_long_as_anything_of_it_is() {
    let mut demand = Demand::new(Duration::ZERO);
    demand.want(wish("a"), false);
    assert!(demand.wants_type(&"T".into()));
    assert!(!demand.wants_type(&"S".into()));
    assert!(!demand.wants_type(&"U".into()));
}

/// What a further server is told, that is asked or was.
fn told_to(demand: &mut Demand, server: usize, most: usize) -> (String, bool) {
    let mut told = Vec::new();
    let more = demand.take_asks(server, None, most, &mut |command| match command {
        Command::Subscribe(_, interest) => told.push(format!("+{interest}")),
        Command::Unsubscribe(_, interest) => told.push(format!("-{interest}")),
        _ => {}
    });
    (told.join(" "), more)
}

#[test]
fn who_is_not_asked_any_more_is_told_to_forget_what_it_was_told_of_and_nothing_else() {
    let now = Instant::now();
    let mut demand = Demand::new(Duration::ZERO);
    ["a", "b", "c", "gone"].iter().for_each(|name| _ = demand.want(wish(name), false));
    told(&mut demand);
    demand.open();
    assert_eq!(told_to(&mut demand, 1, 4), ("+a +b +c +gone".into(), false));
    // It was not told of these.
    demand.want(wish("d"), false);
    demand.leave(wish("gone"));
    expire(&mut demand, now, true, |_| false);
    demand.close_behind(1);
    assert!(demand.leaves_any((0, 1)) && !demand.asks_several());
    assert_eq!(told_to(&mut demand, 1, 2), ("-a -b".into(), true));
    assert_eq!(told_to(&mut demand, 1, 2), ("-c -gone".into(), false));
    assert!(!demand.leaves_any((0, 1)));
    assert_eq!(told(&mut demand), "-gone +d", "the first is asked as before");
}

#[test]
fn who_is_asked_again_before_it_was_told_that_it_is_not_is_told_that_first() {
    let mut demand = Demand::new(Duration::ZERO);
    ["a", "b"].iter().for_each(|name| _ = demand.want(wish(name), false));
    told(&mut demand);
    demand.open();
    assert_eq!(told_to(&mut demand, 1, 9), ("+a +b".into(), false));
    demand.close_behind(1);
    demand.open();
    demand.close_behind(1);
    demand.open();
    assert_eq!(told_to(&mut demand, 1, 1), ("-a".into(), true));
    assert_eq!(told_to(&mut demand, 1, 9), ("-b +a +b".into(), false));
    assert_eq!(told_to(&mut demand, 1, 9), (String::new(), false));
}

#[test]
fn a_stream_that_ends_is_told_nothing_of_what_it_was_told_and_its_room_is_given_back() {
    let mut demand = Demand::new(Duration::ZERO);
    let room = RequestRoom::new(1000);
    demand.want(wish("a"), false);
    told(&mut demand);
    demand.open();
    demand.telling_mut(1).unwrap().room = Some(room.clone());
    told_to(&mut demand, 1, 9);
    demand.close_behind(1);
    assert_eq!(room.returns(), 0, "it is subscribed there still");
    demand.has_left((0, 1));
    assert_eq!((room.returns(), demand.leaves_any((0, 1))), (1, false));
    assert_eq!(told_to(&mut demand, 1, 9), (String::new(), false));
}
