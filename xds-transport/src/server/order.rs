//! Who may say what next on a stream: the order across its types, over delta and SotW alike (rules 122, 123, 158).
//!
//! *Additions* are what a type says at its place in the order. *Removals* are what clusters and endpoints take back, and
//! the errors that do: they go last. Every other type takes back in place, and what never existed is no removal.
//!
//! | waits | for | as long as that one |
//! |---|---|---|
//! | additions | a type of lower rank | has additions, and room in its window |
//! | additions of listeners and routes | a type of lower rank | has additions, and no room: they need its ACK |
//! | additions of any other type | a type without room | never: endpoints are what an ACK may wait for (rule 123) |
//! | removals | any type, its own additions too | has additions, room or not: make before break |
//!
//! A source that hears of one change in several messages, as a relay does, may hear of a removal before the listener or
//! route that stops using what goes: where a stream has any of these, removals wait a while for them. A gRPC client uses that
//! while to ask for what it goes to.
//!
//! A removal that joins others has them all wait as long as it does, whatever it is that they wait for, up to [`PATIENCE`].
//!
//! No wait is for ever. After [`HOLD`] nobody waits any more for a type whose window has been full for as long, because
//! its client may never answer, nor for one that has meanwhile spoken and said all it had, because it may never have nothing
//! to say. A type that is still at what it had is waited for while it gets on, over a slow link for example, up to
//! [`PATIENCE`]. Of those that wait for nobody removals go first, then the one whose last turn is the longest ago.

use std::time::{Duration, Instant};

/// How long a type waits for one that does not get on.
const HOLD: Duration = Duration::from_secs(1);
/// How long a type waits at all: then its client gives up too (rule 138).
const PATIENCE: Duration = Duration::from_secs(15);

/// What a type may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Say {
    /// All but removals, and errors that are some.
    Additions,
    /// Its additions, or else its removals: nobody else has anything to say.
    Alone,
    /// Removals too.
    All,
}

/// How one type of a stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Its place in the order; lower goes first.
    pub(crate) rank: u8,
    /// It waits for the ACKs of lower ranks: listeners and routes.
    pub(crate) gated: bool,
    /// Since when it has additions; where its window is full they may be older.
    pub(crate) additions: Option<Instant>,
    /// Since when it has removals that go last, or since when there is another of them.
    pub(crate) removals: Option<Instant>,
    /// Since when it has any.
    first_removal: Option<Instant>,
    /// Its source's number for the newest of them.
    newest_removal: u64,
    /// Since when its window is full.
    pub(crate) full: Option<Instant>,
    /// When it had last told all its additions: to have had none before is not to have had a turn.
    pub(crate) said_all: Option<Instant>,
    /// It told additions, and may have more.
    telling: bool,
    /// Its last turn: they are counted on the stream.
    pub(crate) turn: u64,
}

/// Who is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The type at this place of the list.
    Of(usize, Say),
    /// Nobody before this time, if nothing happens.
    Nobody(Option<Instant>),
}

/// Whose turn it is; removals `wait` so long for listeners and routes that may yet come.
pub(crate) fn next(now: Instant, types: &[Standing], wait: Duration) -> Turn {
    let mut removals: Option<usize> = None;
    let mut additions: Option<(u64, usize, Say)> = None;
    let mut next: Option<Instant> = None;
    let has_news = |of: &Standing| of.additions.is_some() || of.removals.is_some();
    for (at, of) in types.iter().enumerate().filter(|(_, of)| of.full.is_none() && has_news(of)) {
        let others = types.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
        let waits = wait > Duration::ZERO && others.clone().any(|other| other.gated);
        let alone = !waits && !others.clone().any(has_news);
        let others = others.filter(|other| other.additions.is_some());
        if let Some(since) = of.removals {
            let yet = waits.then_some(since + wait);
            let until = others.clone().map(|other| other.released(since)).chain(of.own(since)).chain(yet).max();
            match until.filter(|until| *until > now) {
                Some(until) => next = Some(next.map_or(until, |next| next.min(until))),
                None => removals = removals.or(Some(at)),
            }
        }
        if let Some(since) = of.additions {
            let until = others.filter(|other| other.precedes(of)).map(|other| other.released(since)).max();
            let say = if alone { Say::Alone } else { Say::Additions };
            match until.filter(|until| *until > now) {
                Some(until) => next = Some(next.map_or(until, |next| next.min(until))),
                None if additions.is_none_or(|(turn, ..)| of.turn < turn) => additions = Some((of.turn, at, say)),
                None => {}
            }
        }
    }
    match (removals, additions) {
        (Some(at), _) => Turn::Of(at, Say::All),
        (None, Some((_, at, say))) => Turn::Of(at, say),
        (None, None) => Turn::Nobody(next),
    }
}

