//! A change of a control plane: what is put and removed as one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use bytes::Bytes;
use prost::{Message, Name};
use thiserror::Error;
use xds_matcher::Overlap;
use xdstp_cache::{Stored, TypeUrl, Variant};
use xdstp_uri::{ParseError, ResourceName};

use crate::frame::Frame;
use crate::grpc::now;
use crate::grpc::server::net::{Item, Key, Net, net_of};
use crate::grpc::server::shared::Shared;
use crate::put::Misfit;
#[cfg(doc)]
use crate::types::TypeRules;

/// How many resources are looked at under one hold of the lock.
const PART: usize = 4096;

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
    /// Its name is that of a collection.
    #[error("{0} is the name of a collection, and of no resource")]
    Collection(ResourceName),
    /// A resource names another that is not there.
    #[error("there is no {name} ({}), which {by} ({}) names", short(type_url), short(of))]
    Dangling {
        /// What is named.
        name: String,
        /// Its type.
        type_url: TypeUrl,
        /// What names it.
        by: ResourceName,
        /// The type of that.
        of: TypeUrl,
    },
    /// Two variants of a name are for the same clients.
    #[error("{variant}, of {name}, is for who sends {parameters}, and so is {other}")]
    Overlap {
        /// The name.
        name: ResourceName,
        /// What was to be put.
        variant: Box<Variant>,
        /// What is there.
        other: Box<Variant>,
        /// Who would get either.
        parameters: String,
    },
    /// It does not fit its name.
    #[error(transparent)]
    Misfit(#[from] Misfit),
}

/// What belongs together: see [`ControlPlane::change`](super::ControlPlane::change).
#[derive(Debug)]
pub struct Change<'a> {
    shared: &'a Shared,
    /// Whether it is all there will be.
    whole: bool,
    items: Vec<Item>,
}

/// Each name that has something, and its variants.
type After = HashMap<Key, BTreeMap<Variant, Frame>>;

impl<'a> Change<'a> {
    pub(crate) fn described_by<E>(
        shared: &'a Shared,
        whole: bool,
        describe: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<Vec<Item>, E> {
        let mut change = Self { shared, whole, items: Vec::new() };
        describe(&mut change)?;
        Ok(change.items)
    }

    /// See [`ControlPlane::put`](super::ControlPlane::put).
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
        let item = self.item::<M>(name, frame)?;
        self.items.push(item);
        Ok(())
    }

    fn item<M: Name>(&self, name: &str, frame: Frame) -> Result<Item, PutError> {
        let (type_url, name) = (type_of::<M>(), parsed(name)?);
        if name.is_glob() || name.as_str() == "*" {
            return Err(PutError::Collection(name));
        }
        frame.fits(self.shared.rules(), &type_url, &name)?;
        let frame = if self.shared.rules().of(&type_url).never_shared { frame.private() } else { frame };
        Ok(Item { type_url, name, variant: None, resource: Some(frame.into_resource(None)) })
    }

    /// There is this variant of a resource from now on (TP2), beside the others that the name has: who sends dynamic parameters
    /// that it is for gets it. Clients that send none get what is for them; Envoy sends none.
    ///
    /// ```
    /// # use xds_transport::grpc::server::ControlPlane;
    /// # #[derive(Clone, PartialEq, prost::Message)]
    /// # struct Cluster { #[prost(string, tag = "1")] name: String, #[prost(uint32, tag = "4")] timeout: u32 }
    /// # impl prost::Name for Cluster { const NAME: &'static str = "Cluster"; const PACKAGE: &'static str = "envoy.config.cluster.v3"; }
    /// # let plane = ControlPlane::new();
    /// # let [stable, canary] = [5, 10].map(|timeout| Cluster { name: "cart".into(), timeout });
    /// use xdstp_cache::Variant;
    ///
    /// let [others, canaries] = ["not env=canary", "env=canary"].map(|text| Variant::Constraints(text.parse().unwrap()));
    /// plane.change(|change| {
    ///     change.put_variant("cart", &others, &stable)?;
    ///     change.put_variant("cart", &canaries, &canary)
    /// })?;
    /// let error = plane.change(|change| change.put_variant("cart", &Variant::Constraints("exists(env)".parse().unwrap()), &stable));
    /// assert!(error.unwrap_err().to_string().starts_with("exists(env), of cart, is for who sends "));
    /// # Ok::<(), xds_transport::grpc::server::PutError>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Self::put); or another variant is for some of the same clients (rule 119). What it is to take the place of is
    /// [removed](Self::remove_variant) first, in the same change.
    pub fn put_variant<M: Message + Name>(
        &mut self,
        name: &str,
        variant: &Variant,
        message: &M,
    ) -> Result<(), PutError> {
        let mut item = self.item::<M>(name, Frame::of_message(&type_of::<M>(), &message.encode_to_vec()))?;
        self.check_overlap(&item, variant)?;
        item.variant = Some(variant.clone());
        self.items.push(item);
        Ok(())
    }

    /// There is no such variant any more; with the last one the name is gone.
    ///
    /// # Errors
    /// The name is none.
    pub fn remove_variant<M: Name>(&mut self, name: &str, variant: &Variant) -> Result<(), PutError> {
        let (type_url, name) = (type_of::<M>(), parsed(name)?);
        self.items.push(Item { type_url, name, variant: Some(variant.clone()), resource: None });
        Ok(())
    }

