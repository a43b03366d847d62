//! What an origin has of names that have variants, and for whom each is, by the words of the proposal and not by our matcher.

use std::collections::BTreeMap;

use xdstp_cache::{Selector, Variant};

use crate::parameters::{constraints, parameters, sends, wants};

/// What a client sends of `env` and `v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sends {
    env: Option<&'static str>,
    v: Option<&'static str>,
}

impl Sends {
    pub(super) const ALL: [Self; 5] = [
        Self::of(Some("prod"), Some("1")),
        Self::of(Some("test"), Some("1")),
        Self::of(Some("prod"), Some("2")),
        Self::of(Some("test"), None),
        Self::of(Some("prod"), Some("1")),
    ];

    const fn of(env: Option<&'static str>, v: Option<&'static str>) -> Self {
        Self { env, v }
    }

    fn pairs(self) -> Vec<(&'static str, &'static str)> {
        [("env", self.env), ("v", self.v)].into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }

    fn value(self, key: &str) -> Option<&'static str> {
        self.pairs().into_iter().find(|(of, _)| *of == key).map(|(_, value)| value)
    }

    pub(super) fn selector(self, is_draft: bool) -> Selector {
        if !is_draft {
            return sends(&self.pairs());
        }
        let words: Vec<_> = self.pairs().into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        wants(&words.join(" and "))
    }
}

/// A value that a variant is for, or is for all but.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Is(&'static str, &'static str, bool);

const PROD: Is = Is("env", "prod", true);
const TEST: Is = Is("env", "test", true);
const ONE: Is = Is("v", "1", true);
const TWO: Is = Is("v", "2", true);

/// A variant, by what it is for.
pub(super) type Slot = &'static [Is];

/// How a name may be divided. The last but one overlap, and the last one the draft cannot say.
pub(super) const LAYOUTS: [&[Slot]; 6] = [
    &[&[]],
    &[&[PROD], &[TEST]],
    &[&[ONE], &[TWO]],
    &[&[PROD, ONE], &[PROD, TWO], &[TEST, ONE], &[TEST, TWO]],
    &[&[PROD], &[ONE]],
    &[&[PROD], &[Is("env", "prod", false)]],
];

/// What changes at the origin in one step.
#[derive(Default)]
pub(super) struct Change {
    pub(super) put: Vec<(Variant, String)>,
    pub(super) gone: Vec<Variant>,
}

#[derive(Default)]
struct Name {
    layout: usize,
    there: BTreeMap<Slot, String>,
}

pub(super) struct Varied {
    is_draft: bool,
    names: BTreeMap<&'static str, Name>,
    /// For whom each body is that there ever was.
    ever: BTreeMap<String, (&'static str, Vec<Slot>)>,
}

impl Varied {
    pub(super) fn new(is_draft: bool) -> Self {
        Self { is_draft, names: BTreeMap::new(), ever: BTreeMap::new() }
    }

    /// The variants of a name are these, of a layout those whose bit is set.
    pub(super) fn divide(&mut self, name: &'static str, layout: usize, there: u8, alike: bool) -> Change {
        let layout = if self.is_draft && layout + 1 == LAYOUTS.len() { 1 } else { layout };
        let chosen = LAYOUTS[layout].iter().enumerate().filter(|(at, _)| there & (1 << at) != 0);
        let chosen: Vec<Slot> = chosen.map(|(_, slot)| *slot).collect();
        let before = std::mem::take(&mut self.names.entry(name).or_default().there);
        let mut change = Change::default();
        let gone = before.keys().filter(|slot| !chosen.contains(slot));
        change.gone.extend(gone.map(|slot| self.variant(slot)));
        let all = alike.then(|| self.body(name, &chosen));
        let mut now = BTreeMap::new();
        for slot in chosen {
            let body = all.clone().unwrap_or_else(|| self.body(name, &[slot]));
            change.put.push((self.variant(slot), body.clone()));
            now.insert(slot, body);
        }
        self.names.insert(name, Name { layout, there: now });
        change
    }

    pub(super) fn put(&mut self, name: &'static str, at: usize) -> Change {
        let slot = self.slot(name, at);
        let body = self.body(name, &[slot]);
        self.names.entry(name).or_default().there.insert(slot, body.clone());
        Change { put: vec![(self.variant(slot), body)], gone: Vec::new() }
    }

    pub(super) fn drop(&mut self, name: &'static str, at: usize) -> Change {
        let slot = self.slot(name, at);
        self.names.entry(name).or_default().there.remove(slot);
        Change { put: Vec::new(), gone: vec![self.variant(slot)] }
    }

    /// What there is of a name for who sends this: several where variants overlap.
    pub(super) fn bodies(&self, name: &str, sends: Sends) -> Vec<&str> {
        let there = self.names.get(name).into_iter().flat_map(|name| &name.there);
        there.filter(|(slot, _)| matches(self.is_draft, slot, sends)).map(|(_, body)| body.as_str()).collect()
    }

    pub(super) fn is_for(&self, name: &str, body: &str, sends: Sends) -> bool {
        let of = self.ever.get(body).filter(|(of, _)| *of == name);
        of.is_some_and(|(_, slots)| slots.iter().any(|slot| matches(self.is_draft, slot, sends)))
    }

    fn slot(&mut self, name: &'static str, at: usize) -> Slot {
        let layout = LAYOUTS[self.names.entry(name).or_default().layout];
        layout[at % layout.len()]
    }

    /// A content that was not there before.
    fn body(&mut self, name: &'static str, slots: &[Slot]) -> String {
        let body = format!("{}", self.ever.len() + 1);
        self.ever.insert(body.clone(), (name, slots.to_vec()));
        body
    }

    fn variant(&self, slot: Slot) -> Variant {
        if slot.is_empty() {
            return Variant::plain().clone();
        }
        if self.is_draft {
            return parameters(&slot.iter().map(|Is(key, value, _)| (*key, *value)).collect::<Vec<_>>());
        }
        let word = |Is(key, value, is): &Is| format!("{}{key}={value}", if *is { "" } else { "not " });
        constraints(&slot.iter().map(word).collect::<Vec<_>>().join(" and "))
    }
}

/// In the final form a key that is not sent has no value; in the draft one that is not constrained may have any.
fn matches(is_draft: bool, slot: Slot, sends: Sends) -> bool {
    slot.iter().all(|Is(key, value, is)| match sends.value(key) {
        None => is_draft || !is,
        Some(sent) => (sent == *value) == *is,
    })
}
