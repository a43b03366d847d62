//! What may happen.

use proptest::prelude::*;

use super::{INTERESTS, NAMES, SELECTORS, SUBSCRIBERS, VARIANTS};

#[derive(Clone, Debug)]
pub(super) enum Op {
    Open {
        who: usize,
        selector: usize,
        asks: Vec<usize>,
        holds: Vec<usize>,
    },
    Close {
        who: usize,
    },
    Subscribe {
        who: usize,
        what: usize,
    },
    Unsubscribe {
        who: usize,
        what: usize,
    },
    /// Several at once, of one name: what is put, with which version and digest, or removed.
    Vary {
        what: usize,
        changes: Vec<(usize, Option<(u8, u8)>)>,
        dropped: bool,
    },
    Put {
        what: usize,
        version: u8,
        digest: u8,
    },
    Replace {
        resources: Vec<(usize, u8)>,
    },
    Remove {
        what: usize,
    },
    Touch {
        what: usize,
    },
    Fail {
        what: usize,
        code: i32,
    },
    Answered {
        what: usize,
    },
    Evict {
        what: usize,
    },
    Pull {
        who: usize,
        entries: usize,
        defer: bool,
    },
    PullErrors {
        who: usize,
    },
    PullAll {
        who: usize,
    },
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    let who = || 0..SUBSCRIBERS;
    let named = || 0..NAMES.len();
    let either = || 0..INTERESTS.len();
    let change = || (0..VARIANTS, prop::option::weighted(0.6, (0..3_u8, 0..3_u8)));
    prop_oneof![
        3 => (who(), 0..SELECTORS, prop::collection::vec(either(), 0..4), prop::collection::vec(named(), 0..2))
            .prop_map(|(who, selector, asks, holds)| Op::Open { who, selector, asks, holds }),
        1 => who().prop_map(|who| Op::Close { who }),
        4 => (who(), either()).prop_map(|(who, what)| Op::Subscribe { who, what }),
        3 => (who(), either()).prop_map(|(who, what)| Op::Unsubscribe { who, what }),
        12 => (named(), prop::collection::vec(change(), 1..4), prop::bool::weighted(0.1))
            .prop_map(|(what, changes, dropped)| Op::Vary { what, changes, dropped }),
        2 => (named(), 0..3_u8, 0..3_u8).prop_map(|(what, version, digest)| Op::Put { what, version, digest }),
        1 => prop::collection::btree_map(named(), 0..3_u8, 0..3)
            .prop_map(|resources| Op::Replace { resources: resources.into_iter().collect() }),
        3 => named().prop_map(|what| Op::Remove { what }),
        1 => named().prop_map(|what| Op::Touch { what }),
        1 => (named(), prop::sample::select(vec![5, 7, 14])).prop_map(|(what, code)| Op::Fail { what, code }),
        1 => (4..INTERESTS.len()).prop_map(|what| Op::Answered { what }),
        1 => either().prop_map(|what| Op::Evict { what }),
        4 => (who(), 1..3_usize, any::<bool>()).prop_map(|(who, entries, defer)| Op::Pull { who, entries, defer }),
        1 => who().prop_map(|who| Op::PullErrors { who }),
        4 => who().prop_map(|who| Op::PullAll { who }),
    ]
}
