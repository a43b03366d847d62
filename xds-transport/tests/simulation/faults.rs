//! Faults that are planted to see them found: around the machines, so that the machines stay as they are.

mod books;
mod shims;

use std::sync::Arc;

use xds_transport::{TypeRule, TypeRules};

pub(crate) use self::books::{Books, Memory};
pub(crate) use self::shims::{ClientShim, ServerShim};
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    // A server's books.
    DropUnsubscribe,
    SubscribeToMore,
    ForgetInitialVersions,
    LoseTombstone,
    SwallowResubscribe,
    LeakSubscriber,
    ForgetDependents,
    LoseWake,
    ServeBeforeLoaded,
    // A server's order.
    PassOverFullWindow,
    RemoveBeforeOthersAdd,
    RemoveWithAdditions,
    RemoveBeforeHeldChanges,
    ForgetRanks,
    HoldNobody,
    // A server's messages.
    LeaveOutOfFullState,
    ReuseNonce,
    ResendAfterNack,
    NameTwice,
    DoNotWaitForAcks,
    HonourStaleNonce,
    WildcardAfterTheLastName,
    // Errors, what lives for a time, and the versions of an origin.
    TellNoErrors,
    RepeatErrors,
    ErrorOfOtherCode,
    ErrorWithoutRemoval,
    RefreshNothing,
    RefreshOfOtherVersion,
    KeepTtlBack,
    StaleTypeVersion,
    LoseEndOfGlobErrors,
    LoseEndOfMemberErrors,
    LoseReturnOfDenied,
    RefreshForOthers,
    // A client's messages.
    ForgetNameOnReconnect,
    KeepNonceOnReconnect,
    LoseAck,
    AckTwice,
    VersionOfRejected,
    ForgetNode,
    MissErrorsOfGlobs,
    /// Who sends parameters is served as if it sent others.
    SelectForOthers,
    /// That a variant changed is no news to who selects it.
    ForgetVariant,
    /// A variant is lost, and nobody is told.
    LoseVariant,
}

impl Fault {
    /// Those of names that have variants.
    pub(crate) const VARIED: [Self; 3] = [Self::SelectForOthers, Self::ForgetVariant, Self::LoseVariant];

    pub(crate) const ALL: [Self; 41] = [
        Self::DropUnsubscribe,
        Self::SubscribeToMore,
        Self::ForgetInitialVersions,
        Self::LoseTombstone,
        Self::SwallowResubscribe,
        Self::LeakSubscriber,
        Self::ForgetDependents,
        Self::LoseWake,
        Self::ServeBeforeLoaded,
        Self::PassOverFullWindow,
        Self::RemoveBeforeOthersAdd,
        Self::RemoveWithAdditions,
        Self::RemoveBeforeHeldChanges,
        Self::ForgetRanks,
        Self::HoldNobody,
        Self::LeaveOutOfFullState,
        Self::ReuseNonce,
        Self::ResendAfterNack,
        Self::NameTwice,
        Self::DoNotWaitForAcks,
        Self::HonourStaleNonce,
        Self::WildcardAfterTheLastName,
        Self::TellNoErrors,
        Self::RepeatErrors,
        Self::ErrorOfOtherCode,
        Self::ErrorWithoutRemoval,
        Self::RefreshNothing,
        Self::RefreshOfOtherVersion,
        Self::KeepTtlBack,
        Self::StaleTypeVersion,
        Self::LoseEndOfGlobErrors,
        Self::LoseEndOfMemberErrors,
        Self::LoseReturnOfDenied,
        Self::RefreshForOthers,
        Self::ForgetNameOnReconnect,
        Self::KeepNonceOnReconnect,
        Self::LoseAck,
        Self::AckTwice,
        Self::VersionOfRejected,
        Self::ForgetNode,
        Self::MissErrorsOfGlobs,
    ];
}

/// The rules that a server goes by.
pub(crate) fn rules(world: &World, fault: Option<Fault>) -> Arc<TypeRules> {
    let mut rules = TypeRules::clone(&world.rules);
    for kind in &world.kinds {
        let rule = kind.rule.clone();
        match fault {
            Some(Fault::ForgetRanks) => rules.insert(kind.url.clone(), TypeRule { rank: 0, ..rule }),
            Some(Fault::HoldNobody) => {
                rules.insert(kind.url.clone(), TypeRule { waits_for_lower_ranks: false, ..rule });
            }
            _ => return world.rules.clone(),
        }
    }
    Arc::new(rules)
}
