//! The door by which resources come into a cache: what clients would refuse does not get in.

use thiserror::Error;
use xdstp_cache::{Edit, Outcome, Resource, TypeUrl};
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
/// A cache knows nothing of what it holds, and an edit's own [`put`](Edit::put) takes what it is given: a control plane uses
/// this.
pub trait Put {
    /// Stores a resource with its aliases, if what is inside fits: its type, and its name where `rules` describe the
    /// type. See [`Edit::put_with_aliases`].
    ///
    /// # Errors
    /// When it does not fit: nothing is changed then.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xds_transport::{Frame, Misfit, Put, TypeRules};
    /// use xdstp_cache::{Cache, Options};
    ///
    /// let rules = TypeRules::envoy();
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::new(Options::default());
    /// // A Cluster's field 1 is its name.
    /// let cart = Frame::of_message(&clusters, b"\x0a\x04cart").into_resource(None);
    ///
    /// let mut edit = cache.edit(Instant::now());
    /// assert!(edit.put_checked(&rules, &clusters, &"cart".parse()?, cart.clone()).is_ok());
    /// let error = edit.put_checked(&rules, &clusters, &"shop".parse()?, cart).unwrap_err();
    /// assert!(matches!(error, Misfit::WrongName { inside, .. } if inside == "cart"));
    /// assert!(edit.finish().is_empty(), "nobody asked for anything");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    fn put_checked(
        &mut self,
        rules: &TypeRules,
        type_url: &TypeUrl,
        name: &ResourceName,
        resource: Resource<Frame>,
    ) -> Result<Outcome, Misfit>;
}

impl Put for Edit<'_, Frame> {
    fn put_checked(
        &mut self,
        rules: &TypeRules,
        type_url: &TypeUrl,
        name: &ResourceName,
        resource: Resource<Frame>,
    ) -> Result<Outcome, Misfit> {
        resource.value.fits(rules, type_url, name)?;
        Ok(put_fitting(self, type_url, name, resource))
    }
}

/// Stores what was found to fit.
pub(crate) fn put_fitting(
    edit: &mut Edit<'_, Frame>,
    type_url: &TypeUrl,
    name: &ResourceName,
    resource: Resource<Frame>,
) -> Outcome {
    let aliases: Vec<_> = resource.value.aliases().collect();
    let (ttl, expires) = (resource.value.ttl(), resource.value.expires());
    let outcome = edit.put_with_aliases(type_url, name, aliases, resource);
    // The cache keeps the same content as it is. A time that does not run out by itself is told by sending it again.
    if matches!(outcome, Outcome::Unchanged | Outcome::Recovered)
        && let Some(held) = edit.value_mut(type_url, name)
    {
        let changed = held.ttl() != ttl;
        held.refresh(ttl, expires);
        if changed && outcome == Outcome::Unchanged {
            edit.touch(type_url, name);
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
