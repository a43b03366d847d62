//! Documents of a server of HTTP in the simulation: what it has, how it answers, and what a program is told of them, by a naive model
//! that knows the server alone.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use xdstp_uri::Locator;

use super::super::{CDS, Client, Cluster, message};
use super::books::{Books, Why};
use super::history::is_bad;
use super::random::Random;
use super::watched::{Heard, Lost, Shown, events};
use crate::backoff::Backoff;
use crate::federation::{Documents, Held, OpenDocument};
use crate::http::reading::{Answer, Reading, Stamp};
use crate::{Error, Event};

/// How many there are.
const DOCUMENTS: usize = 2;
/// How often each is asked for, give or take.
const EVERY: Duration = Duration::from_secs(30);

/// What a server has at a locator.
#[derive(Clone, Debug)]
pub(super) enum Page {
    /// A cluster, of which a program sees this text.
    Text(String),
    /// What cannot be read.
    Noise(usize),
    Nothing,
}

/// How it answers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Manner {
    Well,
    Badly,
    /// Not before so many seconds.
    Later(u64),
}

/// What happens to a document.
#[derive(Clone, Debug)]
pub(super) enum Doing {
    /// In place of another watch of it.
    Watch,
    Leave,
    Look,
    Put(Page),
    Answer(Manner),
}

impl Doing {
    pub(super) fn random(random: &mut Random, at: usize) -> (usize, Self) {
        let doing = match random.below(10) {
            0 | 1 => Self::Watch,
            2 => Self::Leave,
            3 => Self::Look,
            4..7 => Self::Put(match random.below(6) {
                0 => Page::Nothing,
                1 => Page::Noise(at),
                2 => Page::Text(format!("bad {at}")),
                // It was there before, or comes again.
                3 | 4 => Page::Text(format!("common {}", random.below(2))),
                _ => Page::Text(format!("text {at}")),
            }),
            7 | 8 => Self::Answer(Manner::Well),
            _ => Self::Answer(if random.one_in(2) { Manner::Badly } else { Manner::Later(random.pick(&[5, 60])) }),
        };
        (random.below(DOCUMENTS), doing)
    }
}

/// All documents, and the watches of them: one of each.
pub(super) struct Site {
    open: Port,
    all: [Document; DOCUMENTS],
}

struct Document {
    page: Page,
    manner: Manner,
    /// What is known of it to who was told all that the server said.
    known: Known,
    watch: Option<Watched>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    held: Option<String>,
    error: Option<Why>,
    /// The server did not say what there is when it was asked last.
    lost: bool,
    not_before: Option<Instant>,
}

/// Documents that are open, and what is known of each by who asks for it.
#[derive(Clone, Default)]
pub(super) struct Port(Arc<Mutex<BTreeMap<usize, Open>>>);

struct Open {
    document: OpenDocument,
    reading: Reading,
}

struct Handle(Port, usize);

/// A watch of a program, and what it was told.
struct Watched {
    next: Box<dyn FnMut() -> Option<Heard>>,
    shown: Shown,
    lost: Lost,
}

impl Documents for Port {
    fn open(&self, locator: &Locator<'_>, document: OpenDocument) -> Box<dyn Any + Send + Sync> {
        let at = (0..DOCUMENTS).find(|at| locator_of(*at) == locator.to_string()).unwrap();
        let reading = Reading::new(EVERY, Backoff::default());
        self.0.lock().unwrap().insert(at, Open { document, reading });
        Box::new(Handle(self.clone(), at))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().remove(&self.1);
    }
}

impl Site {
    pub(super) fn new(open: Port) -> Self {
        let document = |_| Document { page: Page::Nothing, manner: Manner::Well, known: Known::default(), watch: None };
        Self { open, all: std::array::from_fn(document) }
    }

    pub(super) fn act(&mut self, at: usize, doing: &Doing, client: &Client, books: &mut Books) {
        let document = &mut self.all[at];
        match doing {
            Doing::Watch => {
                let next = events(client.watch_as::<Cluster>(&locator_of(at)), |of| of.0.clone());
                document.watch = Some(Watched { next, shown: Shown::default(), lost: Lost::No });
            }
            Doing::Leave => document.watch = None,
            Doing::Look => self.look(at, books),
            Doing::Put(page) => document.page = page.clone(),
            Doing::Answer(manner) => document.manner = *manner,
        }
    }

    /// Every document can be had.
    pub(super) fn heal(&mut self) {
        self.all.iter_mut().for_each(|document| document.manner = Manner::Well);
    }

    /// What is known in the end is what there is.
    pub(super) fn look_at_all(&mut self, books: &mut Books) {
        (0..DOCUMENTS).for_each(|at| self.look(at, books));
        for (at, document) in self.all.iter().enumerate().filter(|(_, document)| document.watch.is_some()) {
            let Known { held, error, lost, .. } = &document.known;
            let is_right = match &document.page {
                Page::Text(text) if !is_bad(text) => held.as_ref() == Some(text) && error.is_none(),
                Page::Text(_) | Page::Noise(_) => *error == Some(Why::Invalid),
                Page::Nothing => held.is_none() && *error == Some(Why::Absent),
            };
            if *lost || !is_right {
                books
                    .fault(format!("document {at}: {:?} is known, where there is {:?}", document.known, document.page));
            }
        }
    }

