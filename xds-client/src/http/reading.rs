//! When a document is asked for, and what is told of what comes. Without I/O.

use std::time::{Duration, Instant};

use hyper::header::HeaderValue;

use crate::backoff::Backoff;
#[cfg(test)]
use crate::federation::faults::{Fault, planted};
use crate::federation::{DocumentError, Held, OpenDocument};

/// By what a server knows which content we have (RFC 9110, 8.8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) etag: Option<HeaderValue>,
    pub(crate) modified: Option<HeaderValue>,
}

/// What came of asking for a document once.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// What it holds, or why that cannot be read.
    Content { held: Result<Vec<Held>, String>, stamp: Stamp },
    /// It is as it was.
    Unchanged,
    /// It is not there.
    Gone,
    /// It is not known what it holds, and it is not to be asked for before so much time has passed.
    Failed { reason: String, wait: Option<Duration> },
}

/// What is to be told of a document.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Holds(Vec<Held>),
    Gone,
    /// Why it is not known what it holds.
    Unknown(DocumentError),
}

impl Outcome {
    pub(crate) fn tell(self, document: &OpenDocument, now: Instant) {
        match self {
            Self::Holds(held) => document.tell(Ok(held), now),
            Self::Gone => document.tell_gone(now),
            Self::Unknown(error) => document.tell(Err(error), now),
        }
    }
}

/// What is known of one document.
pub(crate) struct Reading {
    every: Duration,
    backoff: Backoff,
    /// It is asked for at once where there is none.
    due: Option<Instant>,
    stamp: Stamp,
    /// What the last content came to, be it of use or not.
    content: Option<Outcome>,
    /// Why nothing came since.
    failing: Option<String>,
}

impl Reading {
    pub(crate) fn new(every: Duration, backoff: Backoff) -> Self {
        Self { every, backoff, due: None, stamp: Stamp::default(), content: None, failing: None }
    }

    /// When it is to be asked for next, if not at once.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Of the content that we have: without any it is asked for whatever it is.
    pub(crate) fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// What is to be told now that this came, if anything is. `random` is uniform over its whole range.
    pub(crate) fn answered(&mut self, answer: Answer, now: Instant, random: u64) -> Option<Outcome> {
        match answer {
            Answer::Content { held, stamp } => {
                let unknown = |reason| Outcome::Unknown(DocumentError::Malformed(reason));
                self.has(held.map_or_else(unknown, Outcome::Holds), stamp, (now, random))
            }
            Answer::Gone => {
                // What comes back may be what was there before: it is not to be taken for what we have.
                let stamp = Stamp::default();
                #[cfg(test)]
                let stamp = if planted(Fault::KeepStamp) { self.stamp.clone() } else { stamp };
                self.has(Outcome::Gone, stamp, (now, random))
            }
            Answer::Unchanged if self.stamp != Stamp::default() => {
                self.succeeds(now, random);
                let was_failing = self.failing.take().is_some();
                #[cfg(test)]
                if planted(Fault::UnchangedIsEmpty) {
                    return Some(Outcome::Holds(Vec::new()));
                }
                #[cfg(test)]
                let was_failing = was_failing && !planted(Fault::StayUnreachable);
                self.content.clone().filter(|_| was_failing)
            }
            Answer::Unchanged => {
                let reason = "it answered that nothing has changed, which it was not asked".to_owned();
                self.fails(reason, None, (now, random))
            }
            Answer::Failed { reason, wait } => self.fails(reason, wait, (now, random)),
        }
    }

    fn has(&mut self, outcome: Outcome, stamp: Stamp, (now, random): (Instant, u64)) -> Option<Outcome> {
        self.succeeds(now, random);
        self.failing = None;
        self.stamp = stamp;
        self.content = Some(outcome.clone());
        Some(outcome)
    }

    fn fails(&mut self, reason: String, wait: Option<Duration>, (now, random): (Instant, u64)) -> Option<Outcome> {
        let wait = wait.unwrap_or_default();
        #[cfg(test)]
        let wait = if planted(Fault::AskTooSoon) { Duration::ZERO } else { wait };
        self.due = Some(now + self.backoff.next(random).max(wait));
        #[cfg(test)]
        if planted(Fault::FailureIsAbsence) {
            return Some(Outcome::Gone);
        }
        let is_news = self.failing.as_ref() != Some(&reason);
        self.failing = Some(reason.clone());
        is_news.then_some(Outcome::Unknown(DocumentError::Unreadable(reason)))
    }

