//! A client that does what a check tells it to, and nothing else.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use tonic::Code;
use xds_transport::Dialect;
use xds_transport::wire::{Node, Status};

use super::check::{Done, Stop};
use super::link::Link;
use super::messages::{Ask, Said, Selected};
use super::method::Method;
use super::resources::Of;

/// What was said, both ways, as far as it is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transcript(Rc<RefCell<VecDeque<String>>>);

/// One stream, and what was asked for on it.
pub(crate) struct Client {
    pub(crate) method: Method,
    link: Link,
    /// Which one of a check it is.
    number: usize,
    timeout: Duration,
    transcript: Transcript,
    /// Sent with the first request (rule 5).
    pub(crate) node: Option<Node>,
    pub(crate) dialect: Dialect,
    sessions: BTreeMap<Of, Session>,
    /// Responses of other types than the one that was waited for.
    later: VecDeque<Said>,
}

#[derive(Debug, Default)]
struct Session {
    names: Vec<String>,
    /// What is asked for with dynamic parameters, which each request over SotW repeats.
    locators: Vec<Selected>,
    nonce: String,
    version: String,
}

impl Transcript {
    /// How many lines are kept, and how much of each.
    const LINES: usize = 40;
    const LINE: usize = 400;

    fn add(&self, line: &str) {
        let mut lines = self.0.borrow_mut();
        if lines.len() == Self::LINES {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(Self::LINE).collect());
    }

    pub(crate) fn note(&self, what: &str) {
        self.add(&format!("  * {what}"));
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.borrow_mut()).into()
    }
}

impl Client {
    pub(crate) fn new(link: Link, method: Method, number: usize, timeout: Duration, transcript: Transcript) -> Self {
        let (sessions, later) = (BTreeMap::new(), VecDeque::new());
        let (node, dialect) = (None, Dialect::Final);
        Self { method, link, number, timeout, transcript, node, dialect, sessions, later }
    }

    /// Asks for these and for nothing else, from now on: over SotW by all of them, over delta by what is new and what is not
    /// wanted any more.
    pub(crate) async fn want(&mut self, of: Of, names: &[&str]) -> Done {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let is_sotw = self.method.is_sotw();
        let session = self.sessions.entry(of).or_default();
        let before = std::mem::replace(&mut session.names, names.clone());
        let mut ask = Ask { type_url: of.type_url().into(), ..Ask::default() };
        if is_sotw {
            (ask.names, ask.nonce, ask.version) = (names, session.nonce.clone(), session.version.clone());
        } else {
            ask.names = names.iter().filter(|name| !before.contains(name)).cloned().collect();
            ask.leave = before.into_iter().filter(|name| !names.contains(name)).collect();
        }
        self.send(ask).await
    }

    /// Sends a request as it is, but for the node, which goes with the first one.
    pub(crate) async fn send(&mut self, mut ask: Ask) -> Done {
        ask.node = ask.node.or(self.node.take());
        let of = Of::of_type_url(&ask.type_url).filter(|_| self.method.is_sotw() && !ask.locators.is_empty());
        if let Some(of) = of {
            let session = self.sessions.entry(of).or_default();
            session.names.clone_from(&ask.names);
            session.locators.clone_from(&ask.locators);
        }
        self.transcript.add(&format!("{}> {}", self.number, ask.line()));
        let sending = self.link.send(ask.encode(self.method.protocol(), self.dialect));
        match tokio::time::timeout(self.timeout, sending).await {
            Ok(true) => Ok(()),
            // It is said with what it ended.
            Ok(false) => Err(self.end("a request to be taken").await),
            Err(_) => Err(Stop::fail("a request to be taken", self.waited())),
        }
    }

    /// A request of the state that the type is in.
    pub(crate) fn ask(&self, of: Of) -> Ask {
        let mut ask = Ask { type_url: of.type_url().into(), ..Ask::default() };
        if let Some(session) = self.sessions.get(&of) {
            ask.nonce.clone_from(&session.nonce);
            if self.method.is_sotw() {
                ask.version.clone_from(&session.version);
                ask.names.clone_from(&session.names);
            }
        }
        ask
    }

    pub(crate) async fn ack(&mut self, said: &Said) -> Done {
        self.answer(said, None).await
    }

    pub(crate) async fn nack(&mut self, said: &Said) -> Done {
        self.nack_with(said, 3).await
    }

    pub(crate) async fn nack_with(&mut self, said: &Said, code: i32) -> Done {
        self.answer(said, Some(Status { code, message: "refused by a check of conformance".into() })).await
    }

    async fn answer(&mut self, said: &Said, error: Option<Status>) -> Done {
        let mut ask = Ask { type_url: said.type_url.clone(), nonce: said.nonce.clone(), error, ..Ask::default() };
        if let (true, Some(of)) = (self.method.is_sotw(), Of::of_type_url(&said.type_url)) {
            let session = self.sessions.entry(of).or_default();
            if ask.error.is_none() {
                session.version.clone_from(&said.version);
            }
            (ask.names, ask.version) = (session.names.clone(), session.version.clone());
            ask.locators.clone_from(&session.locators);
        }
        self.send(ask).await
    }

