//! An origin that is asked for each type by a method of its own (rule 1): the machine is one, and every type has a stream of the
//! transport to itself.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;
use xdstp_cache::{Cause, Interest, ResourceError, TypeUrl};

use crate::client::error::ProtocolError;
use crate::client::failure;
use crate::client::over::Over;
use crate::client::stream::Stream;
use crate::client::update::{Event, Update};
use crate::types;

impl Stream {
    /// Asks for each type on a stream of the transport of its own, whose first request names the node: use
    /// [`poll_transmit_by_type`](Self::poll_transmit_by_type) and [`handle_message_of`](Self::handle_message_of). What has no
    /// service among the rules of types is not asked for, and an [`Update`] says so.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Instant};
    /// # use bytes::Bytes;
    /// # use xds_transport::{Protocol, TypeRules, client::{Command, Interest, Stream}};
    /// let mut stream = Stream::new(Protocol::Delta, Bytes::new(), Arc::new(TypeRules::envoy())).per_type();
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    /// stream.apply(Command::Subscribe(clusters.into(), Interest::Wildcard));
    /// let now = Instant::now();
    /// stream.connected(now);
    /// assert!(stream.poll_transmit_by_type(now, |_| false).is_none());
    /// let (type_url, _request) = stream.poll_transmit_by_type(now, |_| true).unwrap();
    /// assert_eq!(type_url.as_str(), clusters);
    /// ```
    #[must_use]
    pub fn per_type(mut self) -> Self {
        self.over = Some(BTreeMap::new());
        self
    }

    /// As [`poll_transmit`](Self::poll_transmit): the next request of a type whose stream has `room` for one. A type that has no
    /// stream yet has room.
    pub fn poll_transmit_by_type(
        &mut self,
        now: Instant,
        room: impl FnMut(&TypeUrl) -> bool,
    ) -> Option<(TypeUrl, Bytes)> {
        self.poll_request(now, room).map(|(of, request)| (of.clone(), request))
    }

    /// As [`has_answer`](Self::has_answer), of a type whose stream has `room`.
    pub fn has_answer_by_type(&self, mut room: impl FnMut(&TypeUrl) -> bool) -> bool {
        let is_asked = |of: &TypeUrl| self.over.as_ref().and_then(|over| over.get(of)).is_none_or(|over| over.is_asked);
        let mut sessions = self.sessions.iter();
        self.may_send() && sessions.any(|((_, of), session)| session.has_answer() && is_asked(of) && room(of))
    }

    /// The types that something is wanted of, and that have a method of their own.
    pub fn types_asked(&self) -> impl Iterator<Item = &TypeUrl> {
        let wanted = self.sessions.iter().filter(|(_, session)| !session.is_unused()).map(|((_, of), _)| of);
        wanted.filter(|of| self.rules.service_of(of).is_some())
    }

    /// As [`handle_message`](Self::handle_message), of what came on the stream of a type.
    ///
    /// # Errors
    /// When the stream of this type should be closed, which is [over](Self::type_ended) with that. Those of others go on.
    pub fn handle_message_of(&mut self, now: Instant, type_url: &TypeUrl, message: Bytes) -> Result<(), ProtocolError> {
        let handled = self.walk(message).and_then(|response| {
            if response.type_url != type_url.as_str() {
                let came = response.type_url.as_str().to_owned();
                return Err(ProtocolError::OtherType { asked: type_url.clone(), came });
            }
            self.answered(type_url);
            self.handle_response(now, response)
        });
        handled.inspect_err(|_| self.type_ended(type_url))
    }

    /// What is wanted of a type that came back is not refused any more.
    fn answered(&mut self, type_url: &TypeUrl) {
        if let Some(over) = &mut self.over
            && over.get(type_url).is_some_and(|over| over.is_asked)
        {
            over.remove(type_url);
        }
    }

    /// The stream of a type is over, and those of others go on: what is wanted of it is not asked for until it is to be
    /// [again](Self::ask_again), or there is another [connection](Self::connected). What waits for an answer has none, which says
    /// nothing of what is not there.
    pub fn type_ended(&mut self, type_url: &TypeUrl) {
        let Some(over) = &mut self.over else { return };
        over.entry(type_url.clone()).or_default().is_asked = false;
        if let Some(session) = self.session(type_url.clone()) {
            session.disconnected();
        }
    }

    /// The same, and each that is wanted of the type has this error, until the origin answers for the type: it is told once. The
    /// error must be one that [passes](ResourceError::is_transient).
    pub fn refuse_type(&mut self, type_url: &TypeUrl, error: ResourceError) {
        self.type_ended(type_url);
        let wanted = self.session(type_url.clone()).map(|session| session.wanted()).unwrap_or_default();
        let Some(over) = self.over.as_mut().and_then(|over| over.get_mut(type_url)) else { return };
        over.error = Some(error.found_by(Cause::Unasked));
        over.untold.extend(wanted.into_iter().filter(|interest| !over.told.contains(interest)));
    }

    /// The next request for a type opens its stream again.
    pub fn ask_again(&mut self, type_url: &TypeUrl) {
        if let Some(over) = self.over.as_mut().and_then(|over| over.get_mut(type_url)) {
            over.is_asked = true;
        }
    }

    /// Somebody wants something of a type.
    pub(super) fn tell_if_refused(&mut self, type_url: TypeUrl, interest: Option<Interest>) {
        let (Some(all), Some(interest)) = (&mut self.over, interest) else { return };
        if self.rules.service_of(&type_url).is_none() {
            let error = Some(types::no_method(&type_url));
            all.entry(type_url.clone()).or_insert_with(|| Over { error, ..Over::default() });
        }
        if let Some(over) = all.get_mut(&type_url).filter(|over| over.error.is_some() && !over.is_asked) {
            over.untold.insert(interest);
        }
    }

    /// Nobody wants it any more: who does again is told again.
    pub(super) fn forget_refused(&mut self, type_url: &TypeUrl, interest: &Interest) {
        if let Some(over) = self.over.as_mut().and_then(|over| over.get_mut(type_url)) {
            over.told.remove(interest);
            over.untold.remove(interest);
        }
    }

    /// The streams are over: the next ones may fare better. What has no method has none there either, for as long as it is wanted.
    pub(super) fn ask_again_for_all(&mut self) {
        let Self { rules, sessions, .. } = self;
        if let Some(over) = &mut self.over {
            let is_wanted = |of: &TypeUrl| sessions.contains_key(&(rules.of(of).rank, of.clone()));
            over.retain(|type_url, _| rules.service_of(type_url).is_none() && is_wanted(type_url));
        }
    }

    /// What was not told of the errors of a type, all at once.
    pub(super) fn next_refused(&mut self) -> Option<Event> {
        let over = self.over.as_mut()?;
        let (type_url, over) = over.iter_mut().find(|(_, over)| !over.untold.is_empty())?;
        let (type_url, untold) = (type_url.clone(), std::mem::take(&mut over.untold));
        let error = over.error.clone()?;
        let errors: Vec<_> = untold.iter().filter_map(|interest| failure::of(interest, error.clone())).collect();
        over.told.extend(untold);
        if let Some(session) = self.session(type_url.clone()) {
            session.failed(&errors);
        }
        let update = Update::new(self.update_id(), type_url);
        Some(Event::Update(Update { errors, ..update }))
    }
}
