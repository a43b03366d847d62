//! What an origin says on a stream of its own, which knows of nothing before.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use xds_transport::client::{Command, Update, Verdict};
use xdstp_cache::{Interest, Selector, TypeUrl, Version};
use xdstp_client::upstream::{Connection, Consumer};
use xdstp_uri::ResourceName;

use crate::lock::lock;

/// How many requests are made between two messages.
const BATCH: usize = 1024;

/// Asks for this, once, and hears what is said.
pub(super) struct Fresh {
    asks: Vec<(TypeUrl, Interest)>,
    selector: Selector,
    heard: Arc<Mutex<Heard>>,
}

/// What was said so far.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) names: HashMap<TypeUrl, HashMap<ResourceName, Said>>,
    /// Collections of which all there is was said.
    pub(super) complete: HashSet<(TypeUrl, Interest)>,
    /// When something was said last.
    pub(super) at: Option<Instant>,
    /// Why there is no stream, if the last try came to nothing.
    pub(super) trouble: Option<String>,
}

/// What an origin says of a name.
pub(super) enum Said {
    There {
        version: Version,
        digest: u128,
    },
    Gone,
    /// What is wrong with it: that does not say what there is.
    Failed,
}

impl Fresh {
    pub(super) fn new(asks: Vec<(TypeUrl, Interest)>, selector: Selector) -> (Self, Arc<Mutex<Heard>>) {
        let heard = Arc::<Mutex<Heard>>::default();
        (Self { asks, selector, heard: heard.clone() }, heard)
    }
}

impl Consumer for Fresh {
    fn commands(&mut self, _: Instant, apply: &mut dyn FnMut(Command)) {
        let left = self.asks.len().saturating_sub(BATCH);
        self.asks.drain(left..).for_each(|(type_url, interest)| apply(Command::Subscribe(type_url, interest)));
    }

    fn has_more_commands(&self) -> bool {
        !self.asks.is_empty()
    }

    fn update(&mut self, now: Instant, update: Update) -> Verdict {
        let heard = &mut *lock(&self.heard);
        // What time says is no word of the origin's (rule 67).
        if !update.unsaid {
            heard.at = Some(now);
        }
        let names = heard.names.entry(update.type_url.clone()).or_default();
        for changed in update.changed.into_iter().chain(update.repeated) {
            let (version, digest) = (changed.resource.version.clone(), changed.resource.value.digest());
            names.insert(changed.name, Said::There { version, digest });
        }
        names.extend(update.removed.into_iter().chain(update.lacking).map(|name| (name, Said::Gone)));
        names.extend(update.errors.into_iter().map(|(name, _)| (name, Said::Failed)));
        heard.complete.extend(update.complete.into_iter().map(|interest| (update.type_url.clone(), interest)));
        Verdict::Accept
    }

    fn connection(&mut self, _: Instant, connection: Connection) {
        match connection {
            Connection::Answered => lock(&self.heard).trouble = None,
            Connection::Disconnected { error, .. } => {
                let error = error.unwrap_or_else(|| "it ended the stream".to_owned());
                lock(&self.heard).trouble = Some(error);
            }
            _ => {}
        }
    }

    fn selector(&self) -> Selector {
        self.selector.clone()
    }
}