    /// The next response of a type, unanswered.
    pub(crate) async fn next(&mut self, of: Of, expected: &str) -> Done<Said> {
        if let Some(at) = self.later.iter().position(|said| said.is_of(of)) {
            return self.later.remove(at).ok_or_else(|| Stop::inconclusive("a response was lost"));
        }
        loop {
            let said = self.any(expected).await?;
            if said.is_of(of) {
                return Ok(said);
            }
            if self.later.len() == MOST {
                return Err(Stop::fail(expected, format!("{MOST} responses of other types")));
            }
            self.later.push_back(said);
        }
    }

    /// The next response of whatever type, unanswered.
    pub(crate) async fn any(&mut self, expected: &str) -> Done<Said> {
        let message = match tokio::time::timeout(self.timeout, self.link.next()).await {
            Err(_) => return Err(Stop::fail(expected, self.waited())),
            Ok(Err(status)) => return Err(self.ended(expected, &status)),
            Ok(Ok(message)) => message,
        };
        let said = Said::decode(self.method.protocol(), self.dialect, message);
        let said = said.map_err(|error| Stop::fail(expected, format!("what is no response: {error}")))?;
        self.transcript.add(&format!("{}< {}", self.number, said.line()));
        if let Some(of) = Of::of_type_url(&said.type_url) {
            self.sessions.entry(of).or_default().nonce.clone_from(&said.nonce);
        }
        Ok(said)
    }

    /// All responses of a type, each acknowledged, up to the first that is what is waited for.
    pub(crate) async fn until(
        &mut self,
        of: Of,
        expected: &str,
        mut is_it: impl FnMut(&Said) -> bool,
    ) -> Done<Vec<Said>> {
        let mut all = Vec::new();
        while all.len() < MOST {
            let said = self.next(of, expected).await?;
            self.ack(&said).await?;
            let found = is_it(&said);
            all.push(said);
            if found {
                return Ok(all);
            }
        }
        Err(Stop::fail(expected, format!("{MOST} responses without it")))
    }

    /// The same, up to where each of these was sent with this content.
    pub(crate) async fn told(&mut self, of: Of, contents: &[(&str, u32)]) -> Done<Vec<Said>> {
        let words: Vec<_> = contents.iter().map(|(name, content)| format!("{name}={content}")).collect();
        let mut missing = contents.to_vec();
        let is_it = |said: &Said| {
            missing.retain(|(name, content)| !said.has_content(name, *content));
            missing.is_empty()
        };
        self.until(of, &format!("{} {}", of.short(), words.join(" ")), is_it).await
    }

    /// The same, up to where this is told as gone: over SotW, by a full state without it.
    pub(crate) async fn gone(&mut self, of: Of, name: &str) -> Done<Vec<Said>> {
        let is_sotw = self.method.is_sotw();
        let is_it = |said: &Said| if is_sotw { !said.has(name) } else { said.removes(name) };
        self.until(of, &format!("{} without {name}", of.short()), is_it).await
    }

    /// What came of a type while another was waited for, each acknowledged.
    pub(crate) async fn heard(&mut self, of: Of) -> Done<Vec<Said>> {
        let (heard, later) = std::mem::take(&mut self.later).into_iter().partition(|said| said.is_of(of));
        self.later = later;
        let heard: Vec<Said> = Vec::from_iter::<VecDeque<Said>>(heard);
        for said in &heard {
            self.ack(said).await?;
        }
        Ok(heard)
    }

    /// Whether anything came of types that were not waited for.
    pub(crate) fn strangers(&self) -> impl Iterator<Item = &Said> {
        self.later.iter()
    }

    /// What the server ends the stream with; responses before it are read over.
    pub(crate) async fn ending(&mut self, expected: &str) -> Done<tonic::Status> {
        loop {
            match tokio::time::timeout(self.timeout, self.link.next()).await {
                Err(_) => return Err(Stop::fail(expected, self.waited())),
                Ok(Err(status)) => return Ok(status),
                Ok(Ok(_)) => {}
            }
        }
    }

    async fn end(&mut self, expected: &str) -> Stop {
        match self.ending(expected).await {
            Ok(status) => self.ended(expected, &status),
            Err(stop) => stop,
        }
    }

    fn ended(&self, expected: &str, status: &tonic::Status) -> Stop {
        self.transcript.add(&format!("{}< the end: {:?} {}", self.number, status.code(), status.message()));
        match status.code() {
            Code::Unimplemented => Stop::inconclusive(format!("the server has no {}", self.method.as_str())),
            code => Stop::fail(expected, format!("the stream ended: {code:?} {}", status.message())),
        }
    }

    fn waited(&self) -> String {
        format!("nothing for {:?}", self.timeout)
    }
}

/// How many responses are read for one that is waited for.
const MOST: usize = 2000;

/// Whether any of them says something of a name: that it is there, or gone.
pub(crate) fn mentions(said: &[Said], name: &str) -> bool {
    said.iter().any(|said| said.has(name) || said.removes(name))
}

/// How often a name was sent.
pub(crate) fn times(said: &[Said], name: &str) -> usize {
    said.iter().flat_map(|said| &said.resources).filter(|got| got.name == name).count()
}
