//! How often one client met a limit of its own. It is told apart by the rule for it, of which there are as many as configured, and
//! not by who it is.

use super::Metrics;
use crate::config::{ClientLimit, ClientRule};

impl Metrics {
    /// Makes the limits that rules have visible before they are reached.
    pub fn declare_client_limits(&self, rules: &[ClientRule]) {
        for (position, rule) in rules.iter().enumerate() {
            let limited = ClientLimit::ALL.into_iter().filter(|limit| limit.most(&rule.limits).is_some());
            limited.for_each(|limit| _ = self.client_refused.with_label_values(&[&position.to_string(), limit.key()]));
        }
    }

    /// A stream was refused or ended because of a limit of its client, which the rule at this position has: by its path.
    pub(crate) fn client_refused(&self, rule: usize, path: &'static str) {
        let key = ClientLimit::of_path(path).map_or(path, ClientLimit::key);
        self.client_refused.with_label_values(&[&rule.to_string(), key]).inc();
    }
}
