//! What a session is to its source and to its client, whichever protocol it speaks.

use std::time::Instant;

use xdstp_cache::{Pulled, SubscriberId, TypeUrl};
use xdstp_uri::ResourceName;

use crate::Protocol;
use crate::server::session::located::Located;
use crate::server::session::outgoing::Outgoing;
use crate::server::session::refreshes::Refreshes;
use crate::server::session::refusals::Refusals;
use crate::server::session::refused::Refused;
use crate::server::session::spelling::Spelling;
use crate::server::source::{Answer, Source, Took};
use crate::server::tally::Tally;
use crate::server::transmit::Transmit;
use crate::wire::Status;

/// A subscriber of the source, and what its client was told.
pub(crate) struct Subscriber {
    pub(crate) id: SubscriberId,
    pub(crate) tally: Tally,
    pub(crate) refreshes: Refreshes,
    /// The newest response that the client accepted, and when.
    pub(crate) accepted: Option<(u64, Instant)>,
    /// Since when it is the client's turn, as far as it is.
    pub(crate) turn_since: Option<Instant>,
    pub(crate) refused: Refused,
    pub(crate) refusals: Refusals,
    /// The source is still looking for what there is to say.
    pub(crate) paused: bool,
    /// What is asked for with dynamic parameters.
    pub(crate) located: Option<Box<Located>>,
}

impl Subscriber {
    /// With the first request of its type.
    pub(crate) fn open(type_url: &TypeUrl, source: &mut impl Source) -> Self {
        let id = source.open(type_url);
        let tally = Tally { requests: 1, ..Tally::default() };
        let (refreshes, refused, refusals) = (Refreshes::default(), Refused::default(), Refusals::default());
        Self { id, tally, refreshes, accepted: None, turn_since: None, refused, refusals, paused: false, located: None }
    }

    /// Whether there is something to pull, of what is asked for without parameters or with them.
    #[inline]
    pub(crate) fn has_work(&self, source: &impl Source) -> bool {
        source.has_work(self.id) || self.located.as_ref().is_some_and(|located| located.has_work(source))
    }

    #[inline]
    pub(crate) fn has_additions(&self, source: &impl Source) -> bool {
        source.has_additions(self.id) || self.located.as_ref().is_some_and(|located| located.has_additions(source))
    }

    /// A number that is another one when a removal has joined those that wait.
    #[inline]
    pub(crate) fn newest_removal(&self, source: &impl Source) -> u64 {
        let located = self.located.iter().flat_map(|located| located.ids());
        located.map(|id| source.newest_removal(id)).fold(source.newest_removal(self.id), u64::wrapping_add)
    }

    /// When something must be refreshed.
    #[inline]
    pub(crate) fn next_refresh(&self) -> Option<Instant> {
        let located = self.located.as_ref().and_then(|located| located.next_refresh());
        self.refreshes.next().into_iter().chain(located).min()
    }

    /// Whether a name is asked for, by whatever interest.
    pub(crate) fn asks_for(&self, name: &ResourceName, source: &impl Source) -> bool {
        let located = self.located.iter().flat_map(|located| located.ids());
        std::iter::once(self.id).chain(located).any(|id| source.covers(id, name))
    }

    /// Another response is to be written, perhaps the `first`.
    #[inline]
    pub(crate) fn begin(&mut self, first: bool, source: &impl Source) {
        let Self { id, located, refusals, .. } = self;
        let ids = std::iter::once(*id).chain(located.iter().flat_map(|located| located.ids()));
        refusals.begin(first, || ids.map(|id| source.refusals(id)).sum());
    }

    /// Whether what was put before is of a type of which a collection is refused, and that was not known.
    #[inline]
    pub(crate) fn was_pulled(&mut self, pulled: Pulled) -> bool {
        self.paused = pulled.paused;
        self.refusals.learn(pulled.refused)
    }

    /// Why collections are not sent that something in a response is of, or `all` that are asked for.
    pub(crate) fn push_refusals(
        &mut self,
        all: bool,
        protocol: Protocol,
        spelling: &Spelling,
        transmit: &mut Transmit,
        source: &mut impl Source,
    ) {
        let Self { id, located, refusals, .. } = self;
        let ids = std::iter::once(*id).chain(located.iter().flat_map(|located| located.ids()));
        refusals.push(all, ids, protocol, spelling, transmit, source);
    }

    /// A name is sent again, if it is asked for.
    pub(crate) fn resend(&self, name: &ResourceName, source: &mut impl Source) {
        let located = self.located.iter().flat_map(|located| located.ids());
        std::iter::once(self.id).chain(located).for_each(|id| _ = source.resend(id, name));
    }

    /// The stream is over.
    pub(crate) fn end(&self, source: &mut impl Source) {
        source.close(self.id, &self.tally);
        let located = self.located.iter().flat_map(|located| located.ids());
        located.for_each(|id| source.close(id, &Tally::default()));
    }

    /// The client answered a response.
    pub(crate) fn answered(
        &mut self,
        now: Instant,
        (nonce, sent): (u64, Instant),
        error: Option<&Status>,
        source: &mut impl Source,
    ) {
        self.tally.answered(now, nonce, error);
        // Of several responses it may answer one after the other.
        self.turn_since = Some(now);
        if error.is_none() {
            self.accepted = Some((nonce, now));
            source.took(self.id, Took::ToAccept { sent, accepted: now });
        }
    }

    /// The same, told to its source: of each response that it is an answer to.
    pub(crate) fn tell(
        &self,
        nonce: u64,
        error: Option<&Status>,
        resources: &[ResourceName],
        source: &mut impl Source,
    ) {
        let error = error.map(|error| error.message.as_str());
        source.answered(self.id, &Answer { nonce, error, resources });
    }

    /// The source was asked for what is new, of which there were so many resources, if a response came of it.
    #[inline]
    pub(crate) fn asked(&mut self, now: Instant, resources: Option<u32>, source: &mut impl Source) {
        let located = self.located.iter().flat_map(|located| located.ids());
        // Asked for all of them: what was not sent of it is told, or waits for other reasons.
        let heard = std::iter::once(self.id).chain(located).filter_map(|id| source.heard_at(id)).min();
        if let Some(heard) = heard.filter(|_| resources.is_some_and(|resources| resources > 0)) {
            source.took(self.id, Took::ToSend { heard, sent: now });
        }
    }

    /// A response has all there is to say: it ends with what every response ends with, and counts as sent.
    pub(crate) fn close(
        &mut self,
        transmit: &mut Transmit,
        protocol: Protocol,
        version: Option<&str>,
        nonce: u64,
        outgoing: &Outgoing<'_>,
    ) {
        transmit.close(protocol, version, nonce, outgoing.identifier);
        self.tally.sent(transmit);
    }
}
