//! Which types clients are served from releases. A control plane that is followed may be followed in more than when what is stable was
//! made: of a type that is new all would lose what they have, for as long as nothing of it is stable.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use xdstp_cache::TypeUrl;
use xdstp_client::federation::Held;

use crate::lock::lock;
use crate::releases::{Gathered, Types};

/// The types that are in releases, and those of them that clients are served from there.
pub(super) struct ServedTypes {
    all: Types,
    /// Something was stable before this relay started: what that has of a control plane that is followed, and what was stable since.
    known: Option<Mutex<Option<Gathered>>>,
    are_more: AtomicBool,
}

impl ServedTypes {
    pub(super) fn new(all: Types, was_served: bool) -> Self {
        let known = (was_served && matches!(all, Types::Gathered(_))).then(Mutex::default);
        Self { all, known, are_more: AtomicBool::new(false) }
    }

    pub(super) fn contain(&self, type_url: &TypeUrl) -> bool {
        let known = self.known.as_ref().and_then(|known| *lock(known));
        self.all.contains(type_url) && known.is_none_or(|known| Types::Gathered(known).contains(type_url))
    }

    /// That is shown first, before it is: whoever looks must not find a type there that it lacks. Of a type that only a candidate has
    /// those would lose all who are not in its stage.
    pub(super) fn begin(&self, stable: &[Held]) {
        if let Some(known) = &self.known
            && lock(known).is_none()
        {
            self.shown(of(stable));
        }
    }

    /// What is shown has these types from now on: not before, or whoever looks would not find them there yet.
    pub(super) fn shown(&self, types: Gathered) {
        let Some(known) = &self.known else { return };
        let known = &mut *lock(known);
        let more = known.unwrap_or_default().and(types);
        if known.replace(more) != Some(more) {
            self.are_more.store(true, Ordering::Release);
        }
    }

    /// Whether there are others since this was asked last: all clients are to look where they are served what from.
    pub(super) fn are_more(&self) -> bool {
        self.are_more.swap(false, Ordering::AcqRel)
    }
}

/// The types that are in it.
pub(super) fn of(held: &[Held]) -> Gathered {
    held.iter().map(|(type_url, ..)| type_url.as_str()).fold(Gathered::default(), Gathered::with)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
    const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

    #[test]
    fn what_is_stable_first_narrows_the_types_before_it_is_shown_and_what_is_later_adds_to_them_once_it_is() {
        let one = |of: &str| {
            let frame = xds_transport::Frame::of_message(&of.into(), b"");
            vec![(of.into(), "a".parse().unwrap(), frame.into_resource(None))]
        };
        let all = Types::Gathered([LISTENERS, CLUSTERS].into_iter().fold(Gathered::default(), Gathered::with));
        let types = ServedTypes::new(all, true);
        let served = |types: &ServedTypes| [LISTENERS, CLUSTERS].map(|of| types.contain(&of.into()));
        assert_eq!(served(&types), [true, true], "nobody is to be served what is not released while that is not known");
        types.begin(&one(LISTENERS));
        assert_eq!((served(&types), types.are_more()), ([true, false], true));
        types.begin(&one(CLUSTERS));
        assert_eq!((served(&types), types.are_more()), ([true, false], false), "it is not shown yet");
        types.shown(of(&one(CLUSTERS)));
        assert_eq!((served(&types), types.are_more()), ([true, true], true));
    }
}
