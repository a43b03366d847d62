//! What is logged, where the program has that follow the configuration and the admin pages.

use std::sync::Mutex;

use crate::config::LogFilter;
use crate::lock::lock;

/// Has what is logged change.
pub(crate) type SetLog = Box<dyn Fn(&LogFilter) + Send + Sync>;

pub(crate) struct Logging {
    now: Mutex<LogFilter>,
    set: Option<SetLog>,
}

impl Logging {
    pub(crate) fn new(now: LogFilter, set: Option<SetLog>) -> Self {
        Self { now: Mutex::new(now), set }
    }

    /// What is logged, if it is the relay that says so.
    pub(crate) fn now(&self) -> Option<LogFilter> {
        self.set.as_ref().map(|_| lock(&self.now).clone())
    }

    /// This is logged from now on, if it is the relay that says so.
    pub(crate) fn change(&self, filter: LogFilter) -> bool {
        let Some(set) = &self.set else { return false };
        // Of two that change it, the one that is remembered counts.
        let mut now = lock(&self.now);
        set(&filter);
        *now = filter;
        true
    }
}
