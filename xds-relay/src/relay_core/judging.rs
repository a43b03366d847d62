//! Open streams where the rules for clients change: who may not be here any more is ended, and so is who asked for something
//! that is decided otherwise now, to come back and to be told as any that comes. All others notice nothing.

use std::sync::Arc;

use xdstp_cache::{Interest, SubscriberId, TypeUrl};
use xdstp_client::federation::Scope;

use crate::config::ClientRule;
use crate::lock::lock;
use crate::metrics::{AUDIT, Denial};
use crate::relay_core::client_look::parts;
use crate::relay_core::core::RelayCore;
use crate::relay_core::served_client::denial;
use crate::relay_core::stream_entry::{ServedStream, StreamEntry};

const CHANGED: &str = "what this client may ask for has changed in what it asks for: it is told when it comes back";

impl RelayCore {
    /// Looks at all open streams again: other rules for clients count now. Who may not be here any more has his stream
    /// [denied](ServedStream::deny), which is counted. A stream whose client asks for something that its rule denies now, or
    /// was denied something that it may ask for now, is ended: that is said to its client when it comes back. Those of which
    /// nothing is decided otherwise go on.
    pub fn judge_streams(&self) {
        let streams: Vec<_> = lock(&self.streams).values().cloned().collect();
        streams.iter().filter_map(|entry| Some((entry, entry.outside.as_ref()?))).for_each(|(entry, stream)| {
            self.judge(entry, &**stream);
        });
    }

    fn judge(&self, entry: &StreamEntry, stream: &dyn ServedStream) {
        let before = stream.rule();
        if let Err(words) = stream.judge() {
            return self.deny(entry, stream, Denial::Client, &words);
        }
        let rule = stream.rule();
        if rule == before {
            return;
        }
        // One that has not said yet who it is finds the new rule when it does.
        if let Some(words) = rule.as_ref().filter(|_| entry.has_node()).and_then(|rule| rule.denies_node(&entry.node()))
        {
            return self.deny(entry, stream, Denial::Node, &words);
        }
        // What it began to ask for before its rule was replaced, it may ask for a moment later.
        entry.judge_later();
        let denies = |type_url: &TypeUrl, interest: &Interest| {
            rule.as_ref().is_some_and(|rule| denial(rule, type_url, interest).is_some())
        };
        if entry.was_denied_more(denies) || rule.as_ref().is_some_and(|rule| asks_for_denied(entry, rule)) {
            stream.end(CHANGED);
        }
    }

    /// Looks again at streams whose rule was replaced since the last time.
    pub(crate) fn judge_late(&self) {
        let late: Vec<_> = lock(&self.streams).values().filter(|entry| entry.is_to_be_judged()).cloned().collect();
        for (stream, rule) in late.iter().filter_map(|entry| Some((entry, entry.rule()?))) {
            if asks_for_denied(stream, &rule) {
                stream.outside.iter().for_each(|outside| outside.end(CHANGED));
            }
        }
    }

    fn deny(&self, entry: &StreamEntry, stream: &dyn ServedStream, reason: Denial, words: &str) {
        self.metrics.downstream_denied(reason);
        let (peer, node) = (stream.peer(), entry.node().id);
        tracing::warn!(target: AUDIT, %peer, %node, "an open stream is denied: {words}");
        stream.deny(words);
    }
}

fn asks_for_denied(entry: &StreamEntry, rule: &ClientRule) -> bool {
    parts(entry).iter().any(|part| has_denied(part, rule))
}

fn has_denied((type_url, scope, id): &(TypeUrl, Arc<Scope>, SubscriberId), rule: &ClientRule) -> bool {
    let denied = |interest: &Interest| denial(rule, type_url, interest).is_some();
    let interests = scope.interests(*id);
    // Whoever may have all that a node group has may have it by any name.
    let has_all = scope.key.authority().is_none() && interests.contains(&Interest::Wildcard);
    let stands_for_denied = |interest: &Interest| match interest {
        Interest::Name(name) if !name.is_glob() && !has_all => {
            let own = scope.look_at(type_url, name, None).name;
            own != *name && denied(&Interest::Name(own))
        }
        _ => false,
    };
    interests.iter().any(|interest| denied(interest) || stands_for_denied(interest))
}
