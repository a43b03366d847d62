//! From an update to its ACK or NACK: what both protocols share.

use std::collections::{BTreeMap, HashSet};

use xdstp_uri::ResourceName;

use crate::client::command::Verdict;
use crate::client::session::held::{Held, Received};
use crate::client::session::wanted::Wanted;
use crate::client::update::UpdateId;
use crate::response::Rejected;
use crate::wire::Status;

/// The text of a NACK is cut here, in bytes (rule 28).
const MAX_MESSAGE: usize = 8 * 1024;
const TRUNCATED: &str = "...(truncated)";
/// `google.rpc.Code.INVALID_ARGUMENT`. Servers do not key on it (rule 27).
const INVALID_ARGUMENT: i32 = 3;

/// The responses that wait for their verdicts. These may come in any order: a newer response counts, whenever an older
/// one has its own.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    pending: BTreeMap<UpdateId, Pending>,
    /// The newest response that was accepted.
    accepted: Option<UpdateId>,
    /// The newest one that was refused, and of which something is in use all the same.
    used_in_part: Option<UpdateId>,
}

/// A response without a verdict.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// What to answer with; `None` once its stream is gone.
    pub(crate) nonce: Option<String>,
    /// SotW only.
    pub(crate) version: String,
    /// Something else is wanted since, or less: the version does not say what is held.
    pub(crate) outgrown: bool,
    /// It said that something is gone.
    pub(crate) removes: bool,
    /// Another server is asked since.
    pub(crate) of_another: bool,
    pub(crate) received: Vec<(ResourceName, Received)>,
    pub(crate) rejected: Vec<Rejected>,
}

/// How a response is answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) nonce: Option<String>,
    /// The version to name from now on, if it is this one.
    pub(crate) version: Option<String>,
    /// That version does not say what is held.
    pub(crate) outgrown: bool,
    pub(crate) error: Option<Status>,
}

impl Unfinished {
    pub(crate) fn insert(&mut self, id: UpdateId, pending: Pending) {
        self.pending.insert(id, pending);
    }

    pub(crate) fn contains(&self, id: UpdateId) -> bool {
        self.pending.contains_key(&id)
    }

    /// What is given up while its verdict is out is not held, even if it is wanted again by then.
    pub(crate) fn forget_unwanted(&mut self, wanted: &Wanted) {
        for pending in self.pending.values_mut() {
            pending.received.retain(|(name, _)| wanted.covers(name));
        }
    }

    /// What is gone is not held, whatever is said of the response that brought it.
    pub(crate) fn forget(&mut self, gone: &[ResourceName]) {
        if self.any() && !gone.is_empty() {
            let gone: HashSet<_> = gone.iter().collect();
            self.pending.values_mut().for_each(|pending| pending.received.retain(|(name, _)| !gone.contains(name)));
        }
    }

    /// The names of resources that wait for a verdict.
    pub(crate) fn names(&self) -> impl Iterator<Item = &ResourceName> {
        self.pending.values().flat_map(|pending| &pending.received).map(|(name, _)| name)
    }

    /// The resources that wait for a verdict, those of the newest response first.
    pub(crate) fn newest_first(&mut self) -> impl Iterator<Item = (&ResourceName, &mut Received)> {
        let received = self.pending.values_mut().rev().flat_map(|pending| &mut pending.received);
        received.map(|(name, received)| (&*name, received))
    }

    /// Whether something newer came of a name, and waits for a verdict.
    pub(crate) fn awaits_verdict(&self, name: &ResourceName) -> bool {
        self.names().any(|unfinished| unfinished == name)
    }

    pub(crate) fn any(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether a response of this stream waits for its verdict.
    pub(crate) fn owes_answer(&self) -> bool {
        self.pending.values().any(|pending| pending.nonce.is_some())
    }

    /// Something else is wanted than what the responses so far were sent for.
    pub(crate) fn outgrow(&mut self) {
        self.pending.values_mut().for_each(|pending| pending.outgrown = true);
    }

    /// Whether what is held is of no version: part of a response counts that was refused as a whole.
    pub(crate) fn is_mixed(&self) -> bool {
        self.used_in_part > self.accepted
    }

    pub(crate) fn forget_stream(&mut self) {
        for pending in self.pending.values_mut() {
            pending.nonce = None;
        }
    }

    /// What waits for its verdict is of another server than what comes.
    pub(crate) fn forget_server(&mut self) {
        self.pending.values_mut().for_each(|pending| pending.of_another = true);
        (self.accepted, self.used_in_part) = (None, None);
    }

    /// Records what the user holds from now on: of a resource that was refused, what it held before (rule 78).
    /// Resources that are fine are used although others of their response are not (rule 29), but the versions of such a
    /// response are not named later (rule 30).
    pub(crate) fn finish(
        &mut self,
        id: UpdateId,
        verdict: Verdict,
        wanted: &Wanted,
        held: &mut Held,
    ) -> Option<Answer> {
        let Pending { nonce, version, outgrown, removes, of_another, received, mut rejected } =
            self.pending.remove(&id)?;
        let mut accepted = rejected.is_empty();
        if let Verdict::Reject { reasons } = verdict {
            accepted = false;
            rejected.extend(reasons);
        }
        let named = accepted && !of_another;
        let refused: HashSet<_> = rejected.iter().map(|rejected| rejected.name.as_str()).collect();
        let mut is_used = removes;
        let mut older: Vec<_> = self.pending.range_mut(..id).map(|(_, pending)| pending).collect();
        for (name, Received { entry, expires }) in received {
            if wanted.covers(&name) && !refused.contains(name.as_str()) {
                older.iter_mut().for_each(|older| older.received.retain(|(other, _)| *other != name));
                is_used = is_used || !held.get(&name).is_some_and(|before| before.same(&entry));
                held.insert(name, entry.accepted(named), expires);
            }
        }
        let newest = named && self.accepted < Some(id);
        if newest {
            self.accepted = Some(id);
        }
        if !accepted && !of_another && is_used {
            self.used_in_part = self.used_in_part.max(Some(id));
        }
        let error = (!accepted).then(|| Status { code: INVALID_ARGUMENT, message: message(&rejected) });
        Some(Answer { nonce, version: newest.then_some(version), outgrown, error })
    }
}

/// Every reason, bounded (rules 28, 32).
fn message(rejected: &[Rejected]) -> String {
    let mut text = String::new();
    for Rejected { name, reason } in rejected {
        if text.len() > MAX_MESSAGE {
            break;
        }
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(name);
        text.push_str(": ");
        text.push_str(reason);
    }
    if text.len() > MAX_MESSAGE {
        let mut end = MAX_MESSAGE - TRUNCATED.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(TRUNCATED);
    }
    text
}
