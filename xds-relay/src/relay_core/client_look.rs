//! One client, as the admin API tells of it: what it wants, how it is, and why it has what it has.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xds_transport::server::{Reception, SessionView, Stream};
use xdstp_cache::{SubscriberId, TypeUrl};
use xdstp_client::federation::{Scope, ScopeKey};
use xdstp_uri::ResourceName;

use crate::api::{ClientRow, ClientState, ClientType, Rejection};
use crate::relay_core::stream_entry::StreamEntry;

/// After which a client that answers nothing is silent.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
/// How many names of a type are told.
const NAMES: usize = 1000;

/// What a stream's own lock lets see of it.
pub(crate) struct ClientLook {
    pub(crate) row: ClientRow,
    /// By type URL, without names.
    pub(crate) types: BTreeMap<String, ClientType>,
}

/// What a client said of a name.
pub(crate) struct Said {
    pub(crate) reception: Reception,
    pub(crate) rejection: Option<Rejection>,
}

impl ClientLook {
    pub(crate) fn new(id: u64, stream: &StreamEntry, now: Instant) -> Self {
        let node = stream.node();
        let (mut types, mut busy) = (BTreeMap::new(), stream.outside.is_some());
        look(stream, |stream| {
            busy = false;
            types.extend(stream.sessions().map(|session| (session.type_url.to_string(), of_type(&session, now))));
        });
        let opened = now.saturating_duration_since(stream.opened).as_secs();
        types.values_mut().for_each(|of: &mut ClientType| of.since_seconds = of.since_seconds.min(opened));
        // The worst of its types, for as long as the first of them is.
        let worst = types.values().map(|of| of.state).max();
        let since = types.values().filter(|of| Some(of.state) == worst).map(|of| of.since_seconds);
        let since = if worst == Some(ClientState::Synced) { since.min() } else { since.max() };
        let row = ClientRow {
            id,
            node: node.id,
            cluster: node.cluster,
            zone: node.locality.map(|locality| locality.zone).unwrap_or_default(),
            peer: stream.outside.as_ref().map_or_else(String::new, |outside| outside.peer().to_owned()),
            protocol: stream.protocol.as_str().to_owned(),
            groups: groups(stream),
            types: types.keys().cloned().collect(),
            state: worst.unwrap_or_default(),
            since_seconds: since.unwrap_or(opened),
            busy,
        };
        Self { row, types }
    }

    /// The same with names: what it wants of each type.
    pub(crate) fn wants(mut self, stream: &StreamEntry) -> (ClientRow, Vec<ClientType>) {
        for (type_url, scope, id) in parts(stream) {
            if let Some(of) = self.types.get_mut(type_url.as_str()) {
                let interests = scope.interests(id).into_iter().map(|interest| interest.as_str().to_owned());
                of.names.extend(interests.filter(|name| name != "*"));
            }
        }
        for of in self.types.values_mut() {
            of.names.sort();
            of.more_names = of.names.len().saturating_sub(NAMES);
            of.names.truncate(NAMES);
        }
        (self.row, self.types.into_values().collect())
    }
}

/// Its subscribers, with their types.
pub(crate) fn parts(stream: &StreamEntry) -> Vec<(TypeUrl, Arc<Scope>, SubscriberId)> {
    let mut parts = Vec::new();
    stream.view.visit(|type_url, part| parts.push((type_url.clone(), part.scope.clone(), part.id)));
    parts
}

/// What the client said of a name that it was sent.
pub(crate) fn said(stream: &StreamEntry, type_url: &TypeUrl, name: &ResourceName, now: Instant) -> Option<Said> {
    let mut said = None;
    look(stream, |stream| {
        let Some(session) = stream.sessions().find(|session| session.type_url == type_url) else { return };
        said = Some(Said { reception: session.reception(name), rejection: rejection(&session, now) });
    });
    said
}

pub(crate) fn look(stream: &StreamEntry, mut look: impl FnMut(&Stream)) {
    if let Some(outside) = &stream.outside {
        outside.inspect(&mut look);
    }
}

