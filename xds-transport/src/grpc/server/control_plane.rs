//! A control plane: resources of a program's own types, served to everybody alike.

use std::collections::HashSet;
use std::ops::ControlFlow;

use prost::{Message, Name};
use xdstp_cache::{Cache, Options, Variant};

use crate::grpc::server::change::{Change, PutError};
use crate::grpc::server::client::Client;
use crate::grpc::server::client_status::ClientStatus;
use crate::grpc::server::events::{Events, Sender};
use crate::grpc::server::net::{net_of, take};
use crate::grpc::server::service::Service;
use crate::grpc::server::shared::Shared;
use crate::server::Settings;
use crate::wire::client_status::ClientConfig;

/// Resources, and the streams that are served from them. What is put goes to all who ask for it. Cheap to clone: all clones
/// are the same control plane.
///
/// ```no_run
/// use xds_transport::grpc::server::ControlPlane;
/// # #[derive(Clone, PartialEq, prost::Message)]
/// # struct Cluster { #[prost(string, tag = "1")] name: String }
/// # impl prost::Name for Cluster { const NAME: &'static str = "Cluster"; const PACKAGE: &'static str = "envoy.config.cluster.v3"; }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let plane = ControlPlane::new();
/// plane.put("cart", &Cluster { name: "cart".into() })?;
///
/// let server = tonic::transport::Server::builder().add_routes(plane.service().into_routes());
/// tokio::spawn(server.serve("[::1]:18000".parse()?));
/// // Whenever it changes:
/// plane.remove::<Cluster>("cart")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ControlPlane {
    shared: Shared,
}

impl Default for ControlPlane {
    fn default() -> Self {
        Self::new()
    }
}

impl ControlPlane {
    /// Without resources, for Envoy's types and any others.
    pub fn new() -> Self {
        Self::with_settings(Settings::default())
    }

    /// With settings of one's own: rules of types, limits, what it calls itself.
    pub fn with_settings(settings: Settings) -> Self {
        Self { shared: Shared::new(Cache::new(Options::default()), settings) }
    }

    /// One that clients may come to before it has anything: they wait for its first change.
    pub(crate) fn unfilled(settings: Settings, events: Sender) -> Self {
        Self { shared: Shared::unfilled(settings, events) }
    }

    /// There is this resource from now on, whatever it was before, and for everybody: of variants that the name had none is left.
    /// Its version is that of its content.
    ///
    /// # Errors
    /// The name is none, or is not the name inside.
    pub fn put<M: Message + Name>(&self, name: &str, message: &M) -> Result<(), PutError> {
        self.change(|change| change.put(name, message))
    }

    /// There is no such resource any more.
    ///
    /// # Errors
    /// The name is none.
    pub fn remove<M: Name>(&self, name: &str) -> Result<(), PutError> {
        self.change(|change| change.remove::<M>(name))
    }

