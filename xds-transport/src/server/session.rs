//! One type of one stream. What both protocols do alike is here and in the [`Subscriber`]; where they differ, each has a
//! file of its own.

mod counts;
mod delta;
mod located;
mod odd;
mod opening;
mod outgoing;
mod reference;
mod refreshes;
mod refusals;
mod refused;
mod room;
mod sotw;
mod spelling;
mod subscriber;

use std::time::Instant;

use xdstp_cache::SubscriberId;
use xdstp_uri::ResourceName;

use crate::server::error::ProtocolError;
use crate::server::session::delta::Delta;
use crate::server::session::sotw::Sotw;
use crate::server::session::subscriber::Subscriber;
use crate::server::source::Source;
use crate::server::tally::Tally;
use crate::server::transmit::Transmit;
use crate::wire::{DeltaDiscoveryRequest, DiscoveryRequest};

pub(crate) use delta::versions;
pub(crate) use opening::Opening;
pub(crate) use outgoing::{Outgoing, Tells};
pub(crate) use reference::Reference;
pub(crate) use refused::Answered;
pub(crate) use room::Room;
pub(crate) use sotw::Names;

/// The protocol state of one type, in the protocol of its stream.
pub(crate) enum Session {
    Sotw(Box<Sotw>),
    Delta(Box<Delta>),
}

macro_rules! either {
    ($self:ident, $session:ident => $call:expr) => {
        match $self {
            Self::Sotw($session) => $call,
            Self::Delta($session) => $call,
        }
    };
}

/// Requests.
impl Session {
    /// Opens a session with the first request of its type. There is one also when the request ends the stream: its
    /// subscribers are to be closed.
    pub(crate) fn open_delta(
        opening: Opening<'_>,
        request: &DeltaDiscoveryRequest,
        names: &[&str],
        source: &mut impl Source,
    ) -> (Self, Result<(), ProtocolError>) {
        let (session, opened) = Delta::open(opening, request, names, source);
        (Self::Delta(Box::new(session)), opened)
    }

    /// The same over SotW.
    pub(crate) fn open_sotw(
        opening: Opening<'_>,
        request: &DiscoveryRequest,
        names: &Names<'_>,
        source: &mut impl Source,
    ) -> (Self, Result<(), ProtocolError>) {
        let (session, opened) = Sotw::open(opening, request, names, source);
        (Self::Sotw(Box::new(session)), opened)
    }

    /// Nobody is there to send an ACK.
    pub(crate) fn expect_no_answer(&mut self) {
        either!(self, session => session.expect_no_answer());
    }
}

/// What it has to say, and says.
impl Session {
    pub(crate) fn has_work(&self, source: &impl Source) -> bool {
        either!(self, session => session.has_work(source))
    }

    /// Whether it has anything to say but removals, or errors that are some.
    pub(crate) fn has_additions(&self, source: &impl Source) -> bool {
        either!(self, session => session.has_additions(source))
    }

    /// Whether a response may go out before another is acknowledged.
    pub(crate) fn has_room(&self) -> bool {
        either!(self, session => session.has_room())
    }

    /// Whether a response went out; over SotW, one that was a full state.
    pub(crate) fn has_responded(&self) -> bool {
        either!(self, session => session.has_responded())
    }

    /// When something must be refreshed.
    pub(crate) fn next_refresh(&self) -> Option<Instant> {
        self.subscriber().next_refresh()
    }

    /// Whether the last look was not over when it paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.subscriber().paused
    }

    /// The next response, if one is due.
    pub(crate) fn poll_transmit(
        &mut self,
        tells: Tells,
        outgoing: &mut Outgoing<'_>,
        source: &mut impl Source,
    ) -> Option<Transmit> {
        either!(self, session => {
            let transmit = session.poll_transmit(tells, outgoing, source);
            // A look that pauses goes on.
            if transmit.is_some() || !session.subscriber.paused {
                let resources = transmit.as_ref().map(|transmit| transmit.resources);
                session.subscriber.asked(outgoing.now, resources, source);
            }
            transmit
        })
    }
}

/// What its client said of what it was sent.
impl Session {
    pub(crate) fn accepted(&self) -> Option<(u64, Instant)> {
        self.subscriber().accepted
    }

    pub(crate) fn accepted_version(&self) -> Option<&str> {
        match self {
            Self::Sotw(session) => session.accepted_version(),
            Self::Delta(_) => None,
        }
    }

    /// Since when a response is not answered.
    pub(crate) fn unanswered_since(&self) -> Option<Instant> {
        let awaits = either!(self, session => session.awaits_answer());
        self.subscriber().turn_since.filter(|_| awaits)
    }

    /// Whether a response that has this resource is not answered.
    pub(crate) fn awaits_answer_of(&self, name: &ResourceName) -> bool {
        either!(self, session => session.awaits_answer_of(name))
    }

    /// What became of the last response that had this resource, which was answered.
    pub(crate) fn answered_of(&self, name: &ResourceName) -> Answered {
        match self {
            Self::Sotw(session) => session.answered_of(name),
            Self::Delta(session) => session.subscriber.refused.answered(name),
        }
    }
}

/// What it is.
impl Session {
    fn subscriber(&self) -> &Subscriber {
        either!(self, session => &session.subscriber)
    }

    pub(crate) fn id(&self) -> SubscriberId {
        self.subscriber().id
    }

    /// A number that is another one when a removal has joined those that wait.
    pub(crate) fn newest_removal(&self, source: &impl Source) -> u64 {
        self.subscriber().newest_removal(source)
    }

    /// A name is sent again, if it is asked for.
    pub(crate) fn resend(&self, name: &ResourceName, source: &mut impl Source) {
        self.subscriber().resend(name, source);
    }

    /// The stream is over.
    pub(crate) fn end(&self, source: &mut impl Source) {
        self.subscriber().end(source);
    }

    /// With how many sets of dynamic parameters it asks.
    pub(crate) fn selectors(&self) -> usize {
        self.subscriber().located.as_ref().map_or(0, |located| located.selectors())
    }

    pub(crate) fn has_subscriber(&self, id: SubscriberId) -> bool {
        let located = self.subscriber().located.as_ref();
        self.id() == id || located.is_some_and(|located| located.ids().any(|own| own == id))
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.subscriber().tally
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        either!(self, session => session.is_wildcard())
    }

    /// How many names it keeps, as they count.
    pub(crate) fn names(&self) -> usize {
        either!(self, session => session.names())
    }

    /// How many names it brought along, as they count: most are compared before long, but an origin that is silent may keep
    /// all of them.
    pub(crate) fn brought(&self) -> usize {
        match self {
            Self::Sotw(_) => 0,
            Self::Delta(session) => session.brought(),
        }
    }
}
