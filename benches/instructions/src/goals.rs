//! What counts must not exceed.

use std::process::ExitCode;

/// Goals, and whether one was missed.
#[derive(Debug, Default)]
pub struct Goals {
    missed: bool,
}

impl Goals {
    /// `value` must be at most `limit`.
    pub fn at_most(&mut self, what: &str, value: f64, limit: f64) {
        self.judge(what, value, "at most", limit, value <= limit);
    }

    /// `value` must be at least `limit`.
    pub fn at_least(&mut self, what: &str, value: f64, limit: f64) {
        self.judge(what, value, "at least", limit, value >= limit);
    }

    fn judge(&mut self, what: &str, value: f64, relation: &str, limit: f64, met: bool) {
        // Not a number is not a goal met.
        self.missed |= !met;
        let digits = if value.abs() < 100.0 { 2 } else { 0 };
        let missed = if met { "" } else { "  MISSED" };
        println!("{what:<70} {value:>9.digits$} (goal: {relation} {limit}){missed}");
    }

    /// Fails when a goal was missed.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(u8::from(self.missed))
    }
}
