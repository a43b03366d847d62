//! Faults that are planted to see them found: around the relay's core, so that the core stays as it is.

mod feed;
mod servers;
mod starved;

use std::sync::Arc;
use std::time::Duration;

use xds_relay::relay_core::{ClientNode, NodeGroup, NodeGrouping, ShareBy};
use xds_transport::server::{NodeError, Settings};
use xds_transport::{Protocol, TypeRule};
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

pub(crate) use self::feed::{Feed, Strays};
pub(crate) use self::servers::Spoken;
pub(crate) use self::starved::Starved;
use crate::history::{History, Step};
use crate::hops::Served;
use crate::messages::{Request, Response};
use crate::world::{GROUPS, ORIGINS, Of, REFERRED, REFERRERS, Setup, World};
use crate::{APART, LED, REFERRING, SEEDS, SEVERAL};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
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
    // Of the order across types, and all further ones.
    ClustersLast,
    RemoveInPlace,
    RouteUngated,
    WaitAsLongAsLinger,
    StarveReferrers,
    StarveWhileClustersAreBusy,
    CountNamesOfOthers,
    // Of several servers of an origin, and all further ones.
    KeepVersionsOfBefore,
    RemoveOnSwitch,
    NeverReturn,
    CountEveryEnd,
    // Of an origin that comes and goes, and all further ones.
    TakeForTheSame,
    RemoveOnLead,
    NeverAskTheNew,
    ResendOnLead,
    // Of streams of types.
    RemoveOnTypeEnd,
}

impl Fault {
    pub(crate) const ALL: [Self; 34] = [
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
        Self::ClustersLast,
        Self::RemoveInPlace,
        Self::RouteUngated,
        Self::WaitAsLongAsLinger,
        Self::StarveReferrers,
        Self::StarveWhileClustersAreBusy,
        Self::CountNamesOfOthers,
        Self::KeepVersionsOfBefore,
        Self::RemoveOnSwitch,
        Self::NeverReturn,
        Self::CountEveryEnd,
        Self::TakeForTheSame,
        Self::RemoveOnLead,
        Self::NeverAskTheNew,
        Self::ResendOnLead,
        Self::RemoveOnTypeEnd,
    ];

    /// A history with what it takes to find the fault, where few have it all.
    pub(crate) fn sought_in(self, seed: u64) -> History {
        let mut history = match self {
            _ if self.is_of_types() => History::apart(seed),
            _ if self.is_of_leads() => History::led(seed),
            _ if self.is_of_servers() => History::several(seed),
            _ if self.is_of_order() => History::referring(seed),
            _ => History::random(seed),
        };
        let setup = &mut history.setup;
        match self {
            Self::TakePieceForWhole => {
                (setup.large, setup.relay_restarts, setup.up) = (true, true, [Protocol::Delta; ORIGINS]);
            }
            Self::ForgetTombstones => {
                (setup.relay_restarts, setup.envoy, setup.down) =
                    (false, [true; GROUPS.len()], [Protocol::Delta; GROUPS.len()]);
                history.steps.iter_mut().for_each(|step| match step {
                    Step::Subscribe(.., what) | Step::Unsubscribe(.., what) => *what = World::GLOB_OF_TWO,
                    Step::Put { name, .. } | Step::Remove { name, .. } => *name = World::ITS_MEMBERS[*name % 2],
                    _ => {}
                });
            }
            Self::StarveWhileClustersAreBusy => keep_clusters_busy(&mut history),
            _ => {}
        }
        history
    }

