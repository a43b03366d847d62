//! A response while it is taken in.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use xdstp_cache::{Resource, Version};
use xdstp_uri::ResourceName;

use crate::client::intern::Intern;
use crate::client::session::common::Common;
use crate::client::session::heartbeat::Heartbeats;
use crate::client::session::held::Received;
use crate::client::session::verdict::Pending;
use crate::client::update::{Update, UpdateId};
use crate::deadlines::expiry;
use crate::frame::Frame;
use crate::response::Rejected;

/// What it has been found to say so far.
pub(crate) struct Incoming<'a> {
    now: Instant,
    intern: Option<&'a dyn Intern>,
    /// How many requests were sent before.
    pub(crate) requests: u64,
    /// The names of what could not be read.
    pub(crate) refused: HashSet<String>,
    pub(crate) update: Update,
    pub(crate) received: Vec<(ResourceName, Received)>,
    pub(crate) heartbeats: Heartbeats,
}

/// A resource that arrived.
pub(crate) struct Arrived {
    pub(crate) name: ResourceName,
    pub(crate) resource: Resource<Frame>,
    /// It is held as it is: how many requests had been sent when it last came.
    pub(crate) seen: Option<u64>,
}

impl<'a> Incoming<'a> {
    pub(crate) fn new(
        now: Instant,
        id: UpdateId,
        rejected: Vec<Rejected>,
        intern: Option<&'a dyn Intern>,
        common: &mut Common,
    ) -> Self {
        let refused = common.answer_refused(&rejected);
        let update = Update { unsaid: false, rejected, ..common.update(id) };
        let requests = common.wanted.requests();
        Self { now, intern, requests, refused, update, received: Vec::new(), heartbeats: Heartbeats::default() }
    }

    /// A resource is there: it waits for the verdict from now on.
    pub(crate) fn arrive(
        &mut self,
        mut name: ResourceName,
        frame: Frame,
        version: Option<Version>,
        ttl: Option<Duration>,
        common: &Common,
    ) -> Arrived {
        let version = version.filter(|version| !version.as_str().is_empty());
        let mut resource = frame.until(expiry(self.now, ttl)).into_resource(version);
        if let Some(intern) = self.intern {
            intern.intern(&mut name, &mut resource);
        }
        let news = Received::new(&resource, self.requests);
        let before = common.held.get(&name).filter(|before| before.same(&news.entry));
        let seen = before.map(|before| before.seen(self.requests));
        self.received.push((name.clone(), news));
        Arrived { name, resource, seen }
    }

    /// All resources are read: what lives on is told.
    pub(crate) fn beat(&mut self, common: &mut Common) {
        let heartbeats = std::mem::take(&mut self.heartbeats);
        heartbeats.apply(self.now, &mut common.unfinished, &mut common.held, &mut self.update);
    }

    /// All of it is read.
    pub(crate) fn conclude(self, common: &mut Common, pending: Pending) -> Update {
        let Self { mut update, received, .. } = self;
        common.conclude(&mut update, Pending { received, ..pending });
        update
    }
}