    /// Of the draft, which of several counts is for it to say.
    fn check_overlap(&self, item: &Item, variant: &Variant) -> Result<(), PutError> {
        let Variant::Constraints(constraint) = variant else { return Ok(()) };
        for other in self.variants_of(&item.type_url, &item.name) {
            let Variant::Constraints(others) = &other else { continue };
            if let (true, Overlap::Overlapping(parameters)) = (other != *variant, constraint.overlap(others)) {
                let (name, parameters) = (item.name.clone(), parameters.to_string());
                let (variant, other) = (Box::new(variant.clone()), Box::new(other));
                return Err(PutError::Overlap { name, variant, other, parameters });
            }
        }
        Ok(())
    }

    /// Those that there are after what was said so far.
    fn variants_of(&self, type_url: &TypeUrl, name: &ResourceName) -> BTreeSet<Variant> {
        let mut variants = BTreeSet::new();
        if !self.whole {
            let served = self.shared.lock();
            variants.extend(served.cache.variants(type_url, name).map(|(variant, _)| variant.clone()));
        }
        let of_name = self.items.iter().filter(|item| item.type_url == *type_url && item.name == *name);
        for (_, net) in net_of(of_name.cloned()) {
            if net.anew {
                variants.clear();
            }
            for (variant, resource) in net.variants {
                match resource {
                    Some(_) => _ = variants.insert(variant),
                    None => _ = variants.remove(&variant),
                }
            }
        }
        variants
    }

    /// See [`ControlPlane::remove`](super::ControlPlane::remove).
    ///
    /// # Errors
    /// As there.
    pub fn remove<M: Name>(&mut self, name: &str) -> Result<(), PutError> {
        self.items.push(Item { type_url: type_of::<M>(), name: parsed(name)?, variant: None, resource: None });
        Ok(())
    }

    /// Fails if, after this change, a resource names another that is not there, as the [rules](TypeRules::references_of) of its type
    /// tell: call it last. It looks at all there is, and holds as long as nobody else changes that meanwhile.
    ///
    /// ```
    /// # use xds_transport::grpc::server::{ControlPlane, PutError};
    /// # #[derive(Clone, PartialEq, prost::Message)]
    /// # struct Scope { #[prost(string, tag = "1")] name: String, #[prost(string, tag = "2")] route_configuration_name: String }
    /// # impl prost::Name for Scope { const NAME: &'static str = "ScopedRouteConfiguration"; const PACKAGE: &'static str = "envoy.config.route.v3"; }
    /// # let plane = ControlPlane::new();
    /// # let scope = Scope { name: "shop".into(), route_configuration_name: "shop-routes".into() };
    /// let error = plane.change(|change| {
    ///     change.put("shop", &scope)?;
    ///     change.check()
    /// });
    /// let words = "there is no shop-routes (envoy.config.route.v3.RouteConfiguration), \
    ///     which shop (envoy.config.route.v3.ScopedRouteConfiguration) names";
    /// assert_eq!(error.unwrap_err().to_string(), words);
    /// ```
    ///
    /// # Errors
    /// The first of these, by type and name.
    pub fn check(&self) -> Result<(), PutError> {
        let after = self.after();
        let rules = self.shared.rules();
        let mut dangling = Vec::new();
        let all = after.iter().flat_map(|(key, variants)| variants.values().map(move |frame| (key, frame)));
        for ((type_url, name), frame) in all {
            for reference in rules.references_of(type_url) {
                reference.visit(frame.any(), &mut |text| {
                    let there =
                        ResourceName::parse(text).is_ok_and(|named| self.has(&after, &reference.type_url, named));
                    if !there {
                        dangling.push((type_url, name, &reference.type_url, text));
                    }
                });
            }
        }
        match dangling.iter().min() {
            None => Ok(()),
            Some((of, by, type_url, name)) => Err(PutError::Dangling {
                name: (*name).to_owned(),
                type_url: (*type_url).clone(),
                by: (*by).clone(),
                of: (*of).clone(),
            }),
        }
    }

    /// What there is after this change.
    fn after(&self) -> After {
        let mut after = After::new();
        let mut next = (!self.whole).then_some(0);
        while let Some(from) = next {
            // No stream waits for all of it.
            let served = self.shared.lock();
            let (part, rest) = served.cache.resources_from(from, PART);
            for Stored { type_url, name, variant, resource, .. } in part {
                let Some(resource) = resource else { continue };
                let variants = after.entry((type_url.clone(), name.clone())).or_default();
                variants.insert(variant.unwrap_or(Variant::plain()).clone(), resource.value.clone());
            }
            next = rest;
        }
        for (key, Net { anew, variants }) in net_of(self.items.iter().cloned()) {
            let mut there = after.remove(&key).filter(|_| !anew).unwrap_or_default();
            for (variant, resource) in variants {
                match resource {
                    Some(resource) => _ = there.insert(variant, resource.value),
                    None => _ = there.remove(&variant),
                }
            }
            if !there.is_empty() {
                after.insert(key, there);
            }
        }
        after
    }

    /// Whether a name is there, or stands for what is.
    fn has(&self, after: &After, type_url: &TypeUrl, name: ResourceName) -> bool {
        let key = (type_url.clone(), name);
        if after.contains_key(&key) {
            return true;
        }
        let canonical = self.shared.lock().cache.canonical(type_url, &key.1).cloned();
        canonical.is_some_and(|name| after.contains_key(&(type_url.clone(), name)))
    }
}

fn type_of<M: Name>() -> TypeUrl {
    format!("type.googleapis.com/{}", M::full_name()).as_str().into()
}

fn parsed(name: &str) -> Result<ResourceName, PutError> {
    name.parse().map_err(|source| PutError::Name { name: name.to_owned(), source })
}

/// Without what all of them begin with.
fn short(type_url: &TypeUrl) -> &str {
    type_url.as_str().rsplit('/').next().unwrap_or_default()
}
