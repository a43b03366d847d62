//! What may happen to a cache.

use proptest::prelude::*;

use super::{INTERESTS, NAMES, SUBSCRIBERS, TYPES};

#[derive(Clone, Debug)]
pub(super) enum Op {
    /// The first request of a type: what it asks for, and what it says it holds.
    Open {
        who: usize,
        of: usize,
        asks: Vec<usize>,
        holds: Vec<(usize, u8)>,
    },
    Close {
        who: usize,
    },
    /// Whoever knows what a client holds says so late.
    Resume {
        who: usize,
        holds: Vec<(usize, u8)>,
    },
    Subscribe {
        who: usize,
        what: usize,
    },
    Unsubscribe {
        who: usize,
        what: usize,
    },
    Upsert {
        of: usize,
        what: usize,
        version: u8,
        digest: u8,
    },
    /// Several upserts at once; a snapshot of the type, or a batch.
    Upserts {
        of: usize,
        snapshot: bool,
        resources: Vec<(usize, u8, u8)>,
    },
    Touch {
        of: usize,
        what: usize,
    },
    Fail {
        of: usize,
        what: usize,
        code: i32,
        message: &'static str,
        asked: bool,
    },
    Remove {
        of: usize,
        what: usize,
        asked: bool,
    },
    Answered {
        of: usize,
        what: usize,
    },
    Evict {
        of: usize,
        what: usize,
    },
    /// Stops after so many entries.
    Pull {
        who: usize,
        entries: usize,
        defer: bool,
    },
    PullErrors {
        who: usize,
        entries: usize,
    },
    PullAll {
        who: usize,
    },
    Wait {
        seconds: u64,
    },
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    let who = || 0..SUBSCRIBERS;
    let of = || 0..TYPES.len();
    let named = || 0..NAMES.len();
    let either = || 0..INTERESTS;
    prop_oneof![
        3 => (who(), of(), prop::collection::vec(either(), 0..4), prop::collection::vec((named(), 0..3_u8), 0..4))
            .prop_map(|(who, of, asks, holds)| Op::Open { who, of, asks, holds }),
        1 => who().prop_map(|who| Op::Close { who }),
        1 => (who(), prop::collection::vec((named(), 0..3_u8), 0..4)).prop_map(|(who, holds)| Op::Resume { who, holds }),
        4 => (who(), either()).prop_map(|(who, what)| Op::Subscribe { who, what }),
        4 => (who(), either()).prop_map(|(who, what)| Op::Unsubscribe { who, what }),
        8 => (of(), named(), 0..3_u8, 0..2_u8)
            .prop_map(|(of, what, version, digest)| Op::Upsert { of, what, version, digest }),
        1 => (of(), any::<bool>(), prop::collection::vec((named(), 0..3_u8, 0..2_u8), 0..6))
            .prop_map(|(of, snapshot, resources)| Op::Upserts { of, snapshot, resources }),
        4 => (of(), either(), prop::sample::select(vec![5, 7, 14]), prop::sample::select(vec!["one", "other"]), any::<bool>())
            .prop_map(|(of, what, code, message, asked)| Op::Fail { of, what, code, message, asked }),
        1 => (of(), named()).prop_map(|(of, what)| Op::Touch { of, what }),
        4 => (of(), named(), any::<bool>()).prop_map(|(of, what, asked)| Op::Remove { of, what, asked }),
        2 => (of(), NAMES.len()..INTERESTS).prop_map(|(of, what)| Op::Answered { of, what }),
        2 => (of(), either()).prop_map(|(of, what)| Op::Evict { of, what }),
        4 => (who(), 1..4_usize, any::<bool>()).prop_map(|(who, entries, defer)| Op::Pull { who, entries, defer }),
        2 => (who(), 1..4_usize).prop_map(|(who, entries)| Op::PullErrors { who, entries }),
        4 => who().prop_map(|who| Op::PullAll { who }),
        1 => (0..8_u64).prop_map(|seconds| Op::Wait { seconds }),
    ]
}