fn groups(stream: &StreamEntry) -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    stream.view.visit(|_, part| {
        if let key @ (ScopeKey::Group(..) | ScopeKey::EveryNode) = part.scope.key.of_all() {
            groups.push(key.to_string());
        }
    });
    groups.sort();
    groups.dedup();
    groups
}

fn of_type(session: &SessionView<'_>, now: Instant) -> ClientType {
    let (state, since) = state(session, now);
    ClientType {
        type_url: session.type_url.to_string(),
        state,
        // Without a moment of its own it is that since the stream began: the longest that there is.
        since_seconds: since.map_or(u64::MAX, |since| now.saturating_duration_since(since).as_secs()),
        wildcard: session.wildcard,
        sent: session.tally.responses,
        accepted: session.tally.acks,
        rejected: session.tally.nacks,
        last_rejection: rejection(session, now),
        ..ClientType::default()
    }
}

fn state(session: &SessionView<'_>, now: Instant) -> (ClientState, Option<Instant>) {
    let accepted = session.accepted.map(|mark| mark.at);
    let rejected = session.tally.last_nack.as_ref().map(|nack| nack.at);
    if let Some(rejected) = rejected.filter(|at| accepted.is_none_or(|accepted| accepted < *at)) {
        return (ClientState::Rejected, Some(rejected));
    }
    match (session.unanswered_since, accepted) {
        (Some(since), _) if now.saturating_duration_since(since) >= PATIENCE => (ClientState::Silent, Some(since)),
        (Some(since), _) => (ClientState::Waiting, Some(since)),
        (None, Some(accepted)) => (ClientState::Synced, Some(accepted)),
        (None, None) => (ClientState::Waiting, None),
    }
}

/// Whether the last thing that the client said of the type is that it accepts it.
pub(crate) fn accepts(session: &SessionView<'_>) -> bool {
    let rejected = session.tally.last_nack.as_ref().map(|nack| nack.at);
    session.accepted.is_some_and(|accepted| rejected.is_none_or(|rejected| rejected < accepted.at))
}

fn rejection(session: &SessionView<'_>, now: Instant) -> Option<Rejection> {
    let nack = session.tally.last_nack.as_ref()?;
    let seconds_ago = now.saturating_duration_since(nack.at).as_secs();
    Some(Rejection { message: nack.message.clone(), seconds_ago })
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use xds_transport::server::Settings;
    use xds_transport::wire::DeltaDiscoveryRequest;
    use xds_transport::{Frame, Protocol};
    use xdstp_cache::{Cache, Options};

    use super::*;

    #[test]
    fn who_does_not_answer_waits_for_a_while_and_is_silent_then() {
        let (now, type_url) = (Instant::now(), TypeUrl::from("type.googleapis.com/envoy.config.cluster.v3.Cluster"));
        let mut cache = Cache::new(Options::default());
        let resource = Frame::of_message(&type_url, b"\x0a\x01a").into_resource(None);
        let mut edit = cache.edit(now);
        edit.put(&type_url, &"a".parse().unwrap(), resource);
        let _ = edit.finish();
        let mut stream = Stream::new(Protocol::Delta, Settings::default());
        let request = DeltaDiscoveryRequest { type_url: type_url.to_string(), ..DeltaDiscoveryRequest::default() };
        stream.handle_message(now, request.encode_to_vec().into(), &mut cache).unwrap();
        let told = |stream: &Stream, at: Instant| {
            let of = of_type(&stream.sessions().next().unwrap(), at);
            (of.state, of.since_seconds)
        };
        assert_eq!(told(&stream, now), (ClientState::Waiting, u64::MAX));
        let sent = now + Duration::from_secs(1);
        stream.poll_transmit(sent, &mut cache).unwrap();
        assert_eq!(told(&stream, sent + Duration::from_secs(14)), (ClientState::Waiting, 14));
        assert_eq!(told(&stream, sent + PATIENCE), (ClientState::Silent, 15));
    }
}
