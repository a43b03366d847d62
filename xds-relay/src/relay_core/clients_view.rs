//! The clients of a relay, as the admin API tells of them.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use xdstp_cache::Interest;

use crate::api::{
    self, Client, ClientCounts, ClientLimitUse, ClientQuery, ClientRow, ClientState, ClientUses, Clients, ExplainQuery,
};
use crate::config::ClientLimit;
use crate::lock::lock;
use crate::relay_core::client_look::ClientLook;
use crate::relay_core::client_use::ClientUse;
use crate::relay_core::core::RelayCore;
use crate::relay_core::stream_entry::StreamEntry;

/// How many streams are taken from the list at a time: those that come and go need its lock.
const SLICE: usize = 256;

impl RelayCore {
    /// Some of the clients, in the order in which they came.
    pub fn clients(&self, query: &ClientQuery, now: Instant) -> Clients {
        let most = api::page(query.limit);
        let mut found = Clients::default();
        self.visit_streams(query.after, |id, stream| {
            let row = ClientLook::new(id, stream, now).row;
            if is_meant(&row, query) {
                if found.clients.len() == most {
                    found.next = found.clients.last().map(|row| row.id);
                    return false;
                }
                found.clients.push(row);
            }
            true
        });
        found
    }

    /// How many there are.
    pub(crate) fn client_counts(&self, now: Instant) -> ClientCounts {
        let mut counts = ClientCounts::default();
        self.visit_streams(None, |id, stream| {
            counts.all += 1;
            *match ClientLook::new(id, stream, now).row.state {
                ClientState::Synced => &mut counts.synced,
                ClientState::Waiting => &mut counts.waiting,
                ClientState::Silent => &mut counts.silent,
                ClientState::Rejected => &mut counts.rejected,
            } += 1;
            true
        });
        counts
    }

    /// One client, and why it has what it has of a name.
    pub fn client(&self, id: u64, query: &ExplainQuery, now: Instant) -> Option<Client> {
        let stream = lock(&self.streams).get(&id).cloned()?;
        let (row, wants) = ClientLook::new(id, &stream, now).wants(&stream);
        let mut explained = match (&query.type_url, &query.name) {
            (Some(type_url), Some(name)) => self.explain(&stream, type_url, name, now).into_iter(),
            _ => Vec::new().into_iter(),
        };
        let uses = stream.client_use().map(uses);
        Some(Client { row, uses, wants, explained: explained.next(), also_explained: explained.collect() })
    }

    /// Visits the streams behind one of them, until there are no more or the visitor has seen enough.
    pub(crate) fn visit_streams(&self, after: Option<u64>, mut visitor: impl FnMut(u64, &Arc<StreamEntry>) -> bool) {
        let mut after = after.map_or(Bound::Unbounded, Bound::Excluded);
        loop {
            // A stream that ends has its own lock when it takes this one.
            let slice: Vec<_> = {
                let streams = lock(&self.streams);
                let behind = streams.range((after, Bound::Unbounded));
                behind.take(SLICE).map(|(id, stream)| (*id, stream.clone())).collect()
            };
            let Some((last, _)) = slice.last() else { return };
            after = Bound::Excluded(*last);
            if !slice.iter().all(|(id, stream)| visitor(*id, stream)) {
                return;
            }
        }
    }
}

fn uses(client: &ClientUse) -> ClientUses {
    let limit = |(limit, used, most): (ClientLimit, usize, _)| (limit.key().to_owned(), ClientLimitUse { used, most });
    ClientUses {
        rule: client.rule(),
        identity: client.identity().to_string(),
        limits: client.uses().map(limit).collect(),
    }
}

pub(crate) fn as_asked(interest: &Interest) -> String {
    interest.as_str().to_owned()
}

fn is_meant(row: &ClientRow, query: &ClientQuery) -> bool {
    let ClientQuery { node, search, state, type_url, .. } = query;
    let has = |text: &String| {
        let mut texts = [&row.node, &row.cluster, &row.zone, &row.peer].into_iter().chain(&row.groups);
        texts.any(|of| of.contains(text))
    };
    node.as_ref().is_none_or(|node| *node == row.node)
        && search.as_ref().is_none_or(has)
        && state.is_none_or(|state| state == row.state)
        && type_url.as_ref().is_none_or(|end| row.types.iter().any(|of| api::is_type(of, end)))
}
