//! Where a server session gets its change sets.

mod cache;
pub(crate) mod forward;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use xdstp_cache::{
    Failed, Interest, Place, Pull, Pulled, Removals, Resource, ResourceError, Selector, SubscriberId, TypeUrl,
    Unanswered, Version, Visited,
};
use xdstp_uri::{CanonicalText, ResourceName};

use crate::frame::Frame;
use crate::server::error::{NodeError, ProtocolError, Refused};
use crate::server::image::Image;
use crate::server::tally::Tally;

/// What a client said of a response.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Answer<'a> {
    /// The nonce of the response.
    pub nonce: u64,
    /// Why it was rejected, if it was.
    pub error: Option<&'a str>,
    /// What is in it, unless the client left that since; nothing, where it is a full state, which has all there is.
    pub resources: &'a [ResourceName],
}

/// What took time with a subscriber, between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took {
    /// From when the source [heard](Source::heard_at) of what is new until a response with resources began to be sent. It has
    /// waited for a client that reads slowly, too.
    ToSend {
        /// When the source heard.
        heard: Instant,
        /// When the response began to be sent.
        sent: Instant,
    },
    /// From when a response began to be sent until it was accepted.
    ToAccept {
        /// When it began to be sent.
        sent: Instant,
        /// When it was accepted.
        accepted: Instant,
    },
}

impl Took {
    /// How long.
    pub fn time(self) -> Duration {
        let (Self::ToSend { heard: from, sent: until } | Self::ToAccept { sent: from, accepted: until }) = self;
        until.saturating_duration_since(from)
    }
}

/// What a stream's sessions pull from: a [`Cache`](xdstp_cache::Cache), a relay's routes over several, a store of one's own.
///
/// What a source visits is what the protocol lets a client be sent: what it is interested in and nothing else (rule
/// 63), each name once whatever covers it (rule 103), a change once, and nothing that is as it was (rule 37), names
/// that do not exist once for each subscription (rules 70, 71, 108), and these again when they do (rule 65), additions
/// before removals (rule 134). Names are compared parsed (rule 94), and a glob covers one level (rules 97, 98).
/// [`Cache`](xdstp_cache::Cache) holds all of this.
///
/// Whether a source of one's own does can be tested, by `testing::conforms` behind the feature `testing`.
///
/// The source computes the change set; the session decides dialect, budget and nonce. Every method is one short call,
/// so that whoever guards the source with a lock holds it for just that call.
pub trait Source {
    /// The encoded node of the stream's client: once, before anything is opened (rule 4).
    ///
    /// # Errors
    /// When this client cannot be served: its stream ends with the reason. A source that leaves this out serves every
    /// node alike.
    fn identify(&mut self, _node: &Bytes) -> Result<(), NodeError> {
        Ok(())
    }

    /// A subscriber for one type of the stream.
    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId;

    /// A subscriber that selects among the variants of names by this (TP2). A source that leaves this out has no variants.
    fn open_selecting(&mut self, type_url: &TypeUrl, _selector: &Selector) -> SubscriberId {
        self.open(type_url)
    }

    /// Whether a subscriber is sent variants of names for its client's sake, though the client sends no parameters (TP2): what a
    /// client brings along does not say which variants it has, so that of an equal version it may hold another content. A source
    /// that leaves this out does so for nobody.
    fn selects(&self, _id: SubscriberId) -> bool {
        false
    }

    /// The subscriber is gone, having done this much.
    fn close(&mut self, id: SubscriberId, tally: &Tally);

    /// Adds an interest; a repeated one is sent again in full (rule 48). Whether it is new.
    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool;

    /// Does the same where a text is the canonical form of a name that the source knows: the text is not parsed then. The
    /// name, as the source keeps it for all its subscribers, comes with whether the interest is new: none needs a text of
    /// its own. Nothing is done where it knows no such name, as a source that leaves this out knows none.
    fn subscribe_known(&mut self, _id: SubscriberId, _text: &CanonicalText<'_>) -> Option<(ResourceName, bool)> {
        None
    }

    /// Ends an interest. Whether there was one.
    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool;

    /// Whether a subscriber is interested in a name, by whatever interest. Asked where it has variants, and of what is on its
    /// way to a client that asks for the wildcard: what it says yes to is [resumed](Self::resume).
    fn covers(&self, _id: SubscriberId, _name: &ResourceName) -> bool {
        true
    }

