//! Mistakes that a client could make, planted to see them found by the simulation of programs' clients. Where one is made, the
//! code says so under `cfg(test)`, and nothing of it is in a build of another kind.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    // Which server is asked, and which counts (gRFC A71).
    /// The next server is asked though one before it may answer.
    ForgetOrder,
    /// The next server is asked for what is new alone.
    AskNextForTheNew,
    /// What a server below said stays when one above it is back.
    KeepWordsOfOthers,
    /// The same of what a full state of the one above lacks, and its stream never brought.
    KeepLacking,
    /// What a server below goes on to say counts.
    HeedServersBelow,
    /// A server above that is back does not count.
    StayBelow,
    /// The next server is asked though all is known.
    FallBackForNothing,
    // What is told of what comes (gRFC A57, A88).
    TimeoutIsAbsence,
    YieldRefused,
    /// An error that came before is not told again, whatever came meanwhile.
    TellErrorsOnce,
    LossIsRemoval,
    /// What fails is told before all that could be asked were.
    TellFirstFailure,
    NeverBack,
    // What is made of several (TP1).
    /// A redirect that changes is not followed anew.
    LoseTarget,
    /// Members of a list are looked for where the list is, whatever their authority.
    MatchMembersByText,
    KeepMembers,
    /// The alternative stays in use when the first is there.
    KeepAlternative,
    /// What another server gave of a collection stays when the one that counts has said all it has.
    KeepMembersOfOthers,
    /// Who is in no bootstrap is looked for at the top.
    AskForStrangers,
    // What is made of documents (TP1), and of the answers of servers of HTTP.
    /// What has not changed is taken for empty.
    UnchangedIsEmpty,
    /// What has not changed since before an error leaves the error.
    StayUnreachable,
    /// That it is not known what a document holds is told as if it held nothing.
    FailureIsAbsence,
    /// What cannot be read takes away what was there.
    DropForMalformed,
    /// What was gone is taken for what it was when it is back.
    KeepStamp,
    /// A server is asked before the time that it said.
    AskTooSoon,
}

impl Fault {
    pub(crate) const ALL: [Self; 25] = [
        Self::ForgetOrder,
        Self::AskNextForTheNew,
        Self::KeepWordsOfOthers,
        Self::KeepLacking,
        Self::HeedServersBelow,
        Self::StayBelow,
        Self::FallBackForNothing,
        Self::TimeoutIsAbsence,
        Self::YieldRefused,
        Self::TellErrorsOnce,
        Self::LossIsRemoval,
        Self::TellFirstFailure,
        Self::NeverBack,
        Self::LoseTarget,
        Self::MatchMembersByText,
        Self::KeepMembers,
        Self::KeepAlternative,
        Self::KeepMembersOfOthers,
        Self::AskForStrangers,
        Self::UnchangedIsEmpty,
        Self::StayUnreachable,
        Self::FailureIsAbsence,
        Self::DropForMalformed,
        Self::KeepStamp,
        Self::AskTooSoon,
    ];
}

thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
    static BEFORE: RefCell<HashSet<String>> = RefCell::default();
}

/// Plants one in what this thread does from now on, in place of another.
pub(crate) fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
    BEFORE.take();
}

/// Whether it is planted.
pub(crate) fn planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// Whether it is planted, and this was so once already.
pub(crate) fn planted_from_the_second(fault: Fault, what: String) -> bool {
    planted(fault) && BEFORE.with_borrow_mut(|before| !before.insert(what))
}
