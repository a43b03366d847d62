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

    /// That is stable from now on. As the relay starts, what is a candidate was followed, too.
    pub(super) fn shown(&self, stable: &[Held], candidate: &[Held]) {
        let Some(known) = &self.known else { return };
        let known = &mut *lock(known);
        let candidate = if known.is_none() { candidate } else { &[] };
        let types = stable.iter().chain(candidate).map(|(type_url, ..)| type_url.as_str());
        let more = types.fold(known.unwrap_or_default(), Gathered::with);
        if known.replace(more) != Some(more) {
            self.are_more.store(true, Ordering::Release);
        }
    }

    /// Whether there are others since this was asked last: all clients are to look where they are served what from.
    pub(super) fn are_more(&self) -> bool {
        self.are_more.swap(false, Ordering::AcqRel)
    }
}
