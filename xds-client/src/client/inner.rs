//! What a client is for its watches.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use xds_transport::wire::parameters::{Locator as Selecting, LocatorError};
use xds_transport::{Dialect, Frame};
use xdstp_cache::{Interest, Resource, ResourceError, Selector, TypeUrl};
use xdstp_uri::{Locator, ResourceName, Scheme};

use super::beside::Beside;
use super::directory::{Directory, Place};
#[cfg(feature = "state")]
use super::kept::Kept;
use super::origins::Known;
use super::reporters::Reporters;
use super::sweeper::Sweeper;
use crate::error::Error;
use crate::federation::{Federation, Listed, Origin, Scope, Trouble, Trust, Validators};

/// What one handle of a client is.
pub(crate) struct Inner {
    pub(super) shared: Arc<Shared>,
    /// By what it selects (TP2), whatever is said elsewhere.
    pub(super) own: Selector,
    /// What else is said of what it watches.
    pub(super) beside: Beside,
}

/// What all handles of a client have in common.
pub(crate) struct Shared {
    pub(super) federation: Arc<Federation>,
    pub(super) directory: Directory,
    /// The servers of each origin.
    pub(super) servers: Vec<Vec<Known>>,
    pub(super) validators: Arc<Validators>,
    /// The origins of documents.
    pub(super) documents: BTreeMap<Scheme, usize>,
    /// Who we say that we are: its id.
    pub(super) node: Arc<str>,
    /// The same, as its servers are told it.
    pub(super) encoded_node: Bytes,
    /// What it is for, as CSDS tells it.
    pub(super) client_scope: String,
    pub(super) sweeper: Option<Sweeper>,
    #[cfg(feature = "state")]
    pub(super) kept: Option<Kept>,
    #[cfg_attr(not(feature = "lrs"), expect(dead_code, reason = "there are none"))]
    pub(super) reporters: Reporters,
}

impl Inner {
    /// Who reports load to its servers.
    #[cfg(feature = "lrs")]
    pub(crate) fn reporters(&self) -> &Reporters {
        &self.shared.reporters
    }

    /// Where a name or a collection is asked for.
    pub(crate) fn place_of(&self, interest: &Interest) -> Result<Place, Error> {
        let authority = name_of(interest).and_then(ResourceName::authority);
        match authority.and_then(|authority| self.beside.place(&self.shared, authority)) {
            Some(place) => Ok(place),
            None => self.shared.directory.of(name_of(interest)),
        }
    }

    /// Whether two places have the same servers.
    pub(crate) fn has_same_servers(&self, one: &Place, other: &Place) -> bool {
        self.shared.directory.has_same_servers(one, other)
    }

    /// Whether names are asked for with attributes.
    pub(crate) fn has_attributes(&self) -> bool {
        self.beside.has_attributes()
    }