    /// What it is found by, where another check may find the same.
    pub(crate) fn found_by(self) -> &'static str {
        if self == Self::StarveWhileClustersAreBusy { "rule 158" } else { "" }
    }

    /// Whether listeners and routes are kept back as long as there are others.
    pub(crate) fn starves(self) -> bool {
        [Self::StarveReferrers, Self::StarveWhileClustersAreBusy].contains(&self)
    }

    /// In how many seeds it is looked for.
    pub(crate) fn seeds(self) -> u64 {
        match self {
            _ if self.is_of_types() => APART,
            _ if self.is_of_leads() => LED,
            _ if self.is_of_servers() => SEVERAL,
            _ if self.is_of_order() => REFERRING,
            _ => SEEDS,
        }
    }

    fn is_of_order(self) -> bool {
        self >= Self::ClustersLast && self < Self::KeepVersionsOfBefore
    }

    pub(crate) fn is_of_servers(self) -> bool {
        self >= Self::KeepVersionsOfBefore && self < Self::TakeForTheSame
    }

    pub(crate) fn is_of_leads(self) -> bool {
        self >= Self::TakeForTheSame && !self.is_of_types()
    }

    fn is_of_types(self) -> bool {
        self == Self::RemoveOnTypeEnd
    }

    /// A world without what it takes to find the fault.
    pub(crate) fn hidden_by(self, setup: &Setup) -> Option<Setup> {
        let setup = setup.clone();
        match self {
            Self::LoseNamesInWildcards | Self::TakeNamesOfOthers | Self::CountNamesOfOthers => {
                Some(Setup { xdstp_in_wildcards: false, ..setup })
            }
            Self::ForgetAliases | Self::AliasesOfOneAuthority => Some(Setup { aliases: false, ..setup }),
            Self::SpellCanonically | Self::ForgetTombstones => Some(Setup { envoy: Default::default(), ..setup }),
            _ if self.is_of_types() => Some(Setup { apart: [false; ORIGINS], ..setup }),
            _ if self.is_of_leads() => Some(Setup { led: false, ..setup }),
            _ if self.is_of_servers() => Some(Setup { servers: [1; ORIGINS], ..setup }),
            // One whose order nobody looks at.
            _ if self.is_of_order() => Some(Setup { refers: false, calm: false, ..setup }),
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
    pub(crate) fn response(self, world: &World, served: &Served, protocol: Protocol, response: &mut Response) -> bool {
        let Some(of) = world.of(&response.type_url) else { return false };
        match self {
            Self::SpellCanonically => {
                let names = response.resources.iter_mut().map(|sent| &mut sent.name).chain(&mut response.removed);
                names.for_each(|name| *name = name.parse::<ResourceName>().unwrap().to_string());
                true
            }
            Self::ForgetTombstones if protocol == Protocol::Delta => {
                let known = |name: &String| {
                    let name: ResourceName = name.parse().unwrap();
                    name.is_glob() || served.holds(of, &name) || served.asks_for(of, &Interest::Name(name))
                };
                response.removed.retain(known);
                true
            }
            Self::LeaveOutScopedRoutes
                if protocol == Protocol::Sotw && world.kinds[of].url.as_str().contains("Scoped") =>
            {
                response.resources.truncate(1);
                true
            }
            _ => false,
        }
    }

    /// How the relay serves its clients.
    pub(crate) fn settings(fault: Option<Self>, world: &World, mut settings: Settings) -> Settings {
        let mut rules = (*settings.rules).clone();
        let mut change = |of: Of, change: &dyn Fn(&mut TypeRule)| {
            let url = &world.kinds[of].url;
            let mut rule = rules.of(url).clone();
            change(&mut rule);
            rules.insert(url.clone(), rule);
        };
        match fault {
            Some(Self::ClustersLast) => change(REFERRED[0], &|rule| rule.rank = u8::MAX),
            Some(Self::RemoveInPlace) => REFERRED.iter().for_each(|of| change(*of, &|rule| rule.removals_last = false)),
            Some(Self::RouteUngated) => {
                REFERRERS.iter().for_each(|of| change(*of, &|rule| rule.waits_for_lower_ranks = false));
            }
            Some(Self::WaitAsLongAsLinger) => settings.removals_wait = Duration::from_millis(world.setup.linger),
            _ => {}
        }
        settings.rules = Arc::new(rules);
        settings
    }

    pub(crate) fn grouping(fault: Option<Self>) -> Box<dyn NodeGrouping> {
        if fault == Some(Self::ShareAcrossGroups) {
            return Box::new(Everybody);
        }
        Box::new(ShareBy::new(vec![xds_relay::config::NodeField::Cluster]))
    }
}

/// Once all has come to rest for the first time, something that refers to clusters changes while these change all the time:
/// nothing goes, so that nothing but a turn that never comes is wrong.
fn keep_clusters_busy(history: &mut History) {
    let switches = history.steps.iter().take_while(|step| !matches!(step, Step::Settle));
    let referring = switches.filter_map(|step| match *step {
        Step::Switch { of, name, at, to, .. } if to != 0 => Some((of, name, at, to.trailing_zeros() as usize)),
        _ => None,
    });
    let Some((of, name, at, cluster)) = referring.last() else { return };
    let first = history.steps.iter().position(|step| matches!(step, Step::Settle));
    history.steps.truncate(first.map_or(0, |at| at + 1));
    history.steps.extend([
        Step::Busy { of: REFERRED[0], name: cluster, at, ms: 40_000 },
        Step::Busy { of, name, at, ms: 0 },
        Step::Wait(40_000),
    ]);
}

/// A grouping that mixes up who may share.
struct Everybody;

impl NodeGrouping for Everybody {
    fn group(&self, _: &ClientNode) -> Result<NodeGroup, NodeError> {
        Ok(NodeGroup::new(Vec::new(), "everybody".to_owned()))
    }
}
