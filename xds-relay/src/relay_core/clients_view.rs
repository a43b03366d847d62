//! The clients of a relay, as the admin API tells of them.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use xds_transport::server::Reception;
use xdstp_cache::{Interest, TypeUrl};
use xdstp_client::federation::ScopeKey;
use xdstp_uri::ResourceName;

use crate::api::{self, Client, ClientCounts, ClientQuery, ClientRow, ClientState, Clients, ExplainQuery, Explained};
use crate::lock::lock;
use crate::relay_core::client_look::{ClientLook, Said, parts, said};
use crate::relay_core::client_node::ClientNode;
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
        let explained = match (&query.type_url, &query.name) {
            (Some(type_url), Some(name)) => Some(self.explain(&stream, type_url, name, now)),
            _ => None,
        };
        Some(Client { row, wants, explained })
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

    fn explain(&self, stream: &StreamEntry, type_url: &str, name: &str, now: Instant) -> Explained {
        let mut explained = Explained { type_url: type_url.to_owned(), name: name.to_owned(), ..Explained::default() };
        let type_url = TypeUrl::from(type_url);
        let name = match ResourceName::parse(name) {
            Ok(name) => name,
            Err(error) => {
                explained.reasons.push(format!("It is the name of nothing: {error}."));
                return explained;
            }
        };
        let wants = parts(stream).into_iter().filter(|(of, ..)| *of == type_url);
        let wanted = wants.filter_map(|(_, scope, id)| Some((scope.asked_for_as(id, &name)?, scope, id))).next();
        let Some((wanted_as, scope, id)) = wanted else {
            explained.reasons.push(format!("The client does not want it: it asked for no such {type_url}."));
            return explained;
        };
        // What every node shares is not shared by rules.
        if let (ScopeKey::Group(..), Ok(node)) = (scope.key.of_all(), ClientNode::decode(lock(&stream.node).clone())) {
            explained.rules = self.grouping.explain(&node, &type_url, name.as_str());
        }
        let look = scope.look_at(&type_url, &name, Some(id));
        explained.wanted_as = Some(as_asked(&wanted_as));
        explained.scope = Some(scope.key.to_string());
        explained.origin = self.origin_status(scope.origin, std::slice::from_ref(&scope));
        explained.own_name = (look.name != name).then(|| look.name.to_string());
        explained.version = look.resource.as_ref().map(|resource| resource.version.to_string());
        (explained.known, explained.stale, explained.sent) = (look.is_known, look.stale, look.is_sent);
        (explained.variants, explained.error) = (look.variants, look.error);
        if look.is_sent
            && let Some(Said { reception, rejection }) = said(stream, &type_url, &look.name, now)
        {
            let answer = match reception {
                Reception::Unanswered => "unanswered",
                Reception::Refused { .. } => "rejected",
                _ => "accepted",
            };
            explained.answer = Some(answer.to_owned());
            explained.rejection = rejection.filter(|_| answer == "rejected");
        }
        explained.reasons = reasons(&explained);
        explained
    }
}

pub(crate) fn as_asked(interest: &Interest) -> String {
    interest.as_str().to_owned()
}

fn is_meant(row: &ClientRow, query: &ClientQuery) -> bool {
    let ClientQuery { node, search, state, type_url, .. } = query;
    let has = |text: &String| {
        let mut texts = [&row.node, &row.cluster, &row.peer].into_iter().chain(&row.groups);
        texts.any(|of| of.contains(text))
    };
    node.as_ref().is_none_or(|node| *node == row.node)
        && search.as_ref().is_none_or(has)
        && state.is_none_or(|state| state == row.state)
        && type_url.as_ref().is_none_or(|end| row.types.iter().any(|of| api::is_type(of, end)))
}

/// In the order in which it came about.
fn reasons(explained: &Explained) -> Vec<String> {
    let mut reasons = Vec::new();
    let asked = explained.wanted_as.as_deref().unwrap_or_default();
    match asked {
        "*" => reasons.push("The client asked for everything of the type.".to_owned()),
        asked if asked == explained.name => reasons.push("The client asked for it by its name.".to_owned()),
        glob => reasons.push(format!("The client asked for {glob}, which has it.")),
    }
    let matched: Vec<_> = explained.rules.iter().filter(|rule| rule.verdict == "matched").collect();
    for rule in &matched {
        let (fragment, number, line, words) = (rule.fragment, rule.rule, rule.line, &rule.words);
        reasons.push(format!("Aggregation: fragment {fragment}, rule {number} (line {line}) matched: {words:?}."));
    }
    if matched.is_empty() && !explained.rules.is_empty() {
        reasons.push("Aggregation: no rule matched.".to_owned());
    }
    if let Some(scope) = &explained.scope {
        reasons.push(format!("It is held in the scope {scope:?}."));
    }
    if let Some(origin) = &explained.origin {
        let away = origin.last_error.as_ref().filter(|_| origin.streams_up < origin.streams);
        let away = away.map_or_else(String::new, |error| format!("; it is away: {error}"));
        reasons.push(format!("It comes from the origin {:?} ({}){away}.", origin.name, origin.kind));
    }
    match (&explained.version, explained.known) {
        (Some(version), _) if explained.stale => {
            reasons.push(format!("Its version is {version:?}, known from before a restart only."));
        }
        (Some(version), _) => reasons.push(format!("Its version is {version:?}.")),
        (None, true) => reasons.push("The origin says that it does not exist.".to_owned()),
        (None, false) => reasons.push("The origin has not answered for it.".to_owned()),
    }
    reasons.extend(explained.error.iter().map(|error| format!("The origin found an error: {error}.")));
    let said = match (explained.sent, explained.answer.as_deref()) {
        (false, _) => "The client was not sent that yet.".to_owned(),
        (true, Some("unanswered")) => "The client was sent that, and has not answered.".to_owned(),
        (true, Some("rejected")) => {
            let words = explained.rejection.as_ref().map(|rejection| rejection.message.as_str());
            format!("The client was sent that, and rejected it: {:?}.", words.unwrap_or_default())
        }
        (true, Some(_)) => "The client was sent that, and accepted it.".to_owned(),
        (true, None) => "The client was sent that.".to_owned(),
    };
    reasons.push(said);
    reasons
}