    /// What a locator is asked for as, of a name with the attributes that it is to have.
    pub(crate) fn attributed(&self, to: &Locator<'_>) -> Result<Locator<'static>, Error> {
        if !self.has_attributes() || to.scheme() != Scheme::Xdstp {
            return Ok(to.clone().into_owned());
        }
        self.beside.attributed(to).map_err(|error| Error::BadName { reason: error.to_string().into() })
    }

    /// By what is selected there, where a server says this.
    pub(crate) fn selector(&self, place: &Place, said: Option<&Selector>) -> Result<Option<Arc<Selector>>, Error> {
        let fixed = place.parameters.as_ref().map(|parameters| &parameters.selector);
        let mut selector = self.own.clone();
        for other in said.into_iter().chain(fixed) {
            selector = selector.over(other).map_err(|error| Error::BadName { reason: error.to_string().into() })?;
        }
        Ok((!selector.is_default()).then(|| Arc::new(selector)))
    }

    /// Where a name or a collection of a place is found, for who selects by this, if that is asked apart.
    pub(crate) fn scope_of(
        &self,
        interest: &Interest,
        &Place { origin, is_adjacent, .. }: &Place,
        selector: Option<&Arc<Selector>>,
    ) -> Result<Arc<Scope>, Error> {
        let servers = self.shared.servers.get(origin).map(Vec::as_slice).unwrap_or_default();
        if let Some(selector @ Selector::Constraints(_)) = selector.map(|selector| &**selector) {
            servers.iter().try_for_each(|server| self.says(server, selector))?;
        }
        let selector = match selector {
            // One that the program brought.
            Some(selector) if servers.is_empty() && !self.is_asked_apart(origin, selector)? => None,
            selector => selector,
        };
        let authority = name_of(interest).and_then(ResourceName::authority);
        let scope = self.shared.federation.watched_scope(authority, (origin, is_adjacent), selector);
        scope.map_err(|error| Error::BadName { reason: error.to_string().into() })
    }

    /// Whether there is somebody who reads the documents at locators of a scheme.
    pub(crate) fn reads(&self, scheme: Scheme) -> bool {
        self.shared.documents.contains_key(&scheme)
    }

    /// The origin of the document at a locator.
    pub(crate) fn documents_at(&self, to: &Locator<'_>) -> Result<usize, Error> {
        self.shared.documents.get(&to.scheme()).copied().ok_or_else(|| {
            let reason = format!(
                "only xdstp: is asked for, and the client was given nothing that reads {}:",
                to.scheme().as_str()
            );
            Error::Unresolved { locator: to.to_string().into(), reason: reason.into() }
        })
    }

    /// Where what a document has of a type is found.
    pub(crate) fn document_scope(&self, type_url: &TypeUrl, to: &Locator<'_>) -> Result<Arc<Scope>, Error> {
        let scope = self.shared.federation.document_scope(type_url, to, self.documents_at(to)?);
        scope.map_err(|error| Error::BadName { reason: error.to_string().into() })
    }

    /// Whether an origin that the program brought is, for who selects by this.
    fn is_asked_apart(&self, origin: usize, selector: &Selector) -> Result<bool, Error> {
        let federation = &self.shared.federation;
        federation.selects(origin, selector).map_err(|reason| {
            let server = federation.origins().get(origin).map(Origin::kind).unwrap_or_default();
            Error::Unusable { server: server.into(), node: self.shared.node.clone(), reason: reason.into() }
        })
    }

    /// Whether a server can be told by what is selected.
    fn says(&self, server: &Known, selector: &Selector) -> Result<(), Error> {
        let dialect = if server.features.draft_dynamic_parameters { Dialect::Draft } else { Dialect::Final };
        let encoded = Selecting::new("", selector.clone()).encode(dialect);
        encoded.map(drop).map_err(|error| {
            let reason = match error {
                LocatorError::Constraints { error, .. } => error.to_string(),
                error => error.to_string(),
            };
            let reason = format!("it cannot be asked for what is for {selector}: {reason}");
            Error::Unusable {
                server: server.name.as_str().into(),
                node: self.shared.node.clone(),
                reason: reason.into(),
            }
        })
    }

    /// Lists of a type are read from now on before they are acknowledged.
    pub(crate) fn read_lists(&self, lists: &TypeUrl, members: &TypeUrl) {
        if self.shared.validators.insert_lists(lists, members) {
            self.shared.federation.reread(lists);
        }
    }

    /// The members of a list of a type.
    pub(crate) fn listed(&self, members: &TypeUrl, list: &Resource<Frame>) -> Result<Arc<Listed>, Error> {
        let made = list.value.decoded().and_then(|made| Arc::clone(made).downcast().ok());
        // It came before anybody had a use for it, or is something else to somebody else.
        let read = || self.shared.validators.read_list(members, &list.value, Trust::default()).map(Arc::new);
        made.map_or_else(read, Ok)
            .map_err(|reason| Error::Invalid { version: list.version.clone(), reason: reason.as_str().into() })
    }

    /// Somebody was the last to watch something of a scope.
    pub(crate) fn left(&self) {
        self.shared.sweeper.iter().for_each(Sweeper::left);
    }

    pub(crate) fn error(&self, scope: &Scope, error: &ResourceError) -> Error {
        let terms = scope.terms();
        Error::of(error, terms.patience, terms.rules.timer_is_transient)
    }

    pub(crate) fn unreachable(&self, Trouble { server, reason }: &Trouble) -> Error {
        Error::Unreachable { server: server.clone(), node: self.shared.node.clone(), reason: reason.clone() }
    }
}

fn name_of(interest: &Interest) -> Option<&ResourceName> {
    match interest {
        Interest::Name(name) => Some(name),
        Interest::Wildcard => None,
    }
}