impl Standing {
    /// Whether its additions go before those of another type.
    fn precedes(&self, other: &Self) -> bool {
        self.rank < other.rank && (self.full.is_none() || other.gated)
    }

    /// When its removals of a time need not go after its additions any more.
    fn own(&self, since: Instant) -> Option<Instant> {
        self.additions.map(|_| self.released(since))
    }

    /// When a type that waits since a time waits for this one no more.
    fn released(&self, since: Instant) -> Instant {
        let gets_on = match (self.said_all, self.full) {
            (Some(said_all), _) if said_all >= since => return since + HOLD,
            (_, full) => full,
        };
        gets_on.map_or(since + PATIENCE, |full| (since.max(full) + HOLD).min(since + PATIENCE))
    }
}

/// What a type's standing is made of, from one look to the next.
impl Standing {
    /// At its place in the order, with nothing to say yet.
    pub(crate) fn new(rank: u8, gated: bool) -> Self {
        Self { rank, gated, ..Self::default() }
    }

    /// What it has to say now, and whether there is room in its window.
    pub(crate) fn observe(&mut self, now: Instant, additions: bool, removals: Option<bool>, room: bool) {
        self.full = (!room).then(|| self.full.unwrap_or(now));
        self.additions = additions.then(|| self.additions.unwrap_or(now));
        if !additions && std::mem::take(&mut self.telling) {
            self.said_all = Some(now);
        }
        match removals {
            Some(true) => self.removals = Some(self.removals.unwrap_or(now)),
            Some(false) => (self.removals, self.first_removal) = (None, None),
            // Behind its additions they are not seen.
            None => {}
        }
    }

    /// The newest of its removals has a number: one that joins others waits as long as they did, within reason.
    pub(crate) fn join(&mut self, now: Instant, newest: u64) {
        self.first_removal = self.removals.map(|since| self.first_removal.unwrap_or(since));
        if newest != self.newest_removal && self.first_removal.is_some_and(|first| now < first + PATIENCE) {
            self.removals = Some(now);
        }
        self.newest_removal = newest;
    }

