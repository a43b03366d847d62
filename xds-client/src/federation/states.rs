//! What is known of a resource for who watches it, and what that hears: gRFC A40, A57 and A88 in one table. No I/O, no time.

use xdstp_cache::{Cause, ResourceError};

/// What is known of a resource: gRFC A40's `ClientResourceStatus`, as A88 completes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Status {
    /// It was asked for, and nothing came.
    Requested,
    /// It does not exist, or did not come in time.
    DoesNotExist,
    /// It is there.
    Acked,
    /// What came last of it is of no use.
    Nacked,
    /// Its server said why it does not send it (TP3).
    ReceivedError,
    /// It did not come in time, which is no absence.
    Timeout,
}

/// What a server is known to do, as far as it decides what becomes of a resource (gRFC A88).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// `fail_on_data_errors`: what is refused or gone is dropped, not kept.
    pub fail_on_data_errors: bool,
    /// `resource_timer_is_transient_error`: what did not come in time is no absence.
    pub timer_is_transient: bool,
}

/// A resource, and whether there is anything of it to go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) status: Status,
    pub(crate) held: bool,
}

/// What happens to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happens {
    /// It came, other than it was.
    #[cfg_attr(not(test), expect(dead_code, reason = "what comes, the cache stores and tells by itself"))]
    Came,
    /// It came as it is held.
    #[cfg_attr(not(test), expect(dead_code, reason = "the same"))]
    CameAgain,
    /// It came, and is of no use: NACKed.
    Refused,
    /// Its server does not have it, or no longer.
    Gone,
    /// Its server says why it does not send it.
    Failed { transient: bool },
    /// The time for an answer is over.
    Silent,
    /// No server can be reached.
    Lost,
    /// One answers.
    Back,
}

/// What who watches it hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hears {
    Nothing,
    /// Here it is.
    Changed,
    /// There is none, and why: what was used is not to be used any more.
    Failed,
    /// What is used goes on to be used, though something is wrong.
    Ambient,
    /// Nothing is wrong any more.
    Cleared,
}

impl Entry {
    /// Of what is held, the error beside or in place of it, and whether anything was answered.
    pub(crate) fn of(held: bool, error: Option<&ResourceError>, answered: bool, rules: Rules) -> Self {
        let status = match error.map(|error| &error.cause) {
            Some(Cause::Refused(_)) => Status::Nacked,
            Some(Cause::Silence) if rules.timer_is_transient => Status::Timeout,
            Some(Cause::Deleted | Cause::Silence) => Status::DoesNotExist,
            Some(_) => Status::ReceivedError,
            None if held => Status::Acked,
            None if answered => Status::DoesNotExist,
            None => Status::Requested,
        };
        Self { status, held }
    }

    /// What it is after something happened, and what who watches it hears. That the same error came before is for who keeps it
    /// to see: it is not told again.
    pub(crate) fn after(self, happens: Happens, rules: Rules) -> (Self, Hears) {
        let keeps = self.held && !rules.fail_on_data_errors;
        match happens {
            Happens::Came => (Self { status: Status::Acked, held: true }, Hears::Changed),
            // It ends whatever was wrong.
            Happens::CameAgain if self == (Self { status: Status::Acked, held: true }) => (self, Hears::Nothing),
            Happens::CameAgain => (Self { status: Status::Acked, held: true }, Hears::Changed),
            Happens::Refused => Self { status: Status::Nacked, held: keeps }.wrong(),
            Happens::Gone => Self { status: Status::DoesNotExist, held: keeps }.wrong(),
            Happens::Failed { transient } => {
                Self { status: Status::ReceivedError, held: self.held && (transient || keeps) }.wrong()
            }
            Happens::Silent if self.status == Status::Requested => {
                let status = if rules.timer_is_transient { Status::Timeout } else { Status::DoesNotExist };
                Self { status, held: false }.wrong()
            }
            // Anything that was said of it, be it an error, stopped the clock.
            Happens::Silent => (self, Hears::Nothing),
            Happens::Lost => self.wrong(),
            // What is wrong with it itself still is.
            Happens::Back => match self.status {
                Status::Requested | Status::Acked => (self, Hears::Cleared),
                _ => self.wrong(),
            },
        }
    }

    fn wrong(self) -> (Self, Hears) {
        (self, if self.held { Hears::Ambient } else { Hears::Failed })
    }
}

#[cfg(test)]
mod tests;
