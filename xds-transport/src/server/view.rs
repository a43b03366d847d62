//! One session of a stream, as others see it: for admin pages, and for CSDS.

use std::fmt;
use std::time::Instant;

use xdstp_cache::{SubscriberId, TypeUrl};
use xdstp_uri::ResourceName;

use crate::server::session::{Answered, Session};
use crate::server::tally::Tally;

/// One session of a stream.
#[non_exhaustive]
pub struct SessionView<'a> {
    /// Its type.
    pub type_url: &'a TypeUrl,
    /// Its subscriber at the source.
    pub subscriber: SubscriberId,
    /// Whether it asked for everything.
    pub wildcard: bool,
    /// What it did so far.
    pub tally: &'a Tally,
    /// The newest response that its client accepted.
    pub accepted: Option<Mark>,
    /// Since when it is the client's turn, where it has not answered what it was sent.
    pub unanswered_since: Option<Instant>,
    session: &'a Session,
}

/// A response that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mark {
    /// Its nonce.
    pub nonce: u64,
    /// When the answer came.
    pub at: Instant,
}

/// What a client said of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reception {
    /// Nothing yet: a response that has it is not answered.
    Unanswered,
    /// It refused the response with this nonce, which has it. It may have been refused for another's sake (rule 29).
    Refused {
        /// The nonce.
        nonce: u64,
    },
    /// It accepted the last response that had it.
    Accepted,
    /// It answered. As it had refused more than is kept of one session, it is not known whether this was among it, until it accepts it.
    Unknown,
}

impl<'a> SessionView<'a> {
    pub(crate) fn new(type_url: &'a TypeUrl, session: &'a Session) -> Self {
        let (subscriber, wildcard, tally) = (session.id(), session.is_wildcard(), session.tally());
        let accepted = session.accepted().map(|(nonce, at)| Mark { nonce, at });
        let unanswered_since = session.unanswered_since();
        Self { type_url, subscriber, wildcard, tally, accepted, unanswered_since, session }
    }

    /// What the client said of a resource that it was sent: which these are, its source knows. Of more than a thousand
    /// that it refuses, the others are [unknown](Reception::Unknown).
    ///
    /// ```
    /// # use std::time::Instant;
    /// # use prost::Message;
    /// # use xds_transport::wire::DeltaDiscoveryRequest;
    /// use xds_transport::server::{Reception, Settings, Stream};
    /// # use xds_transport::{Frame, Protocol, Put, TypeRules};
    /// # use xdstp_cache::{Cache, Options};
    ///
    /// # let (now, clusters) = (Instant::now(), "type.googleapis.com/envoy.config.cluster.v3.Cluster".into());
    /// # let mut cache = Cache::new(Options::default());
    /// let backend = "backend".parse()?;
    /// # let resource = Frame::of_message(&clusters, b"\x0a\x07backend").into_resource(None);
    /// # let mut edit = cache.edit(now);
    /// # edit.put_checked(&TypeRules::envoy(), &clusters, &backend, resource).unwrap();
    /// # let _ = edit.finish();
    /// let mut stream = Stream::new(Protocol::Delta, Settings::default());
    /// # let request = DeltaDiscoveryRequest { type_url: clusters.to_string(), ..Default::default() };
    /// # stream.handle_message(now, request.encode_to_vec().into(), &mut cache).unwrap();
    /// # stream.poll_transmit(now, &mut cache).unwrap();
    /// // A client asks for clusters, is sent one, and has not answered.
    /// let session = stream.sessions().next().unwrap();
    /// assert_eq!(session.reception(&backend), Reception::Unanswered);
    /// assert_eq!(session.unanswered_since, Some(now));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn reception(&self, name: &ResourceName) -> Reception {
        if self.session.awaits_answer_of(name) {
            return Reception::Unanswered;
        }
        match self.session.answered_of(name) {
            Answered::Refused(nonce) => Reception::Refused { nonce },
            Answered::Accepted => Reception::Accepted,
            Answered::Unknown => Reception::Unknown,
        }
    }

    /// The version of all it has, as its client accepted it: over SotW, once there is one.
    pub fn accepted_version(&self) -> Option<&'a str> {
        self.session.accepted_version()
    }
}

impl fmt::Debug for SessionView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { type_url, subscriber, wildcard, tally, accepted, unanswered_since, session: _ } = self;
        f.debug_struct("SessionView")
            .field("type_url", type_url)
            .field("subscriber", subscriber)
            .field("wildcard", wildcard)
            .field("tally", tally)
            .field("accepted", accepted)
            .field("unanswered_since", unanswered_since)
            .finish_non_exhaustive()
    }
}
