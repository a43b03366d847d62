//! What may be said to a program, by what was said to its client: a naive model of `client.md`, which knows the client by its
//! commands to its streams alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use xds_transport::client::Command;

use super::history::{self, authority_of};
use super::said::{Said, Sent, Word};
use super::server::{Key, covers};

/// Why there is nothing, or nothing newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Absent,
    Invalid,
    Refused(i32),
    Timeout,
    /// Of what a name leads to.
    Unreachable,
}

/// What is known of a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Entry {
    pub(super) held: Option<Word>,
    pub(super) error: Option<Why>,
    /// A full state left it out that may be older than what was asked for: no more may be said of it.
    pub(super) crossed: bool,
    /// Which of the servers said what is held.
    pub(super) by: Option<usize>,
}

/// A stream, and the servers' words on it that count.
pub(super) struct LinkBook {
    pub(super) server: usize,
    /// What the client asks for on it.
    pub(super) asks: BTreeSet<Key>,
    /// Authorities that it was ever of.
    of: BTreeSet<usize>,
    /// A response came on the stream that there is.
    pub(super) answers: bool,
    /// The last stream ended without one, or none came to be.
    pub(super) fails: bool,
    failed_at: Option<Instant>,
    had_stream: bool,
    /// What it said to be there, over streams.
    said: BTreeSet<Key>,
    stream: StreamBook,
}

/// What is known of a stream that there is, over SotW.
#[derive(Default)]
struct StreamBook {
    /// The names that its server had surely read before it writes what comes next, by type: those of the first request, and of the
    /// one that answered the last response.
    read: BTreeMap<&'static str, BTreeSet<String>>,
    /// The responses that are to be answered.
    nonces: BTreeMap<&'static str, String>,
    /// What it does not send, and said why.
    failing: BTreeSet<Key>,
}

/// The servers of an authority, by their places in its list.
#[derive(Clone, Debug, Default)]
pub(super) struct Authority {
    pub(super) asked: usize,
    pub(super) counts: Option<usize>,
}

pub(super) struct Books {
    /// The servers of each authority.
    pub(super) lists: Vec<Vec<usize>>,
    /// What is refused or gone is used on (no `fail_on_data_errors`).
    pub(super) keeps: bool,
    pub(super) links: BTreeMap<usize, LinkBook>,
    pub(super) authorities: Vec<Authority>,
    pub(super) entries: BTreeMap<Key, Entry>,
    /// What is watched by its name, how often, and since when.
    watched: BTreeMap<Key, (usize, Instant)>,
    /// The first mistake.
    pub(super) wrong: Option<String>,
    /// What happened, for people.
    pub(super) log: Vec<String>,
}

impl Books {
    pub(super) fn new(lists: Vec<Vec<usize>>, keeps: bool) -> Self {
        let authorities = vec![Authority::default(); lists.len()];
        let (links, entries, watched) = Default::default();
        Self { lists, keeps, links, authorities, entries, watched, wrong: None, log: Vec::new() }
    }

    pub(super) fn fault(&mut self, what: String) {
        self.log.push(format!("WRONG: {what}"));
        self.wrong.get_or_insert(what);
    }

    pub(super) fn dialed(&mut self, link: usize, server: usize) {
        self.log.push(format!("link {link}: dials server {server}"));
        let (asks, of, said, stream) = Default::default();
        let (answers, fails, failed_at, had_stream) = Default::default();
        let book = LinkBook { server, asks, of, answers, fails, failed_at, had_stream, said, stream };
        self.links.insert(link, book);
    }

    /// The client lets go of it.
    pub(super) fn dropped(&mut self, link: usize) {
        self.log.push(format!("link {link}: dropped"));
        let Some(book) = self.links.remove(&link) else { return };
        for of in book.of {
            if !self.links.values().any(|other| other.of.contains(&of)) {
                self.authorities[of] = Authority::default();
            }
        }
        self.forget_left();
    }

    pub(super) fn opened(&mut self, link: usize, now: Instant) {
        self.log.push(format!("link {link}: stream"));
        let Some(book) = self.links.get_mut(&link) else { return };
        // Another may be asked because it failed until now.
        if std::mem::take(&mut book.fails) {
            book.failed_at = Some(now);
        }
        book.had_stream = true;
    }

    pub(super) fn ended(&mut self, link: usize, now: Instant) {
        self.log.push(format!("link {link}: no stream"));
        let Some(book) = self.links.get_mut(&link) else { return };
        book.stream = StreamBook::default();
        book.fails = !std::mem::take(&mut book.answers);
        if book.fails {
            book.failed_at = Some(now);
        }
    }

