//! The calls that carry what one stream asks for: one, or one for each type.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use xds_transport::grpc::client::{Ads, PerType, TypeEvent};
use xdstp_cache::{ResourceError, TypeUrl};

use super::Upstream;
use super::drive::now;
use super::ended;
use super::pool::Place;
use crate::endpoint::{Endpoint, Methods};

pub(super) enum Calls {
    One {
        ads: Ads,
        /// It was told what the origin answered with.
        opened: bool,
    },
    PerType {
        calls: PerType,
        /// When the token that they carry was read, if they carry one.
        since: Option<Instant>,
    },
}

/// What is said of an end without a status.
const CLOSED: &str = "the origin closed the stream";
/// After so long a token may be over, and there may be another.
const AGED: Duration = Duration::from_secs(300);

/// What happened on one of them.
pub(super) enum Called {
    /// What it was answered with, and the type that it is for, if that has a call of its own.
    Opened(Option<TypeUrl>, MetadataMap),
    /// A response, and the type that it came for, if that has a call of its own.
    Message(Option<TypeUrl>, Bytes),
    /// That of a type is over, and those of others are not.
    TypeEnded {
        of: TypeUrl,
        /// Why, as an error that passes.
        error: ResourceError,
        /// It was for a message that is longer than is taken.
        is_too_long: bool,
    },
    /// All are over.
    Ended(String),
    /// The same, because there is no method for any type that was asked for.
    NoMethod(String),
    /// For a message that is longer than is taken.
    TooLong(String),
}

/// The requests of a machine, as there is room for them.
pub(super) struct Requests<'a> {
    pub(super) upstream: &'a mut Upstream,
    /// There are commands that were not passed on yet.
    pub(super) more: bool,
    /// What the machine waits for otherwise.
    pub(super) due: Option<Instant>,
    /// Told when what the machine waits for is not what it was.
    pub(super) wake: &'a Notify,
}

impl Requests<'_> {
    fn next(&mut self) -> Option<Bytes> {
        let may = !self.more || self.upstream.has_answer();
        if may { self.ask(Upstream::poll_transmit) } else { None }
    }

    fn next_of(&mut self, room: &mut dyn FnMut(&TypeUrl) -> bool) -> Option<(TypeUrl, Bytes)> {
        // One that has no room lets nothing of others pass.
        let may = !self.more || self.upstream.has_answer_by_type(&mut *room);
        if may { self.ask(|upstream, now| upstream.poll_transmit_by_type(now, room)) } else { None }
    }

    fn ask<T>(&mut self, poll: impl FnOnce(&mut Upstream, Instant) -> Option<T>) -> Option<T> {
        let Self { upstream, due, wake, .. } = self;
        let request = poll(upstream, now());
        if request.is_some() || upstream.poll_timeout() != *due {
            // A request may start a timer, or wait for its turn: then `due` is not what it was.
            wake.notify_one();
        }
        request
    }
}

impl Calls {
    pub(super) fn open(endpoint: &Endpoint, place: &Place, metadata: MetadataMap) -> Self {
        let (channel, protocol, limit) = (place.channel(), endpoint.protocol, endpoint.max_message_size);
        let since = metadata.contains_key("authorization").then(now);
        let one = |ads| Self::One { ads, opened: false };
        match &endpoint.methods {
            Methods::Aggregated => one(Ads::open_with_metadata(channel, protocol, limit, metadata)),
            Methods::OfType(service) => one(Ads::open_for_type(channel, service, protocol, limit, metadata)),
            Methods::PerType => {
                let calls = PerType::open(channel, Arc::clone(&endpoint.rules), protocol, limit, metadata);
                Self::PerType { calls, since }
            }
        }
    }

    /// Loses nothing when it is dropped.
    pub(super) async fn next(&mut self, endpoint: &Endpoint, mut requests: Requests<'_>) -> Called {
        let happened = match self {
            Self::One { ads, opened: opened @ false } => ads.metadata(|| requests.next()).await.map(|metadata| {
                *opened = true;
                Some(Called::Opened(None, metadata))
            }),
            Self::One { ads, .. } => {
                let message = ads.next(|| requests.next()).await;
                message.map(|message| message.map(|message| Called::Message(None, message)))
            }
            Self::PerType { calls, since } => {
                let event = calls.next(|room| requests.next_of(room)).await;
                let is_aged = since.and_then(|since| since.checked_add(AGED)).is_some_and(|at| at <= now());
                event.and_then(|event| event.map(|event| called(endpoint, event, is_aged)).transpose())
            }
        };
        match happened {
            Ok(Some(called)) => called,
            Ok(None) => Called::Ended(CLOSED.into()),
            Err(status) => {
                let words = ended::words(&status, endpoint.protocol, &endpoint.methods);
                match endpoint.methods {
                    Methods::PerType if ended::has_no_method(&status) => Called::NoMethod(words),
                    _ if ended::is_too_long(&status) => Called::TooLong(words),
                    _ => Called::Ended(words),
                }
            }
        }
    }

    /// When bytes of a response came in last.
    pub(super) fn received_at(&self) -> Option<Instant> {
        match self {
            Self::One { ads, .. } => ads.received_at(),
            Self::PerType { calls, .. } => calls.received_at(),
        }
    }

    /// Closes that of a type, if it has its own. Whether none is left.
    pub(super) fn close(&mut self, of: &TypeUrl) -> bool {
        match self {
            Self::One { .. } => true,
            Self::PerType { calls, .. } => {
                calls.close(of);
                calls.is_empty()
            }
        }
    }
}

/// # Errors
/// It ended for what all carry, which is read anew for the next ones.
fn called(endpoint: &Endpoint, event: TypeEvent, is_aged: bool) -> Result<Called, Status> {
    Ok(match event {
        TypeEvent::Opened(of, metadata) => Called::Opened(Some(of), metadata),
        TypeEvent::Message(of, message) => Called::Message(Some(of), message),
        TypeEvent::Unimplemented(of, status) => {
            let text = ended::text(&status);
            let service = endpoint.rules.service_of(&of);
            let words = service.map(|service| ended::no_method(service, endpoint.protocol, &text)).unwrap_or(text);
            Called::TypeEnded { of, error: ResourceError::new(status.code() as i32, words), is_too_long: false }
        }
        TypeEvent::Ended(_, Some(status)) if is_aged && status.code() == Code::Unauthenticated => return Err(status),
        TypeEvent::Ended(of, status) => {
            let is_too_long = status.as_ref().is_some_and(ended::is_too_long);
            let words = status.map_or_else(|| CLOSED.to_owned(), |status| ended::words_of_type(&status));
            // Whatever the code is, it is about the stream, and of no resource.
            Called::TypeEnded { of, error: ResourceError::new(Code::Unavailable as i32, words), is_too_long }
        }
    })
}
