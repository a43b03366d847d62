//! One type of one stream, the client's side. What both protocols do alike is here and in what they have in
//! [`Common`]; where they differ, each has a file of its own.

mod absence;
mod common;
mod delta;
mod heartbeat;
mod held;
mod incoming;
mod sotw;
mod verdict;
mod wanted;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xdstp_cache::{Interest, Resource, ResourceError, TypeUrl};
use xdstp_uri::ResourceName;

use crate::Protocol;
use crate::client::command::Verdict;
use crate::client::error::ProtocolError;
use crate::client::intern::Intern;
use crate::client::room::{Room, room_for_names};
use crate::client::selecting::Selecting;
use crate::client::session::common::Common;
use crate::client::session::delta::Delta;
use crate::client::session::sotw::Sotw;
use crate::client::update::{Update, UpdateId};
use crate::frame::Frame;
use crate::response::Response;
use crate::types::TypeRule;

pub use absence::Silence;

/// The state of one type, in the protocol of its stream.
#[derive(Debug)]
pub(crate) enum Session {
    Delta(Box<Delta>),
    Sotw(Box<Sotw>),
}

macro_rules! either {
    ($self:ident, $session:ident => $call:expr) => {
        match $self {
            Self::Delta($session) => $call,
            Self::Sotw($session) => $call,
        }
    };
}

impl Session {
    pub(crate) fn new(
        protocol: Protocol,
        type_url: TypeUrl,
        rule: &TypeRule,
        keep_deleted: bool,
        silence: Silence,
        selecting: Option<Arc<Selecting>>,
    ) -> Self {
        match protocol {
            Protocol::Delta => Self::Delta(Box::new(Delta::new(type_url, rule, keep_deleted, silence, selecting))),
            Protocol::Sotw => Self::Sotw(Box::new(Sotw::new(type_url, rule, keep_deleted, silence, selecting))),
        }
    }

    fn common(&self) -> &Common {
        either!(self, session => &session.common)
    }

    fn common_mut(&mut self) -> &mut Common {
        either!(self, session => &mut session.common)
    }

    /// Everything that is wanted.
    pub(crate) fn wanted(&self) -> Vec<Interest> {
        self.common().wanted.all()
    }

    pub(crate) fn is_opened(&self) -> bool {
        self.common().opened
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.common().wanted.is_empty()
    }

    pub(crate) fn has_unfinished(&self, id: UpdateId) -> bool {
        self.common().unfinished.contains(id)
    }

    pub(crate) fn has_any_unfinished(&self) -> bool {
        self.common().unfinished.any()
    }

    pub(crate) fn received(&mut self, at: Instant) {
        self.common_mut().absences.received(at);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.common().poll_timeout()
    }
}

impl Session {
    pub(crate) fn has_answer(&self) -> bool {
        either!(self, session => session.has_answer())
    }

    pub(crate) fn disconnected(&mut self) {
        either!(self, session => session.disconnected());
    }

    /// These errors were told though no response said so: of what comes as it was they are over.
    pub(crate) fn failed(&mut self, errors: &[(ResourceName, ResourceError)]) {
        let common = self.common_mut();
        common.failed_unsaid = true;
        for (name, _) in errors {
            if Interest::from(name.clone()) != Interest::Wildcard {
                common.failed.insert(name.clone());
            }
        }
    }

    /// The next stream is to another server.
    pub(crate) fn of_another_server(&mut self) {
        self.common_mut().unfinished.forget_server();
        self.forget();
        if let Self::Sotw(session) = self {
            session.doubt_held();
        }
    }

    /// Whether one request, of up to so many bytes, may name this too: over SotW it names all that is wanted.
    pub(crate) fn has_room(&self, interest: &Interest, max_request_size: usize) -> bool {
        match self {
            Self::Delta(_) => true,
            Self::Sotw(session) => session.has_room(interest, room_for_names(max_request_size)),
        }
    }

