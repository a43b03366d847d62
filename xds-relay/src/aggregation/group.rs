//! What requests of a node for a type share, name by name.

use std::fmt;
use std::sync::Arc;

use super::evaluate::{MAX_KEY, TOO_LONG};
use super::key::{Key, KeyError};
use super::model::Action;

/// What requests of a node for a type have in common with those that they may share with, whatever name each asks for.
///
/// Its [key](Self::key) stands for those of the requests: of two with equal ones, requests for the same name have equal keys, if they
/// [have one](Self::has). Whoever gets a resource by its name needs no other key for each name.
///
/// ```
/// # use xds_relay::aggregation::{Reading, Rules};
/// # use xds_transport::wire::Node;
/// let rules = Rules::parse("rules.yaml", r#"
///     fragments:
///     - rules:
///       - match: {any_match: true}
///         result: {resource_names_fragment: {action: {regex_action: {pattern: "^internal-.*$", replace: ""}}}}
/// "#, Reading::Documented)?;
/// let group = rules.group(&Node::default(), "type.googleapis.com/envoy.config.cluster.v3.Cluster")?;
/// assert_eq!(group.key().label(), "(name 0, ^internal-.*$ as )");
/// assert!(group.has(Some("web")).is_ok());
/// assert!(group.has(Some("internal-web")).is_err());
/// assert!(group.has(None).is_err(), "there is no name");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Group {
    pub(super) key: Key,
    /// What is made of which name, counted from 0.
    pub(super) names: Vec<(usize, Arc<Action>)>,
    /// Who asks for no name has no key in any case.
    pub(super) needs_name: bool,
}

impl Group {
    /// What stands for the keys of the requests.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Whether a request for this name alone has a key; or one without a name, which is one for all there is.
    ///
    /// # Errors
    /// It has none, for the reason that [`Rules::key`](super::Rules::key) has.
    pub fn has(&self, name: Option<&str>) -> Result<(), KeyError> {
        if self.needs_name && name.is_none() {
            return Err(KeyError::NoNames);
        }
        let mut length = self.key.length_without_names();
        for (index, action) in &self.names {
            let name = name.filter(|_| *index == 0).ok_or(KeyError::NoSuchName)?;
            length += action.apply(name)?.len();
        }
        if length > MAX_KEY { Err(TOO_LONG) } else { Ok(()) }
    }

    /// Whether each request has a key, for whatever name and without one.
    #[must_use]
    pub fn has_all(&self) -> bool {
        !self.needs_name && self.names.is_empty()
    }

    /// Whether each request for one name has a key, but for names that are empty, or longer than anybody needs.
    ///
    /// # Errors
    /// Why there may be one that has none.
    pub fn has_all_names(&self) -> Result<(), KeyError> {
        let any = |(index, action): &(usize, Arc<Action>)| action.made_of_any_name(*index);
        let most: usize = self.names.iter().map(any).sum::<Result<_, _>>()?;
        if self.key.length_without_names() + most > MAX_KEY { Err(TOO_LONG) } else { Ok(()) }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group({})", self.key)
    }
}
