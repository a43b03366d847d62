//! The door by which resources come into a cache: what clients would refuse does not get in.

use std::time::Instant;

use thiserror::Error;
use xdstp_cache::{Cache, Outcome, Resource, SubscriberId, TypeUrl};
use xdstp_uri::ResourceName;

use crate::frame::{Frame, WrongType};
use crate::types::TypeRules;
use crate::wire::walk;

/// A resource does not fit the type and the name it comes under: clients would refuse the whole response it is in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Misfit {
    /// It is of another type (rule 81).
    #[error(transparent)]
    WrongType(#[from] WrongType),
    /// It has another name inside, or none (rule 82): a client would add it by that, and never remove it.
    #[error("a resource that comes as {name} has the name {inside:?} inside")]
    WrongName {
        /// The name inside.
        inside: String,
        /// The name it comes under.
        name: ResourceName,
    },
}

/// Storing resources that are checked.
///
/// A cache knows nothing of what it holds, and its own [`upsert_raw`](Cache::upsert_raw) takes what it is given: a control
/// plane uses this.
pub trait Put {
    /// Stores a resource with its aliases, if what is inside fits: its type, and its name where `rules` describe the
    /// type. Who must be told is appended to `woken`; see [`Cache::upsert_raw`].
    ///
    /// # Errors
    /// When it does not fit: nothing is changed then.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xds_transport::{Frame, Misfit, Put, TypeRules};
    /// use xdstp_cache::{Cache, Options};
    ///
    /// let (rules, now) = (TypeRules::envoy(), Instant::now());
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::new(Options::default());
    /// // A Cluster's field 1 is its name.
    /// let cart = Frame::of_message(&clusters, b"\x0a\x04cart").into_resource(None);
    ///
    /// assert!(cache.put(&rules, &clusters, &"cart".parse()?, cart.clone(), now, &mut Vec::new()).is_ok());
    /// let error = cache.put(&rules, &clusters, &"shop".parse()?, cart, now, &mut Vec::new()).unwrap_err();
    /// assert!(matches!(error, Misfit::WrongName { inside, .. } if inside == "cart"));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    fn put(
        &mut self,
        rules: &TypeRules,
        type_url: &TypeUrl,
        name: &ResourceName,
        resource: Resource<Frame>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Result<Outcome, Misfit>;
}

impl Put for Cache<Frame> {
    fn put(
        &mut self,
        rules: &TypeRules,
        type_url: &TypeUrl,
        name: &ResourceName,
        resource: Resource<Frame>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Result<Outcome, Misfit> {
        resource.value.fits(rules, type_url, name)?;
        Ok(put_fitting(self, type_url, name, resource, now, woken))
    }
}

/// Stores what was found to fit.
pub(crate) fn put_fitting(
    cache: &mut Cache<Frame>,
    type_url: &TypeUrl,
    name: &ResourceName,
    resource: Resource<Frame>,
    now: Instant,
    woken: &mut Vec<SubscriberId>,
) -> Outcome {
    let aliases: Vec<_> = resource.value.aliases().collect();
    let (ttl, expires) = (resource.value.ttl(), resource.value.expires());
    let outcome = cache.upsert_raw_with_aliases(type_url, name, aliases, resource, now, woken);
    // The cache keeps the same content as it is. A time that does not run out by itself is told by sending it again.
    if matches!(outcome, Outcome::Unchanged | Outcome::Recovered)
        && let Some(held) = cache.value_mut(type_url, name)
    {
        let changed = held.ttl() != ttl;
        held.refresh(ttl, expires);
        if changed && outcome == Outcome::Unchanged {
            cache.touch(type_url, name, woken);
        }
    }
    outcome
}

impl Frame {
    /// Checks that what is inside is of a type, and has a name where `rules` describe the type: names are equal as they
    /// are parsed (rule 94).
    ///
    /// # Errors
    /// When it is not, or has not.
    pub fn fits(&self, rules: &TypeRules, type_url: &TypeUrl, name: &ResourceName) -> Result<(), Misfit> {
        let inside = walk::text_at(self.any(), &[1]).unwrap_or_default();
        if inside != type_url.as_str() {
            return Err(WrongType { inside: inside.to_owned(), expected: type_url.clone() }.into());
        }
        let Some(rule) = rules.described(type_url).filter(|rule| !rule.name_path.is_empty()) else { return Ok(()) };
        let inside = rule.name_of(self.any()).unwrap_or_default();
        let fits = inside == name.as_str() || ResourceName::parse(inside).is_ok_and(|inside| inside == *name);
        if fits { Ok(()) } else { Err(Misfit::WrongName { inside: inside.to_owned(), name: name.clone() }) }
    }
}
