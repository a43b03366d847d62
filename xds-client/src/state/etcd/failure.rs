//! Why a call comes to nothing, and whether anything may have been done.

use tonic::{Code, Status};

use crate::state::store::StoreError;
use crate::upstream::chain;

/// Why there is no answer, or which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Surely nothing was done, and another member may do it.
    Elsewhere(String),
    /// Surely nothing was done: it does not know us any more, as after a while it does not.
    Stranger(String),
    /// It says no, and says so again.
    Refused(String),
    /// That revision is not kept any more, or never was.
    Compacted,
    /// The answer is larger than what is taken.
    TooLarge,
    /// No etcd answers so.
    Nonsense(&'static str),
    /// Something may have been done.
    Unsure(String),
    /// It was not answered in time, and what was to be read may be asked for otherwise.
    Late,
}

/// What all that etcd itself says begins with; what does not is gRPC's, or somebody else's, and says nothing of what was done.
const OWN: &str = "etcdserver: ";
/// What it says before it does anything.
const NOT_YET: [&str; 3] = ["no leader", "too many requests", "not supported for learner"];

impl Failure {
    pub(super) const LATE: &str = "it was not answered in time";

    /// What an answer means that is none.
    pub(super) fn of(status: &Status) -> Self {
        let Some(said) = status.message().strip_prefix(OWN) else {
            return match status.code() {
                // tonic says so of an answer's length, before it reads it.
                Code::OutOfRange => Self::TooLarge,
                _ => Self::Unsure(chain(status)),
            };
        };
        let text = said.to_owned();
        match status.code() {
            _ if NOT_YET.iter().any(|words| said.contains(words)) => Self::Elsewhere(text),
            _ if said.contains("revision of auth store is old") => Self::Stranger(text),
            Code::Unauthenticated => Self::Stranger(text),
            Code::OutOfRange => Self::Compacted,
            Code::Unavailable | Code::Internal | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded => {
                Self::Unsure(text)
            }
            _ => Self::Refused(text),
        }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Elsewhere(why) => Self::Away(why),
            Failure::Stranger(why) | Failure::Refused(why) => Self::Refused(why),
            Failure::Compacted => Self::Compacted,
            Failure::TooLarge => Self::Refused("an answer of it is too large".to_owned()),
            Failure::Nonsense(what) => Self::Corrupt(what.to_owned()),
            Failure::Unsure(why) => Self::Unsure(why),
            Failure::Late => Self::Away(Failure::LATE.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_etcd_itself_refuses_was_surely_not_done() {
        let of = |code, said: &str| Failure::of(&Status::new(code, said));
        assert!(matches!(of(Code::Unavailable, "etcdserver: no leader"), Failure::Elsewhere(_)));
        assert!(matches!(of(Code::Unavailable, "etcdserver: request timed out"), Failure::Unsure(_)));
        assert!(matches!(of(Code::Unauthenticated, "etcdserver: invalid auth token"), Failure::Stranger(_)));
        assert!(matches!(of(Code::PermissionDenied, "etcdserver: permission denied"), Failure::Refused(_)));
        let compacted = "etcdserver: mvcc: required revision has been compacted";
        assert_eq!(of(Code::OutOfRange, compacted), Failure::Compacted);
        // Whoever stands before it may say anything.
        assert!(matches!(of(Code::PermissionDenied, "permission denied"), Failure::Unsure(_)));
        assert_eq!(of(Code::OutOfRange, "decoded message length too large"), Failure::TooLarge);
    }
}
