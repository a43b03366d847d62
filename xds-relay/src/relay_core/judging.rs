//! Open streams where the rules for clients change: who may not be here any more is ended, and of what is decided otherwise now
//! a client is told on its stream, which goes on. All others notice nothing.

use crate::lock::lock;
use crate::metrics::{AUDIT, Denial};
use crate::relay_core::core::RelayCore;
use crate::relay_core::stream_entry::{ServedStream, StreamEntry};

impl RelayCore {
    /// Looks at all open streams again: other rules for clients count now. Who may not be here any more has his stream
    /// [denied](ServedStream::deny), which is counted. A client that asks for something that its rule denies now is told so, as any
    /// that asks for it, and is served what it was denied and may have now. All else on its stream goes on.
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
        entry.is_judged();
    }

    fn deny(&self, entry: &StreamEntry, stream: &dyn ServedStream, reason: Denial, words: &str) {
        self.metrics.downstream_denied(reason);
        let (peer, node) = (stream.peer(), entry.node().id);
        tracing::warn!(target: AUDIT, %peer, %node, "an open stream is denied: {words}");
        stream.deny(words);
    }
}
