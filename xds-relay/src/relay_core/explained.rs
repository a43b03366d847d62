//! Why a client has what it has of a name.

use std::sync::Arc;
use std::time::Instant;

use xds_transport::server::Reception;
use xdstp_cache::{Interest, SubscriberId, TypeUrl};
use xdstp_client::federation::{Scope, ScopeKey};
use xdstp_uri::ResourceName;

use crate::api::Explained;
use crate::lock::lock;
use crate::relay_core::client_look::{Said, parts, said};
use crate::relay_core::client_node::ClientNode;
use crate::relay_core::clients_view::as_asked;
use crate::relay_core::core::RelayCore;
use crate::relay_core::stream_entry::StreamEntry;

/// As what a name is wanted, of which scope, by which subscriber of that.
type Asked = (Interest, Arc<Scope>, SubscriberId);

impl RelayCore {
    /// Once for each set of dynamic parameters that the client asks for the name with, and at least once.
    pub(crate) fn explain(&self, stream: &StreamEntry, type_url: &str, name: &str, now: Instant) -> Vec<Explained> {
        let explained = Explained { type_url: type_url.to_owned(), name: name.to_owned(), ..Explained::default() };
        let type_url = TypeUrl::from(type_url);
        let name = match ResourceName::parse(name) {
            Ok(name) => name,
            Err(error) => {
                let reasons = vec![format!("It is the name of nothing: {error}.")];
                return vec![Explained { reasons, ..explained }];
            }
        };
        let mut asked: Vec<Asked> = Vec::new();
        for (_, scope, id) in parts(stream).into_iter().filter(|(of, ..)| *of == type_url) {
            let is_other = |(_, other, _): &Asked| other.key.selector() != scope.key.selector();
            if let Some(wanted_as) = scope.asked_for_as(id, &name).filter(|_| asked.iter().all(is_other)) {
                asked.push((wanted_as, scope, id));
            }
        }
        if asked.is_empty() {
            let reasons = vec![format!("The client does not want it: it asked for no such {type_url}.")];
            return vec![Explained { reasons, ..explained }];
        }
        let of_asked = |asked| self.explain_asked(stream, explained.clone(), (&type_url, &name), asked, now);
        asked.into_iter().map(of_asked).collect()
    }

    /// What its parameters have to do with its node, where it sends none of its own.
    fn by_node(&self, stream: &StreamEntry, scope: &Scope) -> Vec<String> {
        let node = stream.node();
        let own = self.node_parameters.selector(&node);
        let selector = scope.key.selector();
        if selector.is_some_and(|selector| **selector != own) {
            return Vec::new();
        }
        let mut reasons = Vec::new();
        if selector.is_some() {
            reasons.push("These parameters are what its node says (node_parameters).".to_owned());
        }
        let lacking = self.node_parameters.lacking(&node);
        if !lacking.is_empty() {
            let lacking: Vec<_> = lacking.iter().map(ToString::to_string).collect();
            reasons.push(format!("Its node says nothing of {}: that is no parameter of it.", lacking.join(", ")));
        }
        reasons
    }

    fn explain_asked(
        &self,
        stream: &StreamEntry,
        mut explained: Explained,
        (type_url, name): (&TypeUrl, &ResourceName),
        (wanted_as, scope, id): Asked,
        now: Instant,
    ) -> Explained {
        // What every node shares is not shared by rules.
        if let (ScopeKey::Group(..), Ok(node)) = (scope.key.of_all(), ClientNode::decode(lock(&stream.node).clone())) {
            // It goes by what was asked for.
            let asked = (wanted_as != Interest::Wildcard).then(|| name.as_str());
            explained.rules = self.grouping.explain(&node, type_url, asked);
        }
        let look = scope.look_at(type_url, name, Some(id));
        explained.wanted_as = Some(as_asked(&wanted_as));
        explained.parameters = scope.key.selector().map(ToString::to_string);
        explained.scope = Some(scope.key.to_string());
        explained.origin = self.origin_status(scope.origin(), std::slice::from_ref(&scope), now);
        explained.own_name = (look.name != *name).then(|| look.name.to_string());
        explained.version = look.resource.as_ref().map(|resource| resource.version.to_string());
        (explained.known, explained.stale, explained.sent) = (look.is_known, look.stale, look.is_sent);
        (explained.variant, explained.error) = (look.variant, look.error);
        if look.is_sent
            && let Some(Said { reception, rejection }) = said(stream, type_url, &look.name, now)
        {
            let answer = match reception {
                Reception::Unanswered => "unanswered",
                Reception::Refused { .. } => "rejected",
                Reception::Accepted => "accepted",
                _ => "unknown",
            };
            explained.answer = Some(answer.to_owned());
            explained.rejection = rejection.filter(|_| answer == "rejected");
        }
        explained.reasons = reasons(&explained, self.by_node(stream, &scope), self.is_gathered(type_url, &scope));
        explained
    }
}