    /// What the client tells a stream.
    pub(super) fn told(&mut self, link: usize, command: &Command, now: Instant) {
        match command {
            Command::Subscribe(type_url, interest) => {
                let key = (super::said::static_type(type_url.as_str()), interest.as_str().to_owned());
                self.asks(link, key, now);
            }
            Command::Unsubscribe(type_url, interest) => {
                let key = (super::said::static_type(type_url.as_str()), interest.as_str().to_owned());
                self.log.push(format!("link {link}: -{}", key.1));
                let Some(book) = self.links.get_mut(&link) else { return };
                book.asks.remove(&key);
                book.said.retain(|(of, name)| *of != key.0 || !covers(&key.1, name));
                book.stream.failing.remove(&key);
                self.forget_left();
            }
            _ => {}
        }
    }

    fn asks(&mut self, link: usize, key: Key, now: Instant) {
        self.log.push(format!("link {link}: +{}", key.1));
        let of = authority_of(&key.1);
        let Some(book) = self.links.get_mut(&link) else { return };
        let (server, answers) = (book.server, book.answers);
        let name = key.1.clone();
        book.asks.insert(key);
        book.of.insert(of);
        let Some(at) = self.lists[of].iter().position(|listed| *listed == server) else {
            return self.fault(format!("server {server} is asked for {name}, which is none of its"));
        };
        let authority = &mut self.authorities[of];
        if at < authority.asked {
            // It answered others, which is as good.
            if answers && authority.counts.is_none_or(|counts| counts > at) {
                *authority = Authority { asked: at + 1, counts: Some(at) };
            }
            return;
        }
        for above in self.lists[of].clone().into_iter().take(at) {
            let fails = |book: &LinkBook| book.server == above && (book.fails || book.failed_at == Some(now));
            if !self.links.values().any(fails) {
                self.fault(format!("server {server} is asked for {name}, and server {above} before it does not fail"));
            }
        }
        if at > 0 && !self.may_lack(of) {
            self.fault(format!("server {server} is asked for {name}, and all is known"));
        }
        self.authorities[of].asked = at + 1;
        if answers {
            self.authorities[of].counts = Some(at);
        }
    }

    /// A request leaves. A server waits for the answer to its last response before the next one (rule 129).
    pub(super) fn sent(&mut self, link: usize, sent: Sent) {
        let Some(StreamBook { read, nonces, .. }) = self.links.get_mut(&link).map(|book| &mut book.stream) else {
            return;
        };
        let answers = nonces.get(sent.type_url) == Some(&sent.nonce);
        match read.get_mut(sent.type_url).filter(|_| !answers) {
            // What is new in it may be read too late, and what is not may be read in time.
            Some(read) => read.retain(|name| sent.names.contains(name)),
            None => _ = read.insert(sent.type_url, sent.names),
        }
        if answers {
            nonces.remove(sent.type_url);
        }
    }

    /// A response arrives.
    pub(super) fn heard(&mut self, link: usize, said: &Said, now: Instant) {
        self.log.push(format!("link {link}: says {said:?}"));
        let Some(book) = self.links.get_mut(&link) else { return };
        (book.fails, book.failed_at) = (false, book.failed_at.filter(|at| *at == now));
        let is_first = !std::mem::replace(&mut book.answers, true);
        let (server, of) = (book.server, book.of.clone());
        for of in of {
            let at = self.lists[of].iter().position(|listed| *listed == server);
            let authority = &mut self.authorities[of];
            if let Some(at) = at.filter(|at| is_first && *at < authority.asked) {
                *authority = Authority { asked: at + 1, counts: Some(at) };
            }
        }
        let mut words = self.words(link, said);
        words.extend(self.lacking(link, said).into_iter().map(|key| (key, Word::Gone)));
        for (key, word) in words {
            let of = authority_of(&key.1);
            let counts = self.authorities[of].counts;
            if counts.map(|at| self.lists[of][at]) == Some(server) {
                self.hears(key, word, counts);
            }
        }
    }

    /// What it says of what is asked for.
    fn words(&mut self, link: usize, said: &Said) -> Vec<(Key, Word)> {
        let Some(book) = self.links.get_mut(&link) else { return Vec::new() };
        let asked = |name: &String| book.asks.iter().any(|(of, asked)| *of == said.type_url && covers(asked, name));
        let mut words: Vec<_> = said
            .words
            .iter()
            .filter(|(name, _)| asked(name))
            .map(|(name, word)| ((said.type_url, name.clone()), word.clone()))
            .collect();
        if let Some(all) = &said.all {
            let gone = book.said.iter().filter(|(of, name)| *of == said.type_url && !all.contains(name));
            words.extend(gone.map(|key| (key.clone(), Word::Gone)));
        }
        for (key, word) in &words {
            match word {
                // That it is missing after an error says nothing new.
                Word::Gone | Word::Error(_) => _ = book.said.remove(key),
                _ => _ = book.said.insert(key.clone()),
            }
        }
        words
    }