    /// Give or take a tenth: not all clients ask at once.
    fn succeeds(&mut self, now: Instant, random: u64) {
        self.backoff.reset();
        let share = random as f64 / u64::MAX as f64;
        self.due = Some(now + self.every.mul_f64(0.9 + share / 5.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(30);
    const MIDDLE: u64 = u64::MAX / 2;

    fn reading() -> Reading {
        Reading::new(EVERY, Backoff::default())
    }

    fn stamp(etag: &'static str) -> Stamp {
        Stamp { etag: Some(HeaderValue::from_static(etag)), modified: None }
    }

    /// Something of use, or not.
    fn content(etag: &'static str, held: Result<&str, &str>) -> Answer {
        let cluster = |name: &str| {
            let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
            let frame = xds_transport::Frame::of_message(&type_url, name.as_bytes());
            vec![(type_url, name.parse().unwrap(), frame.into_resource(None))]
        };
        Answer::Content { held: held.map(cluster).map_err(str::to_owned), stamp: stamp(etag) }
    }

    fn failed(reason: &str, wait: Option<u64>) -> Answer {
        Answer::Failed { reason: reason.into(), wait: wait.map(Duration::from_secs) }
    }

    /// In words: the names that it holds, or why that is not known.
    fn told(outcome: Option<Outcome>) -> String {
        match outcome {
            None => "nothing".to_owned(),
            Some(Outcome::Gone) => "gone".to_owned(),
            Some(Outcome::Holds(held)) => {
                format!("{:?}", held.iter().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>())
            }
            Some(Outcome::Unknown(DocumentError::Unreadable(reason))) => format!("unreadable: {reason}"),
            Some(Outcome::Unknown(DocumentError::Malformed(reason))) => format!("malformed: {reason}"),
        }
    }

    #[test]
    fn what_is_as_it_was_is_told_again_after_an_error_alone() {
        let (mut reading, now) = (reading(), Instant::now());
        let mut hear = |answer| told(reading.answered(answer, now, MIDDLE));
        assert_eq!(hear(content("1", Ok("a"))), "[\"a\"]");
        assert_eq!(hear(Answer::Unchanged), "nothing");
        assert_eq!(hear(failed("away", None)), "unreadable: away");
        assert_eq!(hear(failed("away", None)), "nothing", "once");
        assert_eq!(hear(failed("busy", None)), "unreadable: busy");
        assert_eq!(hear(Answer::Unchanged), "[\"a\"]");
        // What is of no use is so still.
        assert_eq!(hear(content("2", Err("line 3"))), "malformed: line 3");
        assert_eq!(hear(failed("away", None)), "unreadable: away");
        assert_eq!(hear(Answer::Unchanged), "malformed: line 3");
        assert_eq!(hear(Answer::Unchanged), "nothing");
        assert_eq!(hear(Answer::Gone), "gone");
        assert_eq!(hear(failed("away", None)), "unreadable: away");
        assert_eq!(hear(Answer::Gone), "gone");
    }

    #[test]
    fn it_is_asked_whether_anything_changed_of_what_there_is_alone() {
        let (mut reading, now) = (reading(), Instant::now());
        assert_eq!(*reading.stamp(), Stamp::default());
        assert!(told(reading.answered(Answer::Unchanged, now, 0)).starts_with("unreadable: "), "it was not asked");
        reading.answered(content("1", Ok("a")), now, 0);
        assert_eq!(*reading.stamp(), stamp("1"));
        reading.answered(failed("cut short", None), now, 0);
        assert_eq!(*reading.stamp(), stamp("1"), "what was not read is not had");
        reading.answered(content("2", Err("of no use")), now, 0);
        assert_eq!(*reading.stamp(), stamp("2"), "and what is of no use is not sent again");
        reading.answered(Answer::Gone, now, 0);
        assert_eq!(*reading.stamp(), Stamp::default());
    }

    #[test]
    fn it_is_asked_for_about_so_often_and_sooner_after_an_error() {
        let (mut reading, now) = (reading(), Instant::now());
        assert_eq!(reading.due(), None, "at once");
        let mut waits = |answer, random| {
            reading.answered(answer, now, random);
            reading.due().map_or(0, |due| (due - now).as_millis())
        };
        assert_eq!([0, u64::MAX].map(|random| waits(content("1", Ok("a")), random)), [27_000, 33_000]);
        assert_eq!(waits(content("1", Err("of no use")), MIDDLE), 30_000, "who answers is not away");
        assert_eq!([(); 3].map(|()| waits(failed("away", None), u64::MAX)), [500, 1000, 2000]);
        assert_eq!(waits(failed("away", Some(60)), 0), 60_000);
        assert_eq!(waits(failed("away", Some(1)), u64::MAX), 8000, "no sooner than by itself");
        assert_eq!(waits(Answer::Unchanged, MIDDLE), 30_000);
        assert_eq!(waits(failed("away", None), u64::MAX), 500, "it had answered");
    }
}
