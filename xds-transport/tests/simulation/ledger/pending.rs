//! What there is to say on one stream, told from the books.

use std::collections::BTreeSet;

use xds_transport::Protocol;
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use super::leaving::names;
use super::{Asked, PIPELINED, parsed};
use crate::messages::Response;
use crate::origin::Origin;
use crate::world::{Of, World};

/// What there is to say of one type, for certain; and `anything` if there may be.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) additions: bool,
    pub(crate) removals: bool,
    /// Something was asked for by name that the client cannot have.
    pub(crate) missing: bool,
    pub(crate) anything: bool,
    pub(crate) full: bool,
    pub(crate) responded: bool,
    gone: BTreeSet<ResourceName>,
    sotw: bool,
}

impl Pending {
    /// Whether a response takes back what the client has, and could have waited.
    pub(crate) fn takes(&self, response: &Response) -> bool {
        match self.sotw {
            true => !self.gone.is_subset(&names(response)),
            // Of a glob that is empty, a client keeps no member.
            false => response.removed.iter().flat_map(|name| parsed(name)).any(|told| {
                self.gone.contains(&told) || told.is_glob() && self.gone.iter().any(|member| member.answers(&told))
            }),
        }
    }
}

impl Asked {
    pub(super) fn pending(&self, world: &World, origin: &Origin, of: Of) -> Pending {
        let sotw = world.setup.protocol == Protocol::Sotw;
        let mut pending = Pending {
            full: self.unacked.len() >= if sotw { 1 } else { PIPELINED },
            responded: self.last_nonce.is_some(),
            anything: self.owes_answer || self.due || self.lives.any_due(origin, of),
            sotw,
            ..Pending::default()
        };
        for name in world.kinds[of].names.iter().filter(|name| self.covers(world, name)) {
            let told = self.told.get(name);
            let news = told.is_none_or(|(moment, _)| origin.changed(of, name) > *moment);
            pending.anything |= news || !self.sent.contains_key(name);
            // What it brought along is what there is, though it was not there when it came: that is no news.
            let version = origin.resource(of, name).map(|there| there.version.as_str());
            let known = self.held.get(name).is_some_and(|(held, _)| Some(held.as_str()) == version);
            match (origin.body(of, name), told) {
                (Some(_), _) => pending.additions |= news && !known,
                // Why it is not sent takes nothing from who has it.
                (None, Some((_, true))) if origin.error(of, name).is_some_and(|(error, _)| error.is_transient()) => {}
                // Over SotW it is not said that something lives no more to who was told when that is.
                (None, Some((_, true))) if sotw && self.lives.is_over(origin, name) => {}
                (None, Some((_, true))) if world.says_absence(of) => _ = pending.gone.insert(name.clone()),
                (None, _) => {
                    // A client that lists no members of a glob may have one that is gone (rule 100).
                    let asked = |interest: &Interest| self.interests.contains(interest) || self.left.contains(interest);
                    let glob = name.glob_parent().is_some_and(|glob| asked(&Interest::Name(glob)));
                    // Nor can the server know that what a wildcard covers went before it came to that client.
                    let all = asked(&Interest::Wildcard) && origin.removed_since(of, name, 0);
                    let may_have = glob || all || self.held.contains_key(name) || self.parting.contains(name);
                    pending.missing |= self.fresh.contains(name) && !may_have && !sotw;
                }
            }
        }
        pending.anything |= self.errors.any_since(world, origin, of, &self.interests, self.responded_before);
        pending.removals = !pending.gone.is_empty();
        pending
    }
}
