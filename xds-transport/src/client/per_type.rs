//! An origin that is asked for each type by a method of its own (rule 1): the machine is one, and every type has a stream of the
//! transport to itself.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;
use xdstp_cache::{Interest, ResourceError, TypeUrl};

use crate::client::error::ProtocolError;
use crate::client::failure;
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
        self.refused = Some(BTreeMap::new());
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

    /// As [`handle_message`](Self::handle_message), of what came on the stream of a type. If it is of another one, the origin is
    /// [not asked](Self::refuse_type) for either.
    ///
    /// # Errors
    /// As [`handle_message`](Self::handle_message): all streams are to be closed.
    pub fn handle_message_of(&mut self, now: Instant, type_url: &TypeUrl, message: Bytes) -> Result<(), ProtocolError> {
        let walked = self.walk(message);
        if let Ok(response) = &walked
            && response.type_url != type_url.as_str()
        {
            let message = format!("the origin answers who asks for {type_url} with {:?}", response.type_url);
            self.refuse_type(type_url, ResourceError::new(INTERNAL, message));
            return Ok(());
        }
        self.handle_walked(now, walked)
    }

    /// The origin has no such method: what is wanted of the type is not asked for until the next
    /// [connection](Self::connected), and each of it has this error. Other types go on.
    pub fn refuse_type(&mut self, type_url: &TypeUrl, error: ResourceError) {
        let Some(refused) = &mut self.refused else { return };
        refused.insert(type_url.clone(), error.clone());
        let Some(session) = self.session(type_url.clone()) else { return };
        // What waits for an answer has none: that says nothing of what is not there.
        session.disconnected();
        let wanted = session.wanted();
        self.tell_refused(type_url.clone(), &wanted, &error);
    }

    /// Somebody wants something of a type.
    pub(super) fn tell_if_refused(&mut self, type_url: TypeUrl, interest: Option<Interest>) {
        let (Some(refused), Some(interest)) = (&mut self.refused, interest) else { return };
        if self.rules.service_of(&type_url).is_none() {
            refused.entry(type_url.clone()).or_insert_with(|| types::no_method(&type_url));
        }
        if let Some(error) = refused.get(&type_url).cloned() {
            self.tell_refused(type_url, &[interest], &error);
        }
    }

    /// The streams are over: the next ones may fare better.
    pub(super) fn ask_again_for_refused(&mut self) {
        let rules = &self.rules;
        if let Some(refused) = &mut self.refused {
            refused.retain(|type_url, _| rules.service_of(type_url).is_none());
        }
    }

    fn tell_refused(&mut self, type_url: TypeUrl, interests: &[Interest], error: &ResourceError) {
        let mut update = Update::new(self.update_id(), type_url);
        update.errors.extend(interests.iter().filter_map(|interest| failure::of(interest, error.clone())));
        if !update.errors.is_empty() {
            self.events.push_back(Event::Update(update));
        }
    }
}