    pub(crate) fn subscribe(&mut self, interest: Interest) {
        either!(self, session => session.subscribe(interest));
    }

    pub(crate) fn unsubscribe(&mut self, interest: &Interest) {
        either!(self, session => session.unsubscribe(interest));
    }

    /// Of an update that nobody heard yet. Who asks for it again will not be told that it is gone since, and is answered anew.
    pub(crate) fn leave_out_what_was_left(&self, update: &mut Update) {
        let wanted = &self.common().wanted;
        let Update { changed, repeated, refreshed, answered, complete, missing, lacking, .. } = update;
        for resources in [changed, repeated] {
            resources.retain(|resource| wanted.covers(&resource.name));
        }
        refreshed.retain(|(name, _)| wanted.covers(name));
        for collections in [answered, complete] {
            collections.retain(|collection| wanted.wish(collection).is_some());
        }
        for names in [missing, lacking] {
            names.retain(|name| wanted.wish(&Interest::Name(name.clone())).is_some());
        }
    }

    /// Others hold these, which SotW has no way to say.
    pub(crate) fn undecided(&mut self, names: Vec<ResourceName>) {
        if let Self::Delta(session) = self {
            session.undecided(names);
        }
    }

    /// What is held from before there was any stream.
    pub(crate) fn hold(&mut self, resources: Vec<(ResourceName, Resource<Frame>)>, collections: &[Interest]) {
        if matches!(self, Self::Sotw(session) if !session.may_hold()) {
            return;
        }
        let held = self.common_mut().hold(resources);
        if let Self::Delta(session) = self {
            session.held(held, collections);
        }
    }

    /// What is in use is of another origin since. Over delta it is the user who unsubscribes it, but what is asked for by more than
    /// one interest is held by one of them all the time.
    pub(crate) fn forget(&mut self) {
        match self {
            Self::Delta(session) => session.common.held.doubt_all(),
            Self::Sotw(session) => session.forget(),
        }
    }

    /// These are not in use any more, though nothing came in their place that is.
    pub(crate) fn drop_held(&mut self, names: &[ResourceName]) {
        match self {
            Self::Delta(session) => names.iter().for_each(|name| session.common.held.doubt(name)),
            Self::Sotw(session) => session.drop_held(names),
        }
    }

    pub(crate) fn finish(&mut self, id: UpdateId, verdict: Verdict) {
        either!(self, session => session.finish(id, verdict));
    }

    /// `None` when nothing is wanted: the response is acknowledged unseen.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        id: UpdateId,
        mut response: Response,
        intern: Option<&dyn Intern>,
    ) -> Result<Option<Update>, ProtocolError> {
        let is_delta = matches!(self, Self::Delta(_));
        let Common { variants, selecting, .. } = self.common_mut();
        let overlapping = variants.read(&mut response, selecting.as_deref(), is_delta);
        let update = match self {
            Self::Delta(session) => session.handle_response(now, id, response, intern)?,
            Self::Sotw(session) => session.handle_response(now, id, response, intern),
        };
        Ok(update.map(|update| Update { overlapping, ..update }))
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, id: UpdateId) -> Option<Update> {
        either!(self, session => session.handle_timeout(now, id))
    }

    /// The next request, encoded.
    pub(crate) fn poll_transmit(&mut self, now: Instant, node: Bytes, max_request_size: usize) -> Option<Bytes> {
        match self {
            Self::Delta(session) => session
                .poll_transmit(now, Room::of(max_request_size).with(session.common.selecting.as_deref()))
                .map(|mut request| {
                    request.node = node;
                    request.encode_to_vec().into()
                }),
            Self::Sotw(session) => session.poll_transmit(now).map(|(mut request, names)| {
                request.node = node;
                let mut encoded = request.encode_to_vec();
                encoded.extend_from_slice(&names);
                encoded.into()
            }),
        }
    }
}