    fn look(&mut self, at: usize, books: &mut Books) {
        let Document { known, watch, .. } = &mut self.all[at];
        let Some(watch) = watch else { return };
        while let Some(event) = (watch.next)() {
            books.log.push(format!("document {at}: {event:?}"));
            watch.hear(event, at, books);
        }
        let shown = Shown { held: known.held.clone(), error: known.error };
        let is_lost = if known.lost { Lost::Yes } else { Lost::No };
        if watch.shown != shown || watch.lost != Lost::Perhaps && watch.lost != is_lost {
            books.fault(format!("document {at}: {:?}, {:?}, where it is {known:?}", watch.shown, watch.lost));
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.open.0.lock().unwrap().values().filter_map(|open| open.reading.due()).min()
    }

    /// Whether any was asked for.
    pub(super) fn drive(&mut self, now: Instant, books: &mut Books) -> bool {
        let mut happened = false;
        for (at, document) in self.all.iter_mut().enumerate() {
            let told = {
                let mut open = self.open.0.lock().unwrap();
                let Some(Open { document: open, reading }) = open.get_mut(&at) else {
                    // Nobody remembers anything.
                    document.known = Known::default();
                    continue;
                };
                if reading.due().is_some_and(|due| due > now) {
                    continue;
                }
                let answer = document.answer(at, reading.stamp(), now, books);
                (open.clone(), reading.answered(answer, now, u64::MAX / 2))
            };
            happened = true;
            if let (open, Some(outcome)) = told {
                outcome.tell(&open, now);
            }
        }
        happened
    }
}

impl Document {
    /// What the server says to who has this already.
    fn answer(&mut self, at: usize, stamp: &Stamp, now: Instant, books: &mut Books) -> Answer {
        books.log.push(format!("document {at}: {:?} is asked for, {:?}, with {stamp:?}", self.page, self.manner));
        if self.known.not_before.take().is_some_and(|not_before| now < not_before) {
            books.fault(format!("document {at}: it is asked for before the time that the server said"));
        }
        let wait = match self.manner {
            Manner::Well => None,
            Manner::Badly => Some(None),
            Manner::Later(seconds) => Some(Some(Duration::from_secs(seconds))),
        };
        self.known.lost = wait.is_some();
        if let Some(wait) = wait {
            self.known.not_before = wait.map(|wait| now + wait);
            return Answer::Failed { reason: "it answered 503".into(), wait };
        }
        self.known.says(&self.page);
        let (held, etag) = match &self.page {
            Page::Text(text) => (Ok(vec![cluster(text)]), format!("\"{text}\"")),
            Page::Noise(number) => (Err("line 3".to_owned()), format!("\"noise {number}\"")),
            Page::Nothing => return Answer::Gone,
        };
        let own = Stamp { etag: Some(etag.parse().unwrap()), modified: None };
        if *stamp == own { Answer::Unchanged } else { Answer::Content { held, stamp: own } }
    }
}

impl Known {
    fn says(&mut self, page: &Page) {
        match page {
            Page::Text(text) if !is_bad(text) => (self.held, self.error) = (Some(text.clone()), None),
            // What was there stays.
            Page::Text(_) | Page::Noise(_) => self.error = Some(Why::Invalid),
            Page::Nothing => (self.held, self.error) = (None, Some(Why::Absent)),
        }
    }
}

impl Watched {
    fn hear(&mut self, event: Heard, at: usize, books: &mut Books) {
        if !matches!(event, Event::Ambient { name: None, .. }) && self.lost == Lost::Yes {
            self.lost = Lost::Perhaps;
        }
        match event {
            Event::Put { resource, .. } => self.shown = Shown { held: Some(resource), error: None },
            Event::Failed { name: None, error: Error::Unreachable { .. } } => {
                (self.shown.held, self.lost) = (None, Lost::Yes);
            }
            Event::Ambient { name: None, error: Some(Error::Unreachable { .. }) } => self.lost = Lost::Yes,
            Event::Ambient { name: None, error: None } => self.lost = Lost::No,
            Event::Failed { error: Error::Absent, .. } => {
                self.shown = Shown { held: None, error: Some(Why::Absent) };
            }
            Event::Failed { error: Error::Invalid { .. }, .. } => {
                self.shown = Shown { held: None, error: Some(Why::Invalid) };
            }
            Event::Ambient { error: Some(Error::Invalid { .. }), .. } => self.shown.error = Some(Why::Invalid),
            Event::Ambient { error: None, .. } => self.shown.error = None,
            other => books.fault(format!("document {at}: {other:?}")),
        }
    }
}

fn locator_of(at: usize) -> String {
    format!("http://site/envoy.config.cluster.v3.Cluster/d{at}")
}

fn cluster(text: &str) -> Held {
    let frame = xds_transport::Frame::of_message(&CDS.into(), &message("d", text));
    (CDS.into(), "d".parse().unwrap(), frame.into_resource(None))
}
