//! What stands between the machines and the wire.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use xds_transport::Protocol;

use super::Fault;
use crate::messages::{Failed as ErrorTold, Request, Response};
use crate::world::World;

/// What stands between a server and the wire.
#[derive(Default)]
pub(crate) struct ServerShim {
    asked: BTreeMap<String, BTreeSet<String>>,
    /// The last nonce of each type, and the names it brought.
    last: BTreeMap<String, (String, Vec<String>)>,
    last_nonce: String,
    /// The errors of each type that were told last.
    errors: BTreeMap<String, Vec<ErrorTold>>,
}

impl ServerShim {
    /// What the server reads.
    pub(crate) fn request(&mut self, fault: Option<Fault>, protocol: Protocol, request: &mut Request) {
        let first = !self.asked.contains_key(&request.type_url);
        let asked = self.asked.entry(request.type_url.clone()).or_default();
        if protocol == Protocol::Sotw {
            asked.clear();
        }
        asked.extend(request.names.iter().cloned());
        for name in &request.unsubscribe {
            asked.remove(name);
        }
        let asks_for_nothing = asked.is_empty();
        let last = self.last.get(&request.type_url);
        match (fault, last) {
            (Some(Fault::WildcardAfterTheLastName), _) if asks_for_nothing && !first => request.names.push("*".into()),
            (Some(Fault::ResendAfterNack), Some((_, names)))
                if request.error.is_some() && protocol == Protocol::Delta =>
            {
                request.names.extend(names.iter().filter(|name| asked.contains(*name)).cloned());
            }
            (Some(Fault::HonourStaleNonce), Some((nonce, _))) => request.nonce.clone_from(nonce),
            _ => {}
        }
    }

    /// What the server writes, and what it takes for an answer to it.
    pub(crate) fn response(&mut self, fault: Option<Fault>, world: &World, response: &mut Response) -> Option<Request> {
        let sotw = world.setup.protocol == Protocol::Sotw;
        let full_state = sotw && world.of(&response.type_url).is_some_and(|of| world.rule(of).full_state_in_sotw);
        let names = response.resources.iter().map(|sent| sent.name.clone()).collect();
        let type_url = response.type_url.clone();
        self.last.insert(type_url.clone(), (response.nonce.clone(), names));
        let last_nonce = std::mem::replace(&mut self.last_nonce, response.nonce.clone());
        match fault {
            Some(Fault::ReuseNonce) if !last_nonce.is_empty() => response.nonce = last_nonce,
            Some(Fault::LeaveOutOfFullState) if full_state && response.resources.len() > 1 => {
                response.resources.remove(0);
            }
            Some(Fault::RepeatErrors) => {
                let told = self.errors.insert(type_url, response.errors.clone()).unwrap_or_default();
                response.errors.extend(told);
            }
            Some(Fault::ErrorOfOtherCode) => response.errors.iter_mut().for_each(|failed| failed.code += 1),
            Some(Fault::ErrorWithoutRemoval) => {
                let Response { removed, errors, .. } = response;
                removed.retain(|name| errors.iter().all(|failed| failed.name != *name));
            }
            Some(Fault::RefreshOfOtherVersion) => {
                let heartbeats = response.resources.iter_mut().filter(|sent| sent.heartbeat);
                heartbeats.for_each(|sent| sent.version.push('x'));
            }
            Some(Fault::KeepTtlBack) => response.resources.iter_mut().for_each(|sent| sent.ttl = None),
            Some(Fault::NameTwice) => response.resources.extend(response.resources.last().cloned()),
            Some(Fault::DoNotWaitForAcks) => {
                // A delta request that names what was asked for asks for it again.
                let asked = self.asked.get(&type_url).filter(|_| sotw);
                let names = asked.into_iter().flatten().cloned().collect();
                return Some(Request { type_url, nonce: response.nonce.clone(), names, ..Request::default() });
            }
            _ => {}
        }
        None
    }
}

/// What stands between a client and the wire.
#[derive(Default)]
pub(crate) struct ClientShim {
    streams: u64,
    opened: BTreeSet<String>,
    last_nonce: BTreeMap<String, String>,
    last_version: BTreeMap<String, String>,
}

impl ClientShim {
    pub(crate) fn connected(&mut self) {
        self.streams += 1;
        self.opened.clear();
    }

    pub(crate) fn response(&mut self, response: &Response) {
        self.last_nonce.insert(response.type_url.clone(), response.nonce.clone());
        self.last_version.insert(response.type_url.clone(), response.version.clone());
    }

    /// What the client reads, where that is something else.
    pub(crate) fn reads(&self, fault: Option<Fault>, response: &Response) -> Option<Response> {
        let mut response = response.clone();
        response.errors.retain(|failed| !failed.name.ends_with('*') && !failed.name.contains("*?"));
        Some(response).filter(|_| fault == Some(Fault::MissErrorsOfGlobs))
    }

    /// What the client writes: nothing, the request, or more.
    pub(crate) fn request(&mut self, fault: Option<Fault>, protocol: Protocol, mut request: Request) -> Vec<Request> {
        let first = self.opened.insert(request.type_url.clone());
        let again = first && self.streams > 1;
        match fault {
            Some(Fault::ForgetNameOnReconnect) if again && request.names.len() > 1 => drop(request.names.pop()),
            Some(Fault::KeepNonceOnReconnect) if again => {
                request.nonce = self.last_nonce.get(&request.type_url).cloned().unwrap_or_default();
            }
            Some(Fault::LoseAck) if protocol == Protocol::Delta && !request.nonce.is_empty() => return Vec::new(),
            Some(Fault::AckTwice) if !request.nonce.is_empty() => return vec![request.clone(), request],
            Some(Fault::VersionOfRejected) if request.error.is_some() => {
                request.version = self.last_version.get(&request.type_url).cloned().unwrap_or_default();
            }
            Some(Fault::ForgetNode) if self.streams > 1 => request.node = Bytes::new(),
            _ => {}
        }
        vec![request]
    }
}
