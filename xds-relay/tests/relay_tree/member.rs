//! A client of the fleet: what it asks for, and what it holds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use xds_transport::Protocol;
use xds_transport::client::{Command, Update, Verdict};
use xds_transport::wire::walk::text_at;
use xdstp_cache::{Interest, ResourceError, TypeUrl};
use xdstp_client::upstream::{Connection, Consumer};
use xdstp_uri::ResourceName;

use crate::ledger::{Key, Ledger};
use crate::origin::{CLUSTERS, GLOB, LISTENERS};

#[derive(Default)]
pub(crate) struct Holds {
    pub(crate) resources: BTreeMap<Key, u64>,
    /// It has a stream that was answered.
    pub(crate) is_served: bool,
}

pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) group: usize,
    pub(crate) protocol: Protocol,
    pub(crate) start: Instant,
    pub(crate) holds: Arc<Mutex<Holds>>,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    pub(crate) has_asked: bool,
}

impl Member {
    fn key(&self, name: &ResourceName) -> Key {
        (name.is_opaque().then_some(self.group), name.to_string())
    }
}

impl Consumer for Member {
    fn commands(&mut self, _: Instant, apply: &mut dyn FnMut(Command)) {
        if !std::mem::replace(&mut self.has_asked, true) {
            let glob = Interest::Name(GLOB.parse().unwrap());
            apply(Command::Subscribe(CLUSTERS.into(), glob));
            apply(Command::Subscribe(LISTENERS.into(), Interest::Wildcard));
        }
    }

    fn update(&mut self, now: Instant, update: Update) -> Verdict {
        let now = (now - self.start).as_micros() as u64;
        let (mut holds, mut ledger) = (self.holds.lock().unwrap(), self.ledger.lock().unwrap());
        assert!(update.rejected.is_empty(), "{:?}", update.rejected);
        for changed in &update.changed {
            let serial = text_at(changed.resource.value.any(), &[2, 1000]).unwrap().parse().unwrap();
            let key = self.key(&changed.name);
            ledger.told(now, &key, serial);
            let held = holds.resources.insert(key, serial);
            // A full state over SotW says all there is; what comes over delta was asked for.
            ledger.resent += u64::from(held == Some(serial) && self.protocol == Protocol::Delta);
        }
        if self.protocol == Protocol::Delta {
            ledger.resent += update.repeated.len() as u64;
        }
        for name in update.removed.iter().chain(&update.lacking) {
            let key = self.key(name);
            // Of what it never had SotW has no word.
            if holds.resources.remove(&key).is_some() || self.protocol == Protocol::Delta {
                ledger.told_gone(&self.name, key);
            }
        }
        Verdict::Accept
    }

    fn connection(&mut self, _: Instant, connection: Connection) {
        self.holds.lock().unwrap().is_served = connection == Connection::Answered;
    }

    fn type_ended(&mut self, _: Instant, _: &TypeUrl, _: &ResourceError) {}

    fn type_opened(&mut self, _: Instant, _: &TypeUrl) {}
}
