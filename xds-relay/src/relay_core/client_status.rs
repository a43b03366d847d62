//! What all clients have, in the words of CSDS.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bytes::Bytes;
use xds_transport::grpc::server::{ClientStatus, config_of_missing, config_of_resource};
use xds_transport::is_secret;
use xds_transport::wire::client_status::{ClientConfig, GenericXdsConfig};
use xdstp_cache::{Interest, Stored, SubscriberId, TypeUrl};
use xdstp_client::federation::Scope;
use xdstp_uri::ResourceName;

use crate::lock::lock;
use crate::relay_core::client_look::{look, parts};
use crate::relay_core::core::RelayCore;
use crate::relay_core::stream_entry::StreamEntry;

/// How many names are looked at while a stream waits.
const SLICE: usize = 256;

impl ClientStatus for RelayCore {
    fn visit_clients(&self, contents: bool, visitor: &mut dyn FnMut(ClientConfig) -> ControlFlow<()>) {
        self.visit_clients_of(&|_| true, contents, visitor);
    }

    fn visit_clients_of(
        &self,
        is_meant: &dyn Fn(&Bytes) -> bool,
        contents: bool,
        visitor: &mut dyn FnMut(ClientConfig) -> ControlFlow<()>,
    ) {
        self.visit_streams(None, |_, stream| {
            let node = lock(&stream.node).clone();
            !is_meant(&node) || visitor(config(stream, contents)).is_continue()
        });
    }
}

fn config(stream: &StreamEntry, contents: bool) -> ClientConfig {
    let mut configs = Vec::new();
    for (type_url, scope, id) in parts(stream) {
        let names: Vec<_> = wanted(&scope, id, &type_url).into_iter().collect();
        let contents = contents && !is_secret(type_url.as_str());
        names.chunks(SLICE).for_each(|names| add(stream, (&type_url, &scope, id), names, contents, &mut configs));
    }
    let node = lock(&stream.node).clone();
    ClientConfig { node, generic_xds_configs: configs, ..ClientConfig::default() }
}

/// The names that a subscriber asks for, and the members of its collections.
fn wanted(scope: &Scope, id: SubscriberId, type_url: &TypeUrl) -> BTreeSet<ResourceName> {
    let (mut names, mut collects) = (BTreeSet::new(), false);
    for interest in scope.interests(id) {
        match interest {
            Interest::Name(name) if !name.is_glob() => _ = names.insert(name),
            _ => collects = true,
        }
    }
    if collects {
        let of_type = |stored: Stored<'_, _>| {
            (stored.type_url == type_url && stored.resource.is_some()).then(|| stored.name.clone())
        };
        scope.visit_stored(of_type, |name| {
            names.extend(name.filter(|name| scope.asked_for_as(id, name).is_some()));
        });
    }
    names
}

fn add(
    stream: &StreamEntry,
    (type_url, scope, id): (&TypeUrl, &Scope, SubscriberId),
    names: &[ResourceName],
    contents: bool,
    configs: &mut Vec<GenericXdsConfig>,
) {
    let looks: Vec<_> = names.iter().map(|name| (name, scope.look_at(type_url, name, Some(id)))).collect();
    look(stream, |stream| {
        let Some(session) = stream.sessions().find(|session| session.type_url == type_url) else { return };
        configs.extend(looks.iter().map(|(name, look)| match &look.resource {
            None => config_of_missing(type_url, name.as_str(), look.is_known),
            Some(resource) => {
                let reception = look.is_sent.then(|| session.reception(&look.name));
                config_of_resource(&session, name.as_str(), resource, reception, contents)
            }
        }));
    });
}
