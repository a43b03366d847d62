//! What a client is for its watches.

use std::sync::Arc;

use bytes::Bytes;
use xds_transport::Frame;
use xdstp_cache::{Interest, Resource, ResourceError, TypeUrl};
use xdstp_uri::ResourceName;

use super::directory::Directory;
use super::reporters::Reporters;
use super::sweeper::Sweeper;
use crate::error::Error;
use crate::federation::{Federation, Listed, Scope, Trouble, Validators};

pub(crate) struct Inner {
    pub(super) federation: Arc<Federation>,
    pub(super) directory: Directory,
    pub(super) validators: Arc<Validators>,
    /// Who we say that we are: its id.
    pub(super) node: Arc<str>,
    /// The same, as its servers are told it.
    pub(super) encoded_node: Bytes,
    pub(super) sweeper: Option<Sweeper>,
    #[cfg_attr(not(feature = "lrs"), expect(dead_code, reason = "there are none"))]
    pub(crate) reporters: Reporters,
}

impl Inner {
    /// Where a name or a collection is found.
    pub(crate) fn scope_of(&self, interest: &Interest) -> Result<Arc<Scope>, Error> {
        let name = match interest {
            Interest::Name(name) => Some(name),
            Interest::Wildcard => None,
        };
        let origin = self.directory.of(name)?;
        let scope = self.federation.watched_scope(name.and_then(ResourceName::authority), origin);
        scope.map_err(|error| Error::BadName { reason: error.to_string().into() })
    }

    /// Lists of a type are read from now on before they are acknowledged.
    pub(crate) fn read_lists(&self, lists: &TypeUrl, members: &TypeUrl) {
        self.validators.insert_lists(lists, members);
    }

    /// The members of a list of a type.
    pub(crate) fn listed(&self, members: &TypeUrl, list: &Resource<Frame>) -> Result<Arc<Listed>, Error> {
        let made = list.value.decoded().and_then(|made| Arc::clone(made).downcast().ok());
        // It came before anybody had a use for it, or is something else to somebody else.
        let read = || self.validators.read_list(members, &list.value).map(Arc::new);
        made.map_or_else(read, Ok)
            .map_err(|reason| Error::Invalid { version: list.version.clone(), reason: reason.as_str().into() })
    }

    /// Somebody was the last to watch something of a scope.
    pub(crate) fn left(&self) {
        self.sweeper.iter().for_each(Sweeper::left);
    }

    pub(crate) fn error(&self, scope: &Scope, error: &ResourceError) -> Error {
        let terms = scope.terms();
        Error::of(error, terms.patience, terms.rules.timer_is_transient)
    }

    pub(crate) fn unreachable(&self, Trouble { server, reason }: &Trouble) -> Error {
        Error::Unreachable { server: server.clone(), node: self.node.clone(), reason: reason.clone() }
    }
}
