//! The subscribers that one stream has in scopes, as others than its own task see them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Instant;

use slab::Slab;
use xds_transport::client::name_size;
use xdstp_cache::{SubscriberId, TypeUrl};

use crate::federation::lock::lock;
use crate::federation::request_room::RequestRoom;
use crate::federation::scope::Scope;

/// A subscriber of one scope.
#[derive(Clone)]
pub struct Part {
    /// Where.
    pub scope: Arc<Scope>,
    /// What it goes by there.
    pub id: SubscriberId,
    /// Where it is among all parts of its stream.
    pub(crate) seat: usize,
    /// Some of what it said was not told as it came: a wildcard or glob may not have been answered by that.
    pub(crate) sets_aside: bool,
}

/// What may be known of routes while they are used.
#[derive(Default)]
pub struct View {
    /// The subscribers in each scope.
    parts: Mutex<Slab<(TypeUrl, Part)>>,
    /// Something was visited for who uses them, so that it is being answered.
    pub(crate) served: AtomicBool,
    /// From where they are served is to be looked at anew.
    pub(crate) looks_anew: AtomicBool,
}

impl View {
    pub(crate) fn open(&self, scope: Arc<Scope>, type_url: &TypeUrl, waker: &Waker) -> Part {
        let id = scope.open(type_url, waker.clone());
        let mut parts = lock(&self.parts);
        let part = Part { scope, id, seat: parts.vacant_key(), sets_aside: false };
        parts.insert((type_url.clone(), part.clone()));
        part
    }

    pub(crate) fn close(&self, type_url: &TypeUrl, part: &Part) {
        let left = lock(&self.parts).try_remove(part.seat);
        debug_assert!(left.is_some_and(|(_, left)| left.id == part.id && Arc::ptr_eq(&left.scope, &part.scope)));
        part.scope.close(type_url, part.id);
    }

    /// [From where](super::Client::track) their client is served is looked at anew, before it is served anything else. Where that is
    /// another scope than before, it goes on there: it is sent what is otherwise there, and nothing that is not.
    pub fn look_anew(&self) {
        self.looks_anew.store(true, Ordering::Relaxed);
        let first = lock(&self.parts).iter().next().map(|(_, (_, part))| part.clone());
        first.iter().for_each(|part| part.scope.wake(part.id));
    }

    /// Visits the parts that are open, each with its type. Parts leave this list before they are closed.
    pub fn visit(&self, mut visitor: impl FnMut(&TypeUrl, &Part)) {
        lock(&self.parts).iter().for_each(|(_, (type_url, part))| visitor(type_url, part));
    }

    /// How many bytes the names of a type take in requests that have so much room.
    pub fn size_in(&self, room: &Arc<RequestRoom>, type_url: &TypeUrl) -> usize {
        self.sharing(room, type_url).iter().map(|part| part.scope.size_of(part.id)).sum()
    }

    /// The same of all that several have together: what more than one of them wants counts once.
    pub fn size_of_all<'a>(
        views: impl IntoIterator<Item = &'a Self>,
        room: &Arc<RequestRoom>,
        type_url: &TypeUrl,
    ) -> usize {
        let mut all = HashSet::new();
        for part in views.into_iter().flat_map(|view| view.sharing(room, type_url)) {
            all.extend(part.scope.interests_of(part.id));
        }
        all.iter().map(|interest| name_size(interest.as_str())).sum()
    }

    fn sharing(&self, room: &Arc<RequestRoom>, type_url: &TypeUrl) -> Vec<Part> {
        let shares = |part: &Part| part.scope.room.as_ref().is_some_and(|other| Arc::ptr_eq(other, room));
        let parts = lock(&self.parts);
        let of_type = parts.iter().map(|(_, part)| part).filter(|(of, _)| of == type_url);
        of_type.map(|(_, part)| part).filter(|part| shares(part)).cloned().collect()
    }

    /// Why nothing can be said to who uses the routes: what it wants is of origins that cannot be reached since before
    /// `since`, and nothing is known of any of it (rule 157).
    pub fn unknown(&self, since: Instant) -> Option<String> {
        if self.served.load(Ordering::Relaxed) {
            return None;
        }
        let parts = lock(&self.parts).clone();
        let mut reason = None;
        for (_, (type_url, part)) in &parts {
            let waits = || part.scope.knows_any(type_url, part.id) || part.scope.recalls();
            reason = Some(part.scope.supply()?.unreachable_since(since).filter(|_| !waits())?);
        }
        reason
            .map(|reason| format!("nothing is known of what was asked for, and its origin cannot be reached: {reason}"))
    }
}
