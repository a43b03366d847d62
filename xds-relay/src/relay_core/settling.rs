//! When a wildcard or glob is complete: delta has no end of an answer, so silence must say it.
//!
//! An origin may answer in several responses. Until the last of them a relay that just started must not
//! tell a client that resumed at it what is missing: it is not missing, it is on its way.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use xds_transport::client::Update;
use xdstp_cache::{Interest, TypeUrl};

use crate::config::Protocol;
use crate::relay_core::demand::Wish;

/// This much silence after a response with members ends the answer. Only who waits for the end waits
/// for it: members are passed on as they come.
const QUIET: Duration = Duration::from_millis(200);
/// An origin that never falls silent is taken to have answered by then.
const LONGEST: Duration = Duration::from_secs(5);

/// The collections whose answer has begun.
#[derive(Default)]
pub(crate) struct Settling(BTreeMap<Wish, Answer>);

struct Answer {
    /// `None` between two streams.
    quiet_at: Option<Instant>,
    latest: Instant,
}

impl Answer {
    fn begin(now: Instant) -> Self {
        Self { quiet_at: Some(now + QUIET), latest: now + LONGEST }
    }
}

impl Settling {
    /// Takes out of an update what it answers. What is complete with it is returned; the rest
    /// [settles](Self::settled) later.
    pub(crate) fn hold_back(&mut self, now: Instant, update: &mut Update, protocol: Protocol) -> Vec<Interest> {
        let mut complete = std::mem::take(&mut update.answered);
        // A new stream is told what came of an answer before. If there is no more to it, its first response will not
        // name the collection.
        for ((type_url, _), answer) in &mut self.0 {
            if *type_url == update.type_url && answer.quiet_at.is_none() {
                *answer = Answer::begin(now);
            }
        }
        // A SotW response says all it has to say, and one without members that there are none.
        if protocol == Protocol::Sotw || update.changed.is_empty() {
            return complete;
        }
        for ((type_url, _), answer) in &mut self.0 {
            if *type_url == update.type_url {
                answer.quiet_at = Some(answer.latest.min(now + QUIET));
            }
        }
        let begun = complete.extract_if(.., |collection| match collection {
            Interest::Wildcard => true,
            Interest::Name(glob) => update.changed.iter().any(|changed| changed.name.answers(glob)),
        });
        let answer = |collection| ((update.type_url.clone(), collection), Answer::begin(now));
        self.0.extend(begun.map(answer));
        complete
    }

    /// Takes the collections whose answer is over.
    pub(crate) fn settled(&mut self, now: Instant) -> Vec<Wish> {
        let over = self.0.iter().filter(|(_, answer)| answer.quiet_at.is_some_and(|quiet_at| quiet_at <= now));
        let over: Vec<_> = over.map(|(wish, _)| wish.clone()).collect();
        for wish in &over {
            self.0.remove(wish);
        }
        over
    }

    /// It is not subscribed any more.
    pub(crate) fn forget(&mut self, type_url: &TypeUrl, collection: &Interest) {
        if collection.is_collection() {
            self.0.remove(&(type_url.clone(), collection.clone()));
        }
    }

    /// The stream is over: the next one goes on with what this one began.
    pub(crate) fn pause(&mut self) {
        self.0.values_mut().for_each(|answer| answer.quiet_at = None);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.0.values().filter_map(|answer| answer.quiet_at).min()
    }
}
