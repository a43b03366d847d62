//! What an origin that speaks SotW can be asked for: every request names all that is wanted of its type, and the origin
//! takes requests of so many bytes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use xds_transport::client::{name_size, room_for_names};
use xdstp_cache::{Interest, TypeUrl};

use crate::federation::lock::lock;
use crate::federation::share::OverLimit;

/// The room in the requests of one stream to an origin.
#[derive(Debug)]
pub struct RequestRoom {
    most: usize,
    /// What the origin was told of each type.
    used: Mutex<HashMap<TypeUrl, usize>>,
    /// How often something was given back.
    returns: AtomicU64,
    /// Room was made, and the origin not asked since: what is lacking is that of before.
    made: AtomicBool,
}

impl RequestRoom {
    /// That of a stream whose requests may have so many bytes.
    pub fn new(max_request_bytes: usize) -> Arc<Self> {
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
    pub(crate) fn check(&self, size: usize) -> Result<(), OverLimit> {
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

    /// Takes it on to make room: false where somebody did so, and the origin was not asked since.
    pub(crate) fn take_on(&self) -> bool {
        !self.made.swap(true, Ordering::Relaxed)
    }

    /// What who asks for too much is told.
    pub fn error(&self) -> OverLimit {
        let what = "bytes of names in a request to the origin";
        OverLimit { key: "max_upstream_request_bytes", what, most: self.most }
    }
}