    /// Does several things as one: no stream sees a part of it. Where one of them cannot be done, none is; of what is said of one
    /// name, the later counts.
    ///
    /// ```
    /// # use xds_transport::grpc::server::ControlPlane;
    /// # #[derive(Clone, PartialEq, prost::Message)]
    /// # struct Cluster { #[prost(string, tag = "1")] name: String }
    /// # impl prost::Name for Cluster { const NAME: &'static str = "Cluster"; const PACKAGE: &'static str = "envoy.config.cluster.v3"; }
    /// # let plane = ControlPlane::new();
    /// plane.change(|change| {
    ///     change.put("cart", &Cluster { name: "cart".into() })?;
    ///     change.put("shop", &Cluster { name: "shop".into() })?;
    ///     change.remove::<Cluster>("basket")
    /// })?;
    /// # Ok::<(), xds_transport::grpc::server::PutError>(())
    /// ```
    ///
    /// # Errors
    /// What `describe` ends with.
    pub fn change<E>(&self, describe: impl FnOnce(&mut Change<'_>) -> Result<(), E>) -> Result<(), E> {
        let items = Change::described_by(&self.shared, false, describe)?;
        self.shared.edit(|edit| take(net_of(items), edit));
        Ok(())
    }

    /// Makes what is put all there is, as one change: what is not among it is gone, of whatever type. What is as it was is sent
    /// to nobody.
    ///
    /// ```
    /// # use xds_transport::grpc::server::ControlPlane;
    /// # #[derive(Clone, PartialEq, prost::Message)]
    /// # struct Cluster { #[prost(string, tag = "1")] name: String }
    /// # impl prost::Name for Cluster { const NAME: &'static str = "Cluster"; const PACKAGE: &'static str = "envoy.config.cluster.v3"; }
    /// # let plane = ControlPlane::new();
    /// # let clusters = vec![Cluster { name: "cart".into() }];
    /// plane.replace(|all| clusters.iter().try_for_each(|cluster| all.put(&cluster.name, cluster)))?;
    /// # Ok::<(), xds_transport::grpc::server::PutError>(())
    /// ```
    ///
    /// # Errors
    /// What `describe` ends with: nothing is changed then.
    pub fn replace<E>(&self, describe: impl FnOnce(&mut Change<'_>) -> Result<(), E>) -> Result<(), E> {
        let items = Change::described_by(&self.shared, true, describe)?;
        let change = net_of(items);
        let put = change.iter().flat_map(|((type_url, name), net)| {
            let put = net.variants.iter().filter(|(_, resource)| resource.is_some());
            put.map(move |(variant, _)| (type_url.clone(), name.clone(), variant.clone()))
        });
        let kept: HashSet<_> = put.collect();
        self.shared.edit(|edit| {
            let there = edit.cache.resources().filter(|stored| stored.resource.is_some());
            let variant = |variant: Option<&Variant>| variant.unwrap_or(Variant::plain()).clone();
            let there = there.map(|of| (of.type_url.clone(), of.name.clone(), variant(of.variant)));
            let gone: Vec<_> = there.filter(|stored| !kept.contains(stored)).collect();
            take(change, edit);
            edit.vary(gone.into_iter().map(|(of, name, variant)| (of, name, variant, None)));
        });
        Ok(())
    }

    /// A service of streams that are served from this.
    pub fn service(&self) -> Service<Shared> {
        self.shared.service()
    }

    /// The clients there are, each with what it has.
    ///
    /// ```
    /// # use xds_transport::grpc::server::ControlPlane;
    /// # let plane = ControlPlane::new();
    /// for client in plane.clients() {
    ///     let node = client.node().unwrap_or_default();
    ///     for held in client.held().into_iter().flatten() {
    ///         println!("{} {} {} {:?}", node.id, held.name, held.version, held.reception);
    ///     }
    /// }
    /// ```
    pub fn clients(&self) -> Vec<Client> {
        self.shared.clients()
    }

    /// What clients do from now on, as it happens: who comes and leaves, what is accepted and what is rejected, and why.
    ///
    /// ```no_run
    /// use xds_transport::grpc::server::{ControlPlane, What};
    ///
    /// # async fn run(plane: ControlPlane) {
    /// let mut events = plane.events();
    /// while let Some(event) = events.next().await {
    ///     // Who looks too late misses some, and is told how many.
    ///     let Ok(event) = event else { continue };
    ///     if let What::Rejected { type_url, message, .. } = &event.what {
    ///         eprintln!("{:?} rejects a {type_url}: {message}", event.client.node());
    ///     }
    /// }
    /// # }
    /// ```
    pub fn events(&self) -> Events {
        self.shared.events()
    }

    /// The cache that it is made of, for what is not done here.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }
}

impl ClientStatus for ControlPlane {
    fn visit_clients(&self, contents: bool, visitor: &mut dyn FnMut(ClientConfig) -> ControlFlow<()>) {
        self.shared.visit_clients(contents, visitor);
    }
}
