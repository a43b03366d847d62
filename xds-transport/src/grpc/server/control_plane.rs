//! A control plane: resources of a program's own types, served to everybody alike.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use prost::{Message, Name};
use thiserror::Error;
use xdstp_cache::{Cache, Options, Resource, SubscriberId, TypeUrl};
use xdstp_uri::{ParseError, ResourceName};

use crate::frame::Frame;
use crate::grpc::now;
use crate::grpc::server::client::Client;
use crate::grpc::server::events::{Events, Sender};
use crate::grpc::server::served::Served;
use crate::grpc::server::service::Service;
use crate::grpc::server::shared::Shared;
use crate::put::Misfit;
use crate::server::Settings;
use crate::types::TypeRules;

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

/// A resource is not taken. Nothing is changed then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PutError {
    /// Its name is none.
    #[error("the name {name:?}")]
    Name {
        /// As it was given.
        name: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// It does not fit its name.
    #[error(transparent)]
    Misfit(#[from] Misfit),
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

    /// There is this resource from now on, whatever it was before. Its version is that of its content.
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

    /// Does several things as one: no stream sees a part of it. Where one of them cannot be done, none is.
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
        let steps = Change::described_by(self.shared.rules(), describe)?;
        self.shared.edit(|served, woken| self.take(steps, served, woken));
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
        let steps = Change::described_by(self.shared.rules(), describe)?;
        let put = steps.iter().filter(|step| step.resource.is_some());
        let kept: HashSet<_> = put.map(|step| (step.type_url.clone(), step.name.clone())).collect();
        self.shared.edit(|served, woken| {
            let there = served.cache.resources().filter(|stored| stored.resource.is_some());
            let there = there.map(|stored| (stored.type_url.clone(), stored.name.clone()));
            let gone: Vec<_> = there.filter(|stored| !kept.contains(stored)).collect();
            self.take(steps, served, woken);
            gone.iter().for_each(|(type_url, name)| served.remove(type_url, name, woken));
        });
        Ok(())
    }

    fn take(&self, steps: Vec<Step>, served: &mut Served, woken: &mut Vec<SubscriberId>) {
        for Step { type_url, name, resource } in steps {
            match resource {
                // It was found to fit.
                Some(resource) => _ = served.put(self.shared.rules(), &type_url, &name, resource, woken),
                None => served.remove(&type_url, &name, woken),
            }
        }
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

/// What belongs together: see [`ControlPlane::change`].
#[derive(Debug)]
pub struct Change<'a> {
    rules: &'a TypeRules,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    type_url: TypeUrl,
    name: ResourceName,
    /// None where it is gone.
    resource: Option<Resource<Frame>>,
}

impl<'a> Change<'a> {
    fn described_by<E>(
        rules: &'a TypeRules,
        describe: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<Vec<Step>, E> {
        let mut change = Self { rules, steps: Vec::new() };
        describe(&mut change)?;
        Ok(change.steps)
    }

    /// See [`ControlPlane::put`].
    ///
    /// # Errors
    /// As there.
    pub fn put<M: Message + Name>(&mut self, name: &str, message: &M) -> Result<(), PutError> {
        self.put_frame::<M>(name, Frame::of_message(&type_of::<M>(), &message.encode_to_vec()))
    }

    /// The same, for clients to forget when they hear nothing of it for so long (rule 110): as long as this control plane is
    /// there, it tells them that the resource lives on.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_with_ttl<M: Message + Name>(&mut self, name: &str, message: &M, ttl: Duration) -> Result<(), PutError> {
        let frame = Frame::of_message(&type_of::<M>(), &message.encode_to_vec());
        self.put_frame::<M>(name, frame.with_wrapper(Bytes::new(), Some(ttl), false))
    }

    /// The same, for so long: it is gone then unless it is put again, which need not change it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use xds_transport::grpc::server::ControlPlane;
    /// # #[derive(Clone, PartialEq, prost::Message)]
    /// # struct Cluster { #[prost(string, tag = "1")] name: String }
    /// # impl prost::Name for Cluster { const NAME: &'static str = "Cluster"; const PACKAGE: &'static str = "envoy.config.cluster.v3"; }
    /// # let plane = ControlPlane::new();
    /// // Whoever registers it says so every ten seconds.
    /// plane.change(|change| change.put_for("cart", &Cluster { name: "cart".into() }, Duration::from_secs(30)))?;
    /// # Ok::<(), xds_transport::grpc::server::PutError>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_for<M: Message + Name>(&mut self, name: &str, message: &M, time: Duration) -> Result<(), PutError> {
        let frame = Frame::of_message(&type_of::<M>(), &message.encode_to_vec());
        let frame = frame.with_wrapper(Bytes::new(), Some(time), false);
        self.put_frame::<M>(name, frame.until(now().checked_add(time)))
    }

    fn put_frame<M: Name>(&mut self, name: &str, frame: Frame) -> Result<(), PutError> {
        let (type_url, name) = (type_of::<M>(), parsed(name)?);
        frame.fits(self.rules, &type_url, &name)?;
        self.steps.push(Step { type_url, name, resource: Some(frame.into_resource(None)) });
        Ok(())
    }

    /// See [`ControlPlane::remove`].
    ///
    /// # Errors
    /// As there.
    pub fn remove<M: Name>(&mut self, name: &str) -> Result<(), PutError> {
        self.steps.push(Step { type_url: type_of::<M>(), name: parsed(name)?, resource: None });
        Ok(())
    }
}

fn type_of<M: Name>() -> TypeUrl {
    format!("type.googleapis.com/{}", M::full_name()).as_str().into()
}

fn parsed(name: &str) -> Result<ResourceName, PutError> {
    name.parse().map_err(|source| PutError::Name { name: name.to_owned(), source })
}
