//! When a file is read, and what is told of it. Without I/O but for what it is given.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::SystemTime;

use super::decode::Decode;
use super::look::Seen;
use crate::federation::{DocumentError, Held};

/// What is known of one file.
#[derive(Default)]
pub(super) struct Reading {
    /// As it was when it was looked at last.
    seen: Option<Result<Seen, String>>,
    /// As it was when it was told of.
    told: Option<Result<Seen, String>>,
    /// It may have changed without looking any different since.
    again: bool,
}

impl Reading {
    /// What is to be told of a file that looks like this now, if anything is.
    pub(super) fn look(
        &mut self,
        seen: Result<Seen, String>,
        (path, decode): (&Path, &dyn Decode),
        wall: SystemTime,
    ) -> Option<Result<Vec<Held>, DocumentError>> {
        let is_settled = self.seen.as_ref().is_none_or(|before| *before == seen);
        self.seen = Some(seen.clone());
        let is_known = self.told.as_ref() == Some(&seen) && !self.again;
        if is_known || !is_settled {
            return None;
        }
        self.again = seen.as_ref().is_ok_and(|seen| seen.may_have_changed(wall));
        self.told = Some(seen.clone());
        Some(seen.and_then(|seen| seen.read()).map_err(DocumentError::Unreadable).and_then(|content| {
            // Who panics is the program, and other files are read by the same thread.
            let decoded = catch_unwind(AssertUnwindSafe(|| decode.decode(path, &content)));
            decoded
                .unwrap_or_else(|_| Err("what reads it failed (it panicked)".to_owned()))
                .map_err(DocumentError::Malformed)
        }))
    }
}
