//! What a client has, in the words of CSDS (gRFC A40).

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use xds_transport::wire::Timestamp;
use xds_transport::wire::client_status::{ClientConfig, ClientResourceStatus, GenericXdsConfig, UpdateFailureState};
use xdstp_cache::{Cause, Interest, TypeUrl};
use xdstp_uri::ResourceName;

use super::Client;
use super::inner::Shared;
use crate::federation::{ResourceStatus, Scope, Shown};

impl Client {
    /// What it asks for, what it has of that, and how each fares, as gRFC A40 has it; with the resources themselves, each as it
    /// came, if `contents`. Of what was refused it is told what is wrong with it, beside what is used in its place.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use xds_transport::wire::client_status::ClientResourceStatus;
    /// use xdstp_client::Client;
    /// use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
    /// use xdstp_client::test::Network;
    ///
    /// let network = Network::new(Instant::now());
    /// let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    /// let client = Client::builder(bootstrap).transport(network.clone()).build()?;
    /// let _watch = client.watch("type.googleapis.com/envoy.config.cluster.v3.Cluster", "web");
    /// let status = client.status(true);
    /// assert_eq!(status.generic_xds_configs[0].name, "web");
    /// assert_eq!(status.generic_xds_configs[0].client_status(), ClientResourceStatus::Requested);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn status(&self, contents: bool) -> ClientConfig {
        self.status_with(|_| contents)
    }

    fn status_with(&self, shows: impl Fn(&TypeUrl) -> bool) -> ClientConfig {
        let mut configs = Vec::new();
        for scope in self.0.shared.federation.scopes() {
            let all = names(&scope).into_iter();
            configs.extend(all.map(|((type_url, name), changed_at)| {
                config(&type_url, &name, scope.shown(&type_url, &name), changed_at, shows(&type_url))
            }));
        }
        let Shared { encoded_node, client_scope, .. } = &*self.0.shared;
        ClientConfig { node: encoded_node.clone(), client_scope: client_scope.clone(), generic_xds_configs: configs }
    }
}

/// A client is one client of those that a program tells of. Secrets are shown without what is in them.
#[cfg(feature = "csds")]
impl xds_transport::grpc::server::ClientStatus for Client {
    fn visit_clients(&self, contents: bool, visitor: &mut dyn FnMut(ClientConfig) -> std::ops::ControlFlow<()>) {
        // It is the last, whatever the visitor has room for.
        let _ = visitor(self.status_with(|type_url| contents && !xds_transport::is_secret(type_url.as_str())));
    }
}

/// What a scope is asked for, and what it has, with the time when that changed.
fn names(scope: &Scope) -> BTreeMap<(TypeUrl, ResourceName), Option<Instant>> {
    let mut names = BTreeMap::new();
    for (type_url, interest) in scope.subscriptions() {
        if let Interest::Name(name) = interest
            && !name.is_glob()
        {
            names.insert((type_url, name), None);
        }
    }
    let failing = scope.failing().into_iter().filter(|(_, name)| !name.is_glob());
    names.extend(failing.map(|name| (name, None)));
    let of = |stored: xdstp_cache::Stored<'_, _>| {
        ((stored.type_url.clone(), stored.name.clone()), stored.resource.and(stored.changed_at))
    };
    scope.visit_stored(of, |(name, changed_at)| _ = names.insert(name, changed_at));
    names
}

fn config(
    type_url: &TypeUrl,
    name: &ResourceName,
    shown: Shown,
    changed_at: Option<Instant>,
    contents: bool,
) -> GenericXdsConfig {
    let status = match shown.status {
        ResourceStatus::Requested => ClientResourceStatus::Requested,
        ResourceStatus::DoesNotExist => ClientResourceStatus::DoesNotExist,
        ResourceStatus::Acked => ClientResourceStatus::Acked,
        ResourceStatus::Nacked => ClientResourceStatus::Nacked,
        ResourceStatus::ReceivedError => ClientResourceStatus::ReceivedError,
        ResourceStatus::Timeout => ClientResourceStatus::Timeout,
    };
    let error_state = shown.error.map(|error| UpdateFailureState {
        version_info: match &error.cause {
            Cause::Refused(version) => version.to_string(),
            _ => String::new(),
        },
        details: error.message.to_string(),
        last_update_attempt: shown.failed_at.map(timestamp),
        ..UpdateFailureState::default()
    });
    let (version_info, xds_config) = match shown.resource {
        Some(resource) if contents => (resource.version.to_string(), resource.value.any().clone()),
        Some(resource) => (resource.version.to_string(), Bytes::new()),
        None => (String::new(), Bytes::new()),
    };
    GenericXdsConfig {
        type_url: type_url.to_string(),
        name: name.to_string(),
        version_info,
        xds_config,
        last_updated: changed_at.map(timestamp),
        client_status: status.into(),
        error_state,
        ..GenericXdsConfig::default()
    }
}

/// By the wall clock, as that is now.
fn timestamp(at: Instant) -> Timestamp {
    let wall = SystemTime::now().checked_sub(at.elapsed()).and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let since: Duration = wall.unwrap_or_default();
    // Less than 10^9.
    let nanos = i32::try_from(since.subsec_nanos()).unwrap_or_default();
    Timestamp { seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos }
}
