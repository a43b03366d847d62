//! What is gone, and stays in full states until that may be told (rule 122).

use std::collections::BTreeSet;

use xds_transport::Protocol;
use xdstp_uri::ResourceName;

use super::{Asked, parsed};
use crate::messages::Response;
use crate::origin::{Departed, Origin};
use crate::world::{Of, World};

impl Asked {
    /// A name that the last full state had, and that is gone since: it may be in the next one as it was.
    pub(super) fn leaving<'a>(
        &self,
        world: &World,
        origin: &'a Origin,
        of: Of,
        name: &ResourceName,
    ) -> Option<&'a Departed> {
        let (moment, _) = self.told.get(name).filter(|(_, there)| *there)?;
        let full = world.setup.protocol == Protocol::Sotw && world.rule(of).full_state_in_sotw;
        origin.departed(of, name, *moment).filter(|_| full && origin.body(of, name).is_none())
    }

    /// Those of a response, and when each was last there and told.
    pub(super) fn all_leaving<'a>(
        &'a self,
        world: &'a World,
        origin: &'a Origin,
        of: Of,
        response: &'a Response,
    ) -> impl Iterator<Item = (ResourceName, u64, &'a Departed)> {
        let names = response.resources.iter().flat_map(|sent| parsed(&sent.name));
        names.filter_map(move |name| {
            let departed = self.leaving(world, origin, of, &name)?;
            let moment = self.told.get(&name)?.0;
            Some((name, moment, departed))
        })
    }
}

/// The names of a response.
pub(super) fn names(response: &Response) -> BTreeSet<ResourceName> {
    response.resources.iter().flat_map(|sent| parsed(&sent.name)).collect()
}