    /// What the client holds already (`initial_resource_versions`, nothing over SotW): once, right after the first
    /// subscriptions. What was subscribed before belongs together with it: an origin may be asked for both in one request.
    ///
    /// And when a client asks anew for a collection that it left, what is still on its way to it from before, each name
    /// with a version that no resource has.
    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>);

    /// Visits what the subscriber has not been sent: see [`Cache::pull`](xdstp_cache::Cache::pull).
    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled;

    /// Where a subscriber is that others may be, too, who are visited the same from there: see
    /// [`Cache::place`](xdstp_cache::Cache::place). And what was written for one of them, if that is [kept](Self::keep). A source
    /// that leaves this out has everybody visited for himself.
    fn image(&mut self, _id: SubscriberId) -> Option<(Place, Option<Arc<Image>>)> {
        None
    }

    /// The subscriber is sent an image instead of being visited what that shows: see [`Cache::pass`](xdstp_cache::Cache::pass). Not
    /// where something has changed meanwhile. A source that leaves [images](Self::image) out need not have this.
    fn pass(&mut self, _id: SubscriberId, _image: &Image) -> Option<bool> {
        None
    }

    /// What was written for a subscriber may be kept for others, as long as somebody else keeps it.
    fn keep(&mut self, _id: SubscriberId, _image: &Arc<Image>) {}

    /// When the source heard of what woke the subscriber, which the last [`pull`](Self::pull) visited: once, for
    /// [how long it took](Took::ToSend). A source that leaves this out does not say.
    fn heard_at(&mut self, _id: SubscriberId) -> Option<Instant> {
        None
    }

    /// What took how long: for histograms. A source that leaves this out has none.
    fn took(&mut self, _id: SubscriberId, _took: Took) {}

    /// Visits the errors that the subscriber has not been told of, when there is nothing to pull: see
    /// [`Cache::pull_errors`](xdstp_cache::Cache::pull_errors). Whether the visitor stopped it.
    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool;

    /// Visits why collections are not sent that the subscriber asks for, of these or of all, to be told beside what is sent: see
    /// [`Cache::pull_refusals`](xdstp_cache::Cache::pull_refusals). A source that leaves this out refuses none.
    fn pull_refusals(
        &mut self,
        _id: SubscriberId,
        _collections: Option<&[Interest]>,
        _visitor: &mut dyn FnMut(&ResourceName, &ResourceError),
    ) {
    }

    /// How many such errors there may be: see [`Cache::refusals`](xdstp_cache::Cache::refusals). Asked as a session begins, and from
    /// a pull on that [says so](Pulled::refused) as long as there are.
    fn refusals(&self, _id: SubscriberId) -> usize {
        0
    }

    /// Visits everything the subscriber is interested in: see [`Cache::visit`](xdstp_cache::Cache::visit).
    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered;

    /// The same, with which variant each is, where there are any (TP2). A source that leaves this out has none.
    fn visit_selected(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(Visited<'_, Frame>)) -> Unanswered {
        self.visit(id, &mut |name, resource| visitor(Visited::plain(name, resource)))
    }

    /// Says that a full state is sent now, and visits what is in it beside what a [`visit`](Self::visit) finds: see
    /// [`Cache::visit_leaving`](xdstp_cache::Cache::visit_leaving). Of a source that leaves this out, what is gone goes with the next full state, whatever that
    /// is sent for.
    fn visit_leaving(
        &mut self,
        _id: SubscriberId,
        _removals: Removals,
        _visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>) -> bool,
    ) {
    }

    /// The client answered a response: for who shows it. A source that leaves this out shows nothing.
    fn answered(&mut self, _id: SubscriberId, _answer: &Answer<'_>) {}

    /// Why this stream asks for more than is served, if it does: it ends with that once its request is handled. A source
    /// that leaves this out serves whatever is asked for.
    fn refused(&mut self) -> Option<Refused> {
        None
    }

    /// The stream ends because of this: for counters. A source that leaves this out counts nothing.
    fn ends(&mut self, _error: &ProtocolError) {}

    /// What the client is told of an error, such as where the limit is set that it met. A source that leaves this out says no
    /// more than the error does.
    fn words(&self, error: &ProtocolError) -> String {
        error.to_string()
    }

    /// A text that is longer than a [name may be](crate::server::Settings::name_bytes) is answered as the name of nothing
    /// (rule 109): for counters. A source that leaves this out counts nothing.
    fn too_long_name(&mut self) {}

    /// What is kept for a subscriber beside the names that it is subscribed to counts for so many of them from now on, by their
    /// [weight](crate::server::weight): texts that are no names, and other spellings of names. A source that leaves this out does not
    /// count them.
    fn keeps(&mut self, _id: SubscriberId, _names: usize) {}

    /// Whether a pull would do anything.
    fn has_work(&self, id: SubscriberId) -> bool;

    /// Whether a pull that defers removals would visit anything: what other types may have to wait for (rule 122). A
    /// source that leaves this out has them wait for its removals too, for a while.
    fn has_additions(&self, id: SubscriberId) -> bool {
        self.has_work(id)
    }

    /// Sends a name again if it is subscribed: see [`Cache::resend`](xdstp_cache::Cache::resend).
    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool;

    /// Looks at a resource that the subscriber is interested in, if there is one: what lives only for a time is
    /// refreshed from here.
    fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>));

    /// Whether the origin of what a wildcard covers is asked over SotW. Of a type that comes over delta only a wildcard has
    /// no answer then, and its client is told so (rule 2); of names it is told by [errors](Self::pull_errors).
    fn has_sotw_origin(&self) -> bool {
        false
    }

    /// A number that is another one whenever anything changed of what [`visit`](Self::visit) visits. A source that leaves
    /// this out is visited as if it had changed.
    fn changes(&self, _id: SubscriberId) -> Option<u64> {
        None
    }

    /// A number that is another one whenever a removal has joined those that wait: they all wait anew then. Of a source that
    /// leaves this out they wait from the first on.
    fn newest_removal(&self, _id: SubscriberId) -> u64 {
        0
    }

    /// The version that an origin gave to everything this subscriber is interested in: `version_info` over SotW, where
    /// an equal one says that nothing has changed (rule 33).
    fn type_version(&self, _id: SubscriberId) -> Option<Version> {
        None
    }

    /// What is said as `system_version_info` over delta, which is for people (rule 36): the version of the type by
    /// default.
    fn system_version(&self, id: SubscriberId) -> Option<Version> {
        self.type_version(id)
    }
}