/// In the order in which it came about.
fn reasons(explained: &Explained, by_node: Vec<String>, is_gathered: bool) -> Vec<String> {
    let mut reasons = asked(explained);
    reasons.extend(by_node);
    if let Some(scope) = &explained.scope {
        reasons.push(format!("It is held in the scope {scope:?}."));
    }
    if let Some(origin) = &explained.origin {
        let away = origin.last_error.as_ref().filter(|_| origin.streams_up < origin.streams);
        let away = away.map_or_else(String::new, |error| format!("; it is away: {error}"));
        reasons.push(format!("It comes from the origin {:?} ({}){away}.", origin.name, origin.kind));
    }
    reasons.push(there_is(explained, is_gathered));
    reasons.extend(explained.error.iter().map(|error| format!("The origin found an error: {error}.")));
    let said = match (explained.sent, explained.answer.as_deref()) {
        (false, _) => "The client was not sent that yet.".to_owned(),
        (true, Some("unanswered")) => "The client was sent that, and has not answered.".to_owned(),
        (true, Some("rejected")) => {
            let words = explained.rejection.as_ref().map(|rejection| rejection.message.as_str());
            format!("The client was sent that, and rejected it: {:?}.", words.unwrap_or_default())
        }
        (true, Some("accepted")) => "The client was sent that, and accepted it.".to_owned(),
        (true, Some(_)) => {
            "The client was sent that. It rejected so much that it is not known any more whether this was among it."
                .to_owned()
        }
        (true, None) => "The client was sent that.".to_owned(),
    };
    reasons.push(said);
    reasons
}

/// What the client asked for, and which rules that met.
fn asked(explained: &Explained) -> Vec<String> {
    let mut reasons = Vec::new();
    let with = explained.parameters.as_ref().map_or_else(String::new, |parameters| format!(", with {parameters:?}"));
    match explained.wanted_as.as_deref().unwrap_or_default() {
        "*" => reasons.push(format!("The client asked for everything of the type{with}.")),
        asked if asked == explained.name => reasons.push(format!("The client asked for it by its name{with}.")),
        glob => reasons.push(format!("The client asked for {glob}, which has it{with}.")),
    }
    let matched: Vec<_> = explained.rules.iter().filter(|rule| rule.verdict == "matched").collect();
    for rule in &matched {
        let (fragment, number, line, words) = (rule.fragment, rule.rule, rule.line, &rule.words);
        reasons.push(format!("Aggregation: fragment {fragment}, rule {number} (line {line}) matched: {words:?}."));
    }
    let failed: Vec<_> = explained.rules.iter().filter(|rule| rule.verdict == "failed").collect();
    for rule in &failed {
        let (fragment, number, line, words) = (rule.fragment, rule.rule, rule.line, &rule.words);
        reasons.push(format!(
            "Aggregation: fragment {fragment}, rule {number} (line {line}) makes no key of it: {words}."
        ));
    }
    if matched.is_empty() && failed.is_empty() && !explained.rules.is_empty() {
        reasons.push("Aggregation: no rule matched.".to_owned());
    }
    reasons
}

fn there_is(explained: &Explained, is_gathered: bool) -> String {
    let which = match (&explained.variant, &explained.parameters) {
        (Some(variant), _) => format!(", the variant for {variant:?}"),
        (None, Some(_)) => ", which has no variants".to_owned(),
        (None, None) => String::new(),
    };
    match (&explained.version, explained.known) {
        (Some(version), _) if explained.stale => {
            format!("Its version is {version:?}{which}, known from before a restart only.")
        }
        (Some(version), _) => format!("Its version is {version:?}{which}."),
        (None, true) if is_gathered => {
            "It is in no release that the client is served: what is followed of the origin (follow.collections) does not have it, \
             whatever the origin has."
                .to_owned()
        }
        (None, true) if explained.parameters.is_some() => "The origin says that there is none for these.".to_owned(),
        (None, true) => "The origin says that it does not exist.".to_owned(),
        (None, false) => "The origin has not answered for it.".to_owned(),
    }
}
