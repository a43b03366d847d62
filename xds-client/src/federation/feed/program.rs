//! What only watches of a program are told.

use std::sync::Arc;

use xds_transport::Rejected;
use xdstp_cache::{Cause, ResourceError, TypeUrl};
use xdstp_uri::ResourceName;

use super::Feed;
use crate::federation::lock::lock;
use crate::federation::places::Places;
use crate::federation::terms::Trouble;

impl Feed {
    /// What could not even be read is refused like anything else, where it has a name.
    pub(super) fn tell_rejected(&self, type_url: &TypeUrl, rejected: &[Rejected], places: &mut Places<'_>) {
        for Rejected { name, reason, .. } in rejected {
            let Ok(name) = ResourceName::parse(name) else { continue };
            for place in places.of_name(type_url, &name, &self.elsewhere) {
                if places.scope(place).is_some_and(|scope| scope.is_watched()) {
                    let error = ResourceError::new(ResourceError::INVALID_ARGUMENT, reason.as_str());
                    let error = error.found_by(Cause::Refused("".into()));
                    places.put(place, |part| part.errors.push((name.clone(), error)));
                }
            }
        }
    }

    /// Whether what is said of a name is for watches, which tell silence from absence.
    pub(super) fn is_watched(&self, type_url: &TypeUrl, name: &ResourceName, places: &mut Places<'_>) -> bool {
        let at = places.of_name(type_url, name, &self.elsewhere);
        at.into_iter().any(|place| places.scope(place).is_some_and(|scope| scope.is_watched()))
    }

    /// The stream ended, or there was none: that is nobody's business if it was answered (gRFC A57). Where there are other
    /// servers, scopes know when none is left.
    pub(super) fn tell_lost(&self, error: Option<&str>) {
        let trouble =
            error.map(|reason| Arc::new(Trouble { server: self.server.name.as_str().into(), reason: reason.into() }));
        lock(&self.state).trouble.clone_from(&trouble);
        let Some(trouble) = trouble else { return };
        let scopes = self.scopes.all().into_iter().filter(|(seat, _)| !seat.of_several);
        scopes.for_each(|(_, scope)| scope.tell_unreachable(&trouble));
    }

    /// The origin is there, which scopes may have heard to be otherwise from this stream; and those of several servers, if they
    /// are to hear it anyhow, from others.
    pub(super) fn tell_back(&self, others: bool) {
        let was_lost = lock(&self.state).trouble.take().is_some();
        let scopes = self.scopes.all().into_iter().filter(|(seat, _)| was_lost || others && seat.of_several);
        scopes.for_each(|(_, scope)| scope.tell_reachable());
    }
}
