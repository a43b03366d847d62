//! A stream of its own to an origin, which knows of nothing before.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use xds_transport::client::{Command, Update, Verdict};
use xdstp_cache::{Interest, ResourceError, Selector, TypeUrl};
use xdstp_client::upstream::{Connection, Consumer};

use super::heard::{Ask, Heard, Said, Side};
use crate::lock::lock;

/// How many requests are made between two messages.
const BATCH: usize = 1024;

/// Asks for this, once, and hears what is said.
pub(super) struct Fresh {
    asks: Arc<BTreeSet<Ask>>,
    /// What is still to be asked for.
    left: Vec<Ask>,
    selector: Selector,
    heard: Arc<Mutex<Heard>>,
}

impl Fresh {
    pub(super) fn new(asks: Arc<BTreeSet<Ask>>, selector: Selector, heard: Arc<Mutex<Heard>>) -> Self {
        let left = asks.iter().cloned().collect();
        Self { asks, left, selector, heard }
    }

    /// What time says is no word of the origin's (rule 67): what it does not send again may be there still (rule 112).
    fn time_is_over(&self, update: Update) {
        let mut heard = lock(&self.heard);
        for name in update.removed.into_iter().chain(update.errors.into_iter().map(|(name, _)| name)) {
            heard.hear((update.type_url.clone(), name), Said::Unclear);
        }
    }
}

impl Consumer for Fresh {
    fn commands(&mut self, _: Instant, apply: &mut dyn FnMut(Command)) {
        let left = self.left.len().saturating_sub(BATCH);
        self.left.drain(left..).for_each(|(type_url, interest)| apply(Command::Subscribe(type_url, interest)));
    }

    fn has_more_commands(&self) -> bool {
        !self.left.is_empty()
    }

    fn update(&mut self, now: Instant, update: Update) -> Verdict {
        if update.unsaid {
            self.time_is_over(update);
            return Verdict::Accept;
        }
        let heard = &mut *lock(&self.heard);
        heard.at = Some(now);
        let type_url = &update.type_url;
        for changed in update.changed.into_iter().chain(update.repeated) {
            for alias in changed.resource.value.aliases() {
                let ask = (type_url.clone(), Interest::Name(alias.clone()));
                // What nobody asks for is not kept, however much of it there is.
                if self.asks.contains(&ask) {
                    heard.hear_alias((ask.0, alias), &changed.name);
                }
            }
            heard.hear((type_url.clone(), changed.name), Said::There(Side::of(&changed.resource)));
        }
        for name in update.removed.into_iter().chain(update.lacking) {
            heard.hear((type_url.clone(), name), Said::Gone);
        }
        for (name, _) in update.errors {
            heard.hear((type_url.clone(), name), Said::Unclear);
        }
        let of_type = |interest| (type_url.clone(), interest);
        heard.hear_collections(update.answered.into_iter().map(of_type), update.complete.into_iter().map(of_type));
        heard.hear_unreadable(&update.rejected);
        Verdict::Accept
    }

    fn connection(&mut self, _: Instant, connection: Connection) {
        match connection {
            Connection::Answered => lock(&self.heard).is_lost(None),
            Connection::Disconnected { error, .. } => {
                lock(&self.heard).is_lost(Some(error.as_deref().unwrap_or("it ended the stream")));
            }
            _ => {}
        }
    }

    fn type_ended(&mut self, _: Instant, _: &TypeUrl, _: &ResourceError) {}

    fn type_opened(&mut self, _: Instant, _: &TypeUrl) {}

    fn selector(&self) -> Selector {
        self.selector.clone()
    }
}
