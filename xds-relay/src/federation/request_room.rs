//! What an origin that speaks SotW can be asked for: every request names all that is wanted of its type, and the origin
//! takes requests of so many bytes. Who came with the most loses first, and nobody else loses anything.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use xds_transport::client::{name_size, room_for_names};
use xdstp_cache::{Interest, TypeUrl};

use crate::relay_core::quotas::LimitError;
use crate::federation::scope::Scope;
use crate::relay_core::streams::Part;
use crate::federation::lock::lock;
use crate::relay_core::RelayCore;

/// The room in the requests of one stream to an origin.
#[derive(Debug)]
pub(crate) struct RequestRoom {
    most: usize,
    /// What the origin was told of each type.
    used: Mutex<HashMap<TypeUrl, usize>>,
    /// How often something was given back.
    returns: AtomicU64,
    /// Room was made, and the origin not asked since: what is lacking is that of before.
    made: AtomicBool,
}

impl RequestRoom {
    pub(crate) fn new(max_request_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            most: room_for_names(max_request_bytes),
            used: Mutex::default(),
            returns: AtomicU64::new(0),
            made: AtomicBool::new(false),
        })
    }

    /// Another number whenever there may be more room.
    pub(crate) fn returns(&self) -> u64 {
        self.returns.load(Ordering::Relaxed)
    }

    /// Whether one stream may ask for so much of a type.
    ///
    /// # Errors
    /// Not even if it were alone.
    pub(crate) fn check(&self, size: usize) -> Result<(), LimitError> {
        if size <= self.most { Ok(()) } else { Err(self.error()) }
    }

    /// Whether there is room for one more.
    pub(crate) fn take(&self, type_url: &TypeUrl, interest: &Interest) -> bool {
        self.made.store(false, Ordering::Relaxed);
        let mut types = lock(&self.used);
        let used = types.get(type_url).copied().unwrap_or_default() + name_size(interest.as_str());
        let fits = used <= self.most;
        if fits {
            types.insert(type_url.clone(), used);
        }
        fits
    }

    pub(crate) fn give_back(&self, type_url: &TypeUrl, interest: &Interest) {
        self.returns.fetch_add(1, Ordering::Relaxed);
        let mut types = lock(&self.used);
        if let Some(used) = types.get_mut(type_url) {
            *used = used.saturating_sub(name_size(interest.as_str()));
            if *used == 0 {
                types.remove(type_url);
            }
        }
    }

    fn error(&self) -> LimitError {
        let what = "bytes of names in a request to the origin";
        LimitError { key: "max_upstream_request_bytes", what, most: self.most }
    }
}

/// The scopes that share a room, and what lacks it.
struct Crowd {
    room: Arc<RequestRoom>,
    scopes: Vec<Arc<Scope>>,
    /// By type, in bytes.
    lacking: BTreeMap<TypeUrl, usize>,
}

impl RelayCore {
    /// Where more is wanted than a request can name: what nobody wants any more goes at once, and then who wants most.
    pub(crate) fn make_room(&self, now: Instant) {
        for Crowd { room, scopes, lacking } in self.crowds() {
            // While a first request is handled the origin is not asked: until it is, nobody else goes for the same.
            if room.made.swap(true, Ordering::Relaxed) {
                continue;
            }
            for (type_url, lacking) in lacking {
                let forgone: usize = scopes.iter().map(|scope| scope.forgo(&type_url, now)).sum();
                if forgone < lacking {
                    self.end_largest(&room, &type_url, lacking - forgone);
                }
            }
            scopes.iter().for_each(|scope| scope.ask());
        }
    }

    fn crowds(&self) -> Vec<Crowd> {
        let scopes: Vec<_> = lock(&self.scopes).values().filter(|scope| scope.room.is_some()).cloned().collect();
        let mut crowds: BTreeMap<*const RequestRoom, Crowd> = BTreeMap::new();
        for scope in scopes {
            let Some(room) = scope.room.clone() else { continue };
            let crowd = crowds.entry(Arc::as_ptr(&room)).or_insert_with(|| Crowd {
                room,
                scopes: Vec::new(),
                lacking: BTreeMap::new(),
            });
            for (type_url, size) in scope.lacking() {
                *crowd.lacking.entry(type_url).or_default() += size;
            }
            crowd.scopes.push(scope);
        }
        crowds.into_values().filter(|crowd| !crowd.lacking.is_empty()).collect()
    }

    /// Ends streams that ask for most, until what they leave is as much as is lacking.
    fn end_largest(&self, room: &Arc<RequestRoom>, type_url: &TypeUrl, mut lacking: usize) {
        let streams: Vec<_> = lock(&self.streams).values().cloned().collect();
        let size = |(_, (of, part)): (usize, &(TypeUrl, Part))| {
            let shares = of == type_url && part.scope.room.as_ref().is_some_and(|other| Arc::ptr_eq(other, room));
            if shares { part.scope.size_of(part.id) } else { 0 }
        };
        let mut by_size = Vec::new();
        for stream in streams {
            let parts = lock(&stream.view.parts).clone();
            by_size.push((parts.iter().map(size).sum::<usize>(), stream));
        }
        by_size.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
        for (size, stream) in by_size {
            if lacking == 0 || size == 0 {
                break;
            }
            lacking = lacking.saturating_sub(size);
            stream.view.refuse(room.error());
        }
    }
}
