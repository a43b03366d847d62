//! An origin that is asked for each type by a method of its own (rule 1): the machine is one, and every type has a stream of the
//! transport to itself.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;
use xdstp_cache::{Interest, ResourceError, TypeUrl};

use crate::client::error::ProtocolError;
use crate::client::failure;
use crate::client::over::Over;
use crate::client::stream::Stream;
use crate::client::update::{Event, Update};
use crate::types;

/// `google.rpc.Code.INTERNAL`.
const INTERNAL: i32 = 13;

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

    /// As [`handle_message`](Self::handle_message), of what came on the stream of a type. Whether it is of that type: if not, its
    /// stream is to be closed, and it is [refused](Self::refuse_type).
    ///
    /// # Errors
    /// As [`handle_message`](Self::handle_message): all streams are to be closed.
    pub fn handle_message_of(
        &mut self,
        now: Instant,
        type_url: &TypeUrl,
        message: Bytes,
    ) -> Result<bool, ProtocolError> {
        let walked = self.walk(message);
        if let Ok(response) = &walked
            && response.type_url != type_url.as_str()
        {
            let message = format!("the origin answers who asks for {type_url} with {:?}", response.type_url);
            self.refuse_type(type_url, ResourceError::new(INTERNAL, message));
            return Ok(false);
        }
        if let Some(over) = &mut self.over
            && over.get(type_url).is_some_and(|over| over.is_asked)
        {
            over.remove(type_url);
        }
        self.handle_walked(now, walked)?;
        Ok(true)
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
        over.error = Some(error);
        let untold: Vec<_> = wanted.into_iter().filter(|interest| !over.told.contains(interest)).collect();
        self.tell_refused(type_url.clone(), untold);
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
        if all.get(&type_url).is_some_and(|over| over.error.is_some() && !over.is_asked) {
            self.tell_refused(type_url, vec![interest]);
        }
    }

    /// Nobody wants it any more: who does again is told again.
    pub(super) fn forget_refused(&mut self, type_url: &TypeUrl, interest: &Interest) {
        if let Some(over) = self.over.as_mut().and_then(|over| over.get_mut(type_url)) {
            over.told.remove(interest);
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

    fn tell_refused(&mut self, type_url: TypeUrl, interests: Vec<Interest>) {
        let mut update = Update::new(self.update_id(), type_url);
        let Some(over) = self.over.as_mut().and_then(|over| over.get_mut(&update.type_url)) else { return };
        let Some(error) = &over.error else { return };
        update.errors.extend(interests.iter().filter_map(|interest| failure::of(interest, error.clone())));
        over.told.extend(interests);
        if update.errors.is_empty() {
            return;
        }
        if let Some(session) = self.session(update.type_url.clone()) {
            session.failed(&update.errors);
        }
        self.events.push_back(Event::Update(update));
    }
}
