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
    /// The same error for every name, one after the other.
    FailAll {
        of: usize,
        code: i32,
        asked: bool,
    },
    Answered {
        of: usize,
        what: usize,
    },
    /// A collection that is refused is sent after all.
    Recover {
        of: usize,
        what: usize,
    },
    /// The first of an answer came.
    Begun {
        of: usize,
        what: usize,
    },
    /// The origin is away: it is not known any more that anything is not there.
    Lost,
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
        defer: bool,
    },
    /// What is told of collections beside what is sent of them.
    PullRefusals {
        who: usize,
    },
    PullAll {
        who: usize,
    },
    Wait {
        seconds: u64,
    },
}

/// One thing after the other, and now and then a stranger.
pub(super) fn history() -> impl Strategy<Value = Vec<Op>> {
    let some = prop_oneof![60 => op().prop_map(|op| vec![op]), 1 => stranger()];
    prop::collection::vec(some, 1..80).prop_map(|parts| parts.concat())
}

/// Somebody asks for every name by itself, gets nothing but errors, and leaves; nobody asks for the names any more.
fn stranger() -> impl Strategy<Value = Vec<Op>> {
    let code = || prop::sample::select(vec![5, 7, 14]);
    (0..SUBSCRIBERS, 0..TYPES.len(), code(), prop::option::of(code())).prop_map(|(who, of, code, then)| {
        let fail = |code| Op::FailAll { of, code, asked: true };
        let comes = [Op::Open { who, of, asks: (0..NAMES.len()).collect(), holds: Vec::new() }, fail(code)];
        let goes = (0..NAMES.len()).map(|what| Op::Evict { of, what });
        comes.into_iter().chain(then.map(fail)).chain([Op::Close { who }]).chain(goes).collect()
    })
}

fn op() -> impl Strategy<Value = Op> {
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
        2 => (of(), prop::sample::select(vec![5, 7, 14]), any::<bool>())
            .prop_map(|(of, code, asked)| Op::FailAll { of, code, asked }),
        2 => (of(), NAMES.len()..INTERESTS).prop_map(|(of, what)| Op::Recover { of, what }),
        1 => (of(), NAMES.len()..INTERESTS).prop_map(|(of, what)| Op::Begun { of, what }),
        1 => Just(Op::Lost),
        2 => (of(), either()).prop_map(|(of, what)| Op::Evict { of, what }),
        4 => (who(), 1..4_usize, any::<bool>()).prop_map(|(who, entries, defer)| Op::Pull { who, entries, defer }),
        2 => (who(), 1..4_usize, any::<bool>())
            .prop_map(|(who, entries, defer)| Op::PullErrors { who, entries, defer }),
        2 => who().prop_map(|who| Op::PullRefusals { who }),
        4 => who().prop_map(|who| Op::PullAll { who }),
        1 => (0..8_u64).prop_map(|seconds| Op::Wait { seconds }),
    ]
}
