//! What the exit codes of commands that speak to servers mean: 0 all is there, 1 something is absent, different
//! or wrong, 2 the command line is wrong, or a file that it names, 3 something is not known: nobody answered, or the server
//! does not want to be asked.

use std::error::Error;
use std::process::ExitCode;

use crate::ask::Verdict;
use crate::show::{complain, visible, with_causes};

const WRONG: u8 = 1;
const USAGE: u8 = 2;
const UNKNOWN: u8 = 3;

/// The code for what came of a command; without one it was interrupted, as it was meant to be.
pub(crate) fn code(verdict: Option<Verdict>) -> ExitCode {
    match verdict {
        None | Some(Verdict::There) => ExitCode::SUCCESS,
        Some(Verdict::Wrong) => WRONG.into(),
        Some(Verdict::Unknown) => UNKNOWN.into(),
    }
}

/// Says what is wrong with the arguments.
pub(crate) fn usage(error: &dyn Error) -> ExitCode {
    complain(visible(&with_causes(error)));
    USAGE.into()
}

/// Something is wrong with what was looked at.
pub(crate) fn wrong() -> ExitCode {
    WRONG.into()
}

/// Nothing is known.
pub(crate) fn unknown() -> ExitCode {
    UNKNOWN.into()
}