    pub(super) fn hears(&mut self, key: Key, word: Word, by: Option<usize>) {
        let keeps = self.keeps;
        let is_member = !self.links.values().any(|book| book.asks.contains(&key));
        let entry = self.entries.entry(key).or_default();
        entry.crossed = false;
        let error = match &word {
            Word::Text(text) if history::is_bad(text) => Some(Why::Invalid),
            Word::Text(_) | Word::Redirect(_) | Word::List(_) => None,
            Word::Gone | Word::Error(5) => Some(Why::Absent),
            Word::Error(code) => Some(Why::Refused(*code)),
        };
        match word {
            Word::Gone | Word::Error(5) if is_member => *entry = Entry::default(),
            _ if error.is_none() => *entry = Entry { held: Some(word), by, ..Entry::default() },
            Word::Error(code) if history::passes(code) => entry.error = error,
            _ => {
                entry.error = error;
                entry.held.take_if(|_| !keeps || is_member && matches!(word, Word::Error(_)));
            }
        }
    }

    /// What a full state leaves out of what is known, of others: it says so of what its server had surely read.
    fn lacking(&mut self, link: usize, said: &Said) -> Vec<Key> {
        let (Some(all), Some(book)) = (&said.all, self.links.get_mut(&link)) else { return Vec::new() };
        let StreamBook { read, nonces, failing } = &mut book.stream;
        nonces.insert(said.type_url, said.nonce.clone());
        for (name, word) in &said.words {
            let key = (said.type_url, name.clone());
            _ = if matches!(word, Word::Error(_)) { failing.insert(key) } else { failing.remove(&key) };
        }
        let read = read.get(said.type_url);
        let left_out = book.asks.iter().filter(|(of, name)| *of == said.type_url && !all.contains(name));
        let mut lacking = Vec::new();
        for key in left_out.filter(|key| !failing.contains(key)) {
            let entry = self.entries.entry(key.clone()).or_default();
            let is_sure = read.is_some_and(|read| read.contains(&key.1));
            entry.crossed |= !is_sure && *entry != Entry::default();
            let is_said = !matches!(entry.error, None | Some(Why::Absent | Why::Timeout));
            if is_sure && (entry.held.is_some() || is_said) {
                lacking.push(key.clone());
            }
        }
        lacking
    }

    pub(super) fn watches(&mut self, key: &Key, now: Instant) {
        self.watched.entry(key.clone()).or_insert((0, now)).0 += 1;
        self.entries.entry(key.clone()).or_default();
    }

    pub(super) fn leaves(&mut self, key: &Key) {
        if let Some((count, _)) = self.watched.get_mut(key) {
            *count -= 1;
        }
        self.watched.retain(|_, (count, _)| *count > 0);
        self.forget_left();
    }

    fn forget_left(&mut self) {
        let Self { links, entries, watched, .. } = self;
        let asked = |key: &Key| {
            let covering = |(of, asked): &Key| *of == key.0 && covers(asked, &key.1);
            watched.keys().any(covering) || links.values().any(|book| book.asks.iter().any(covering))
        };
        entries.retain(|key, _| asked(key));
    }

    /// Whether there may be something asked for that nothing is known of.
    fn may_lack(&self, of: usize) -> bool {
        let unknown = |key: &Key| self.entries.get(key).is_none_or(|entry| *entry == Entry::default());
        let mut asked = self.seats(of).flat_map(|book| &book.asks).chain(self.watched.keys());
        asked.any(|key| authority_of(&key.1) == of && (key.1.ends_with('*') || unknown(key)))
    }

    /// Since when it is watched.
    pub(super) fn since(&self, key: &Key) -> Option<Instant> {
        self.watched.get(key).map(|(_, since)| *since)
    }

    /// Whether any server is asked for just this.
    pub(super) fn is_asked_for(&self, key: &Key) -> bool {
        self.links.values().any(|book| book.asks.contains(key))
    }

    /// The streams that an authority is asked for on.
    pub(super) fn seats(&self, of: usize) -> impl Iterator<Item = &LinkBook> {
        self.links.values().filter(move |book| book.asks.iter().any(|(_, name)| authority_of(name) == of))
    }

    /// Whether all that is asked for it fails.
    pub(super) fn all_fail(&self, of: usize) -> bool {
        // Those that are told nothing yet are asked still.
        let mut asked: Vec<_> = self.seats(of).collect();
        if asked.is_empty() {
            asked.extend(self.links.values().filter(|book| book.of.contains(&of)));
        }
        !asked.is_empty() && asked.iter().all(|book| book.fails)
    }

    /// Whether something is watched that nothing is known of, not even that servers were silent of it for so long.
    pub(super) fn lacks(&self, of: usize, now: Instant, patience: Duration) -> bool {
        let is_unknown = |key: &Key| self.entries.get(key).is_none_or(|entry| *entry == Entry::default());
        let had_time = |since: Instant| now >= since + patience && self.seats(of).any(|book| book.had_stream);
        let of_it = self.watched.iter().filter(|((_, name), _)| authority_of(name) == of && !name.ends_with('*'));
        of_it.into_iter().any(|(key, (_, since))| is_unknown(key) && !had_time(*since))
    }
}