    /// It had its turn, and said something or, after all, nothing.
    pub(crate) fn told(&mut self, turn: u64, say: Say, said: bool) {
        self.turn = turn;
        self.telling |= said && say != Say::All;
        if say == Say::All {
            (self.removals, self.first_removal) = (None, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTERS: Standing = standing(0, false);
    const ENDPOINTS: Standing = standing(1, false);
    const LISTENERS: Standing = standing(4, true);
    const ROUTES: Standing = standing(6, true);

    const fn standing(rank: u8, gated: bool) -> Standing {
        Standing {
            rank,
            gated,
            additions: None,
            removals: None,
            first_removal: None,
            newest_removal: 0,
            full: None,
            said_all: None,
            telling: false,
            turn: 0,
        }
    }

    /// A type, and what it has: `+` additions, `-` removals, `#` a full window, each since `ms`.
    fn with(of: Standing, has: &[(char, u64)], start: Instant) -> Standing {
        has.iter().fold(of, |of, (what, ms)| {
            let since = Some(start + Duration::from_millis(*ms));
            match what {
                '+' => Standing { additions: since, ..of },
                '-' => Standing { removals: since, ..of },
                '#' => Standing { full: since, ..of },
                '.' => Standing { said_all: since, ..of },
                _ => Standing { turn: *ms, ..of },
            }
        })
    }

    /// Whose turn it is after `ms`, in short: `0+` for the additions of the first, `0!` if it is alone, `0` for all of it,
    /// `|1000` for nobody before then, `|` for nobody.
    fn turn(ms: u64, types: &[(Standing, &[(char, u64)])]) -> String {
        turn_after(Duration::ZERO, ms, types)
    }

    /// The same, where removals wait for listeners and routes.
    fn turn_after(wait: Duration, ms: u64, types: &[(Standing, &[(char, u64)])]) -> String {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let start = Instant::now();
        let types: Vec<_> = types.iter().map(|(of, has)| with(*of, has, start)).collect();
        match next(start + Duration::from_millis(ms), &types, wait) {
            Turn::Of(at, Say::Additions) => format!("{at}+"),
            Turn::Of(at, Say::Alone) => format!("{at}!"),
            Turn::Of(at, Say::All) => format!("{at}"),
            Turn::Nobody(None) => "|".into(),
            Turn::Nobody(Some(until)) => format!("|{}", (until - start).as_millis()),
        }
    }

    #[test]
    fn rule_122_additions_go_by_rank_and_removals_last() {
        assert_eq!(turn(0, &[(CLUSTERS, &[]), (ROUTES, &[])]), "|");
        assert_eq!(turn(0, &[(CLUSTERS, &[('+', 0)]), (ENDPOINTS, &[('+', 0)]), (ROUTES, &[('+', 0)])]), "0+");
        assert_eq!(turn(0, &[(CLUSTERS, &[('-', 0)]), (ENDPOINTS, &[('+', 0)]), (ROUTES, &[('+', 0)])]), "1+");
        assert_eq!(turn(0, &[(CLUSTERS, &[('-', 0)]), (ENDPOINTS, &[('-', 0)]), (ROUTES, &[('+', 0)])]), "2+");
        assert_eq!(turn(0, &[(CLUSTERS, &[('-', 0)]), (ENDPOINTS, &[('-', 0)]), (ROUTES, &[])]), "0");
        assert_eq!(turn(0, &[(CLUSTERS, &[]), (ENDPOINTS, &[('-', 0)]), (ROUTES, &[])]), "1");
        // Its own additions go before its removals.
        assert_eq!(turn(0, &[(CLUSTERS, &[('+', 0), ('-', 0)]), (ROUTES, &[])]), "0!");
        assert_eq!(turn(0, &[(CLUSTERS, &[('+', 0), ('-', 0)]), (ROUTES, &[('+', 0)])]), "0+");
    }

    #[test]
    fn rule_122_removals_wait_for_listeners_and_routes_that_may_yet_come() {
        let turn = |ms, types: &[_]| turn_after(Duration::from_millis(500), ms, types);
        let gone: (_, &[_]) = (CLUSTERS, &[('-', 100)]);
        assert_eq!(turn(599, &[gone, (ROUTES, &[])]), "|600");
        assert_eq!(turn(600, &[gone, (ROUTES, &[])]), "0");
        assert_eq!(turn(599, &[gone, (LISTENERS, &[('+', 590)])]), "1+", "they do not wait");
        assert_eq!(
            turn(600, &[gone, (LISTENERS, &[('+', 590), ('#', 590)])]),
            "|1590",
            "nor is the other wait shorter"
        );
        // Whether it has additions is not known before it was asked.
        assert_eq!(turn(100, &[(CLUSTERS, &[('+', 100)]), (ROUTES, &[])]), "0+");
        assert_eq!(turn(100, &[gone, (ENDPOINTS, &[])]), "0", "there is nobody to wait for");
    }

    #[test]
    fn rule_122_a_removal_that_joins_others_waits_as_long_but_not_for_ever() {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut clusters = with(CLUSTERS, &[('-', 0)], start);
        clusters.join(at(0), 5);
        clusters.join(at(900), 5);
        assert_eq!(clusters.removals, Some(at(0)));
        clusters.join(at(900), 6);
        assert_eq!(clusters.removals, Some(at(900)));
        for joined in 1..20 {
            clusters.join(at(900 * joined), 6 + joined);
        }
        assert_eq!(clusters.removals, Some(at(14_400)));
        // Others are told meanwhile.
        clusters.told(1, Say::All, true);
        clusters.join(at(20_000), 26);
        clusters.observe(at(21_000), false, Some(true), true);
        clusters.join(at(21_000), 27);
        assert_eq!(clusters.removals, Some(at(21_000)));
        // What was gone is back: the next ones have nothing to do with it.
        clusters.observe(at(21_500), false, Some(false), true);
        clusters.observe(at(40_000), false, Some(true), true);
        clusters.join(at(40_000), 28);
        clusters.join(at(40_900), 29);
        assert_eq!(clusters.removals, Some(at(40_900)));
    }

    #[test]
    fn rule_122_who_had_nothing_to_say_and_now_has_is_no_type_that_always_has_news() {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let clusters = with(CLUSTERS, &[('-', 0)], start);
        let mut routes = ROUTES;
        routes.observe(at(500), false, Some(false), true);
        routes.observe(at(900), true, Some(false), true);
        let wait = Duration::from_secs(1);
        assert_eq!(next(at(1000), &[clusters, routes], wait), Turn::Of(1, Say::Additions));
        // Over a full link it has no turn for a while.
        assert_eq!(next(at(5000), &[clusters, routes], wait), Turn::Of(1, Say::Additions));
        routes.told(10, Say::Additions, true);
        routes.observe(at(5000), false, Some(false), true);
        routes.observe(at(5001), true, Some(false), true);
        assert_eq!(next(at(5001), &[clusters, routes], wait), Turn::Of(0, Say::All));
    }

    #[test]
    fn rule_158_listeners_and_routes_wait_for_a_full_window_that_has_additions_and_no_others_do() {
        let full: &[_] = &[('+', 0), ('#', 0)];
        assert_eq!(turn(0, &[(CLUSTERS, full), (LISTENERS, &[('+', 0)]), (ROUTES, &[('+', 0)])]), "|1000");
        assert_eq!(turn(0, &[(CLUSTERS, full), (ENDPOINTS, &[('+', 0)]), (ROUTES, &[('+', 0)])]), "1+");
        assert_eq!(turn(0, &[(CLUSTERS, &[('#', 0)]), (ROUTES, &[('+', 0)])]), "1!");
        assert_eq!(turn(0, &[(CLUSTERS, &[('-', 0), ('#', 0)]), (ROUTES, &[('+', 0)])]), "1+");
        assert_eq!(turn(0, &[(LISTENERS, &[('+', 0)]), (ROUTES, full)]), "0+", "nobody waits for a higher rank");
    }

    #[test]
    fn rule_158_a_removal_waits_for_everybody_s_additions() {
        let full: &[_] = &[('+', 0), ('#', 0)];
        assert_eq!(turn(0, &[(CLUSTERS, &[('-', 0)]), (ROUTES, full)]), "|1000");
        assert_eq!(turn(0, &[(ENDPOINTS, &[('-', 0)]), (LISTENERS, full)]), "|1000");
        assert_eq!(turn(0, &[(CLUSTERS, &[('-', 0)]), (ROUTES, &[('#', 0)])]), "0");
    }

    #[test]
    fn rule_158_nobody_waits_longer_than_the_hold_for_a_window_that_stays_full() {
        let routes: (_, &[_]) = (ROUTES, &[('+', 300)]);
        assert_eq!(turn(1299, &[(CLUSTERS, &[('+', 0), ('#', 0)]), routes]), "|1300");
        assert_eq!(turn(1300, &[(CLUSTERS, &[('+', 0), ('#', 0)]), routes]), "1+");
        // An ACK came meanwhile: it gets on.
        assert_eq!(turn(1300, &[(CLUSTERS, &[('+', 0), ('#', 900)]), routes]), "|1900");
        assert_eq!(turn(1900, &[(CLUSTERS, &[('+', 0), ('#', 900)]), routes]), "1+");
        // But not for ever.
        assert_eq!(turn(15_299, &[(CLUSTERS, &[('+', 0), ('#', 15_000)]), routes]), "|15300");
        assert_eq!(turn(15_300, &[(CLUSTERS, &[('+', 0), ('#', 15_000)]), routes]), "1+");
        // For the slowest of several.
        let blocked = [(CLUSTERS, &[('+', 0), ('#', 0)][..]), (ENDPOINTS, &[('+', 0), ('#', 700)]), routes];
        assert_eq!(turn(1300, &blocked), "|1700");
    }

    #[test]
    fn rule_158_nobody_waits_longer_than_the_hold_for_one_that_always_has_news() {
        let busy: (_, &[_]) = (ENDPOINTS, &[('+', 900), ('.', 500), ('t', 9)]);
        assert_eq!(turn(999, &[(CLUSTERS, &[('-', 0)]), busy]), "1+");
        assert_eq!(turn(1000, &[(CLUSTERS, &[('-', 0)]), busy]), "0");
        assert_eq!(turn(1000, &[busy, (ROUTES, &[('+', 0), ('t', 3)])]), "1+");
        // Its own additions too.
        assert_eq!(turn(1000, &[(CLUSTERS, &[('+', 900), ('.', 500), ('-', 0)])]), "0");
        // Still at what it had when the wait began: 12 MB over a slow link.
        let at_it: (_, &[_]) = (ENDPOINTS, &[('+', 0), ('t', 9)]);
        assert_eq!(turn(14_999, &[at_it, (ROUTES, &[('+', 0)])]), "0+");
        assert_eq!(turn(15_000, &[at_it, (ROUTES, &[('+', 0)])]), "1+");
    }

    #[test]
    fn types_of_one_rank_take_turns() {
        let other = standing(u8::MAX, false);
        assert_eq!(turn(0, &[(other, &[('+', 0), ('t', 2)]), (other, &[('+', 0), ('t', 1)])]), "1+");
        assert_eq!(turn(0, &[(other, &[('+', 0), ('t', 2)]), (other, &[('+', 0), ('t', 3)])]), "0+");
        assert_eq!(turn(0, &[(other, &[('+', 0)]), (other, &[('+', 0)])]), "0+");
    }
}
