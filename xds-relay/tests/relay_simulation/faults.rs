//! Faults that are planted to see them found: around the relay's core, so that the core stays as it is.

mod feed;

use xds_relay::relay_core::{ClientNode, NodeGroup, NodeGrouping, ShareBy};
use xds_transport::server::{NodeError, Variant};
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

pub(crate) use self::feed::{Feed, Strays};
use crate::history::{History, Step};
use crate::hops::Served;
use crate::messages::{Request, Response};
use crate::world::{GROUPS, ORIGINS, Setup, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    ShareAcrossGroups,
    RemoveOnOutage,
    NeverUnsubscribe,
    DropUnsubscribeOfNames,
    LoseRemovals,
    LoseUpdate,
    RejectUpstream,
    LoseWake,
    LeakStream,
    TakePieceForWhole,
    // Of names in a wildcard's answer that are no old-style names.
    LoseNamesInWildcards,
    TakeNamesOfOthers,
    // Of names of several authorities, and of aliases.
    OneAuthorityAType,
    ForgetAliases,
    AliasesOfOneAuthority,
    // Of clients that speak as Envoy does.
    SpellCanonically,
    ForgetTombstones,
    LeaveOutScopedRoutes,
}

impl Fault {
    pub(crate) const ALL: [Self; 18] = [
        Self::ShareAcrossGroups,
        Self::RemoveOnOutage,
        Self::NeverUnsubscribe,
        Self::DropUnsubscribeOfNames,
        Self::LoseRemovals,
        Self::LoseUpdate,
        Self::RejectUpstream,
        Self::LoseWake,
        Self::LeakStream,
        Self::TakePieceForWhole,
        Self::LoseNamesInWildcards,
        Self::TakeNamesOfOthers,
        Self::OneAuthorityAType,
        Self::ForgetAliases,
        Self::AliasesOfOneAuthority,
        Self::SpellCanonically,
        Self::ForgetTombstones,
        Self::LeaveOutScopedRoutes,
    ];

    /// A history with what it takes to find the fault, where few have it all.
    pub(crate) fn sought_in(self, mut history: History) -> History {
        let setup = &mut history.setup;
        match self {
            Self::TakePieceForWhole => {
                (setup.large, setup.relay_restarts, setup.up) = (true, true, [Variant::Delta; ORIGINS]);
            }
            Self::ForgetTombstones => {
                (setup.relay_restarts, setup.envoy, setup.down) =
                    (false, [true; GROUPS.len()], [Variant::Delta; GROUPS.len()]);
                history.steps.iter_mut().for_each(|step| match step {
                    Step::Subscribe(.., what) | Step::Unsubscribe(.., what) => *what = World::GLOB_OF_TWO,
                    Step::Put { name, .. } | Step::Remove { name, .. } => *name = World::ITS_MEMBERS[*name % 2],
                    _ => {}
                });
            }
            _ => {}
        }
        history
    }

    /// A world without what it takes to find the fault.
    pub(crate) fn hidden_by(self, setup: &Setup) -> Option<Setup> {
        let setup = setup.clone();
        match self {
            Self::LoseNamesInWildcards | Self::TakeNamesOfOthers => Some(Setup { xdstp_in_wildcards: false, ..setup }),
            Self::ForgetAliases | Self::AliasesOfOneAuthority => Some(Setup { aliases: false, ..setup }),
            Self::SpellCanonically | Self::ForgetTombstones => Some(Setup { envoy: Default::default(), ..setup }),
            _ => None,
        }
    }

    /// What a faulty relay reads for a request.
    pub(crate) fn request(self, request: &mut Request) {
        let parsed = |name: &String| name.parse::<ResourceName>().unwrap();
        if self == Self::OneAuthorityAType {
            let first = request.names.iter().find_map(|name| parsed(name).authority().map(str::to_owned));
            request.names.retain(|name| parsed(name).authority().is_none_or(|own| Some(own) == first.as_deref()));
        }
    }

    /// What a faulty relay writes for a response. Whether it is another one.
    pub(crate) fn response(self, world: &World, served: &Served, variant: Variant, response: &mut Response) -> bool {
        let Some(of) = world.of(&response.type_url) else { return false };
        match self {
            Self::SpellCanonically => {
                let names = response.resources.iter_mut().map(|sent| &mut sent.name).chain(&mut response.removed);
                names.for_each(|name| *name = name.parse::<ResourceName>().unwrap().to_string());
                true
            }
            Self::ForgetTombstones if variant == Variant::Delta => {
                let known = |name: &String| {
                    let name: ResourceName = name.parse().unwrap();
                    name.is_glob() || served.holds(of, &name) || served.asks_for(of, &Interest::Name(name))
                };
                response.removed.retain(known);
                true
            }
            Self::LeaveOutScopedRoutes
                if variant == Variant::Sotw && world.kinds[of].url.as_str().contains("Scoped") =>
            {
                response.resources.truncate(1);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn grouping(fault: Option<Self>) -> Box<dyn NodeGrouping> {
        if fault == Some(Self::ShareAcrossGroups) {
            return Box::new(Everybody);
        }
        Box::new(ShareBy::new(vec![xds_relay::config::NodeField::Cluster]))
    }
}

/// A grouping that mixes up who may share.
struct Everybody;

impl NodeGrouping for Everybody {
    fn group(&self, _: &ClientNode) -> Result<NodeGroup, NodeError> {
        Ok(NodeGroup::new(Vec::new(), "everybody".to_owned()))
    }
}
