//! Looking at the streams that are served from releases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use super::Releases;
use super::health::{Look, MOST, StreamLook, TypeLook};
use crate::lock::lock;
use crate::relay_core::client_look;
use crate::relay_core::stream_entry::StreamEntry;
use crate::releases::{Release, Threshold};

impl Releases {
    /// How the streams are, if anybody must know; `at` is where these releases are among those of the relay. A lock of one stream at
    /// a time is held, and into no more of them than [`MOST`] is looked.
    pub(in crate::relay_core) fn look(&self, at: usize, all: &Mutex<BTreeMap<u64, Arc<StreamEntry>>>) -> Option<Look> {
        let candidate = lock(&self.served).candidate.as_ref().map(|(release, _)| *release);
        let refusing = lock(&self.state).health.refusing();
        if candidate.is_none() && refusing.is_empty() {
            return None;
        }
        let all: Vec<_> = lock(all).iter().map(|(number, entry)| (*number, entry.clone())).collect();
        let asks_who_is_silent = self.rollout.halt.silent != Threshold::Never;
        let mut looks = MOST;
        let streams = all.iter().map(|(number, entry)| {
            let has: Option<Release> = lock(&entry.releases).get(&at).copied().flatten();
            let (client, is_served) = (entry.client(*number), candidate.is_some() && has == candidate);
            let is_looked_at = if is_served { asks_who_is_silent } else { refusing.contains(&client) } && looks > 0;
            let types = is_looked_at.then(|| self.look_into(entry)).flatten();
            looks -= usize::from(is_looked_at);
            StreamLook { client, is_served, types }
        });
        Some(Look { candidate, streams: streams.collect() })
    }

    /// The types that something of the scope is asked for of, unless the stream is busy.
    fn look_into(&self, entry: &StreamEntry) -> Option<Vec<TypeLook>> {
        let mut asked = BTreeSet::new();
        entry.view.visit(|type_url, part| {
            if self.have(type_url, &part.scope) {
                asked.insert(type_url.clone());
            }
        });
        let mut types = None;
        client_look::look(entry, |stream| {
            let sessions = stream.sessions().filter(|session| asked.contains(session.type_url));
            let looks = sessions.map(|session| TypeLook {
                type_url: session.type_url.clone(),
                unanswered_since: session.unanswered_since,
                accepts: client_look::accepts(&session),
            });
            types = Some(looks.collect());
        });
        types
    }
}
