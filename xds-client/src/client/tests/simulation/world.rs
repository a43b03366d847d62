//! A program's client, its servers and the links between them, in a time that passes when a history says so.

use std::time::{Duration, Instant};

use super::super::{CDS, Protocol, features, now};
use super::books::{Books, Why};
use super::documents::{self, Site};
use super::history::{AUTHORITIES, History, SERVERS, SLOTS, Setup, Step, uri_of};
use super::link::{Link, Port};
use super::said::Word;
use super::server::{Has, Server};
use super::watched::{At, Watched};
use super::{Target, history};
use crate::Client;
use crate::bootstrap::{self, Authority, Bootstrap, ChannelCreds};

/// Longer than two waits between attempts, and than any silence.
const LONG: Duration = Duration::from_secs(200);
/// Whoever never comes to an end is a bug.
const MOST: usize = 2000;

pub(super) struct World {
    setup: Setup,
    now: Instant,
    client: Client,
    port: Port,
    links: Vec<Link>,
    dialed: usize,
    servers: [Server; SERVERS],
    watches: [Option<Watched>; SLOTS],
    site: Site,
    pub(super) books: Books,
}

/// Runs a history: what is wrong with it, if anything is.
pub(super) fn run(history: &History) -> Result<(), (String, Vec<String>)> {
    let mut world = World::new(&history.setup);
    for step in &history.steps {
        world.books.log.push(format!("-- {step:?}"));
        world.act(step);
        if let Some(wrong) = world.books.wrong.take() {
            return Err((wrong, world.books.log));
        }
    }
    Ok(())
}

impl World {
    fn new(setup: &Setup) -> Self {
        let features = features(setup.drops, setup.waits);
        let server = |at: &usize| bootstrap::Server::new(uri_of(*at), ChannelCreds::Insecure).with_features(features);
        let top = setup.list(0);
        let bootstrap = Bootstrap::new(server(&top[0]));
        let bootstrap = top[1..].iter().fold(bootstrap, |bootstrap, at| bootstrap.with_server(server(at)));
        let bootstrap = AUTHORITIES.iter().zip(&setup.lists).skip(1).fold(bootstrap, |bootstrap, (name, list)| {
            let servers = list.iter().flatten().map(server);
            bootstrap.with_authority(*name, servers.fold(Authority::default(), Authority::with_server))
        });
        let port = Port::default();
        let builder = Client::builder(bootstrap).protocol(setup.protocol);
        let documents = documents::Port::default();
        let client = builder.transport(port.clone()).http(documents.clone()).build().unwrap();
        let lists = (0..=AUTHORITIES.len()).map(|authority| setup.list(authority)).collect();
        Self {
            setup: setup.clone(),
            now: now(),
            client,
            port,
            links: Vec::new(),
            dialed: 0,
            servers: setup.latencies.map(Server::new),
            watches: std::array::from_fn(|_| None),
            site: Site::new(documents),
            books: Books::new(lists, !setup.drops),
        }
    }

    fn act(&mut self, step: &Step) {
        match step {
            Step::Watch(slot, target, at_once) => {
                self.leave(*slot);
                self.books.watches(&target.key(), self.now);
                self.watches[*slot] = Some(Watched::open(&self.client, target.clone()));
                if *at_once {
                    self.look(*slot, false);
                }
            }
            Step::Leave(slot) => self.leave(*slot),
            Step::Look(slot) => self.look(*slot, true),
            Step::Put(server, key, has) => self.servers[*server].put(key.clone(), has.clone()),
            Step::Remove(server, key) => self.servers[*server].remove(key),
            Step::Down(server) => self.servers[*server].up = false,
            Step::Up(server) => self.servers[*server].up = true,
            Step::Silent(server, silent) => self.servers[*server].silent = *silent,
            Step::Cut(server) => {
                let Self { links, books, now, .. } = self;
                links
                    .iter_mut()
                    .filter(|link| link.server == *server)
                    .for_each(|link| _ = link.cut(*now, books, "cut"));
            }
            Step::Slow(server, latency) => self.servers[*server].latency = *latency,
            Step::Sweep => self.client.sweep(self.now),
            Step::Pass(ms) => self.pass(Duration::from_millis(*ms)),
            Step::Document(at, doing) => self.site.act(*at, doing, &self.client, &mut self.books),
            Step::Heal => self.heal(),
        }
        self.settle();
    }

    fn leave(&mut self, slot: usize) {
        if let Some(watched) = self.watches[slot].take() {
            let key = watched.target.key();
            drop(watched);
            self.settle();
            self.books.leaves(&key);
        }
    }

    fn look(&mut self, slot: usize, settled: bool) {
        let at = At {
            now: self.now,
            patience: Duration::from_secs(self.setup.patience()),
            waits: self.setup.waits,
            settled,
        };
        if let Some(watched) = &mut self.watches[slot] {
            watched.look(&mut self.books, &at);
        }
        self.settle();
    }

    fn heal(&mut self) {
        for server in &mut self.servers {
            (server.up, server.silent) = (true, false);
        }
        self.site.heal();
        for _ in 0..2 {
            self.pass(LONG);
            (0..SLOTS).for_each(|slot| self.look(slot, true));
        }
        self.site.look_at_all(&mut self.books);
        (0..SLOTS).for_each(|slot| self.is_as_the_first_has_it(slot));
    }

    /// What is known of it in the end is what the first of its servers has.
    fn is_as_the_first_has_it(&mut self, slot: usize) {
        let Some(watched) = self.watches[slot].as_ref() else { return };
        let (key, is_plain) = (watched.target.key(), watched.is_plain());
        if watched.target == Target::Stranger {
            return;
        }
        let held = watched.shown.iter().filter(|(_, shown)| shown.held.is_some());
        let names: Vec<_> =
            held.map(|(name, _)| name.clone()).filter(|_| matches!(watched.target, Target::All(_))).collect();
        let of = history::authority_of(&key.1);
        let first = self.books.lists[of][0];
        for name in names {
            if self.servers[first].has(&(key.0, name.clone())).is_none() {
                self.books.fault(format!("{name} is there still, and the first does not have it"));
            }
        }
        let has = self.servers[first].has(&key);
        let known = self.books.entries.get(&key).cloned().unwrap_or_default();
        let leads_to = match &known.held {
            Some(Word::Redirect(to)) => vec![to.clone()],
            Some(Word::List(members)) => members.clone(),
            _ => Vec::new(),
        };
        if let Some(to) = leads_to.iter().find(|to| !self.books.is_asked_for(&(CDS, (*to).clone()))) {
            self.books.fault(format!("{}: {to}, to which it leads, is not asked for", key.1));
        }
        let text = |text: &str| Some(Word::Text(text.to_owned()));
        let silent = self.setup.protocol == Protocol::Sotw && !super::server::is_full_state(key.0);
        let is_right = !is_plain
            || match has {
                Some(Has::Text(bad)) if history::is_bad(bad) => {
                    known.error == Some(Why::Invalid) && (known.held.is_none() || !self.setup.drops)
                }
                Some(Has::Text(good)) => known.held == text(good) && known.error.is_none(),
                Some(Has::Error(_)) => known.error.is_some(),
                // It was asked for after the last full state was written, and leaves it at that; or what it cannot send for now it
                // does not have any more, which is not said.
                None if known.crossed || matches!(known.error, Some(Why::Refused(code)) if history::passes(code)) => {
                    true
                }
                None => silent || known.error.is_some() && (known.held.is_none() || !self.setup.drops),
                Some(other) => panic!("{other:?}"),
            };
        if !is_right {
            self.books.fault(format!("{}: {known:?}, where the first has {has:?}", key.1));
        }
        // Over SotW one that has nothing of all that is asked for may say nothing at all.
        let answers = self.books.seats(of).any(|book| book.answers && book.server == first);
        if answers && self.books.authorities[of].asked > 1 {
            self.books.fault(format!("authority {of}: {:?}, where the first is back", self.books.authorities[of]));
        }
    }

    /// Lets happen what can happen now.
    fn settle(&mut self) {
        for _ in 0..MOST {
            if !self.step() {
                return;
            }
        }
        self.books.fault("it never comes to an end".into());
    }

    fn step(&mut self) -> bool {
        let Self { setup, now, port, links, dialed, servers, books, site, .. } = self;
        let mut happened = site.drive(*now, books);
        for dialing in port.take() {
            let link = Link::new(*dialed, (setup.protocol, setup.window), dialing, *now);
            books.dialed(link.id, link.server);
            *dialed += 1;
            links.push(link);
            happened = true;
        }
        links.retain_mut(|link| {
            if link.is_dropped() {
                books.dropped(link.id);
                happened = true;
                return false;
            }
            happened |= link.drive(*now, &servers[link.server], books);
            true
        });
        happened
    }

    /// Lets time pass, and happen what happens meanwhile.
    fn pass(&mut self, time: Duration) {
        self.settle();
        let end = self.now + time;
        loop {
            let due = self.links.iter().filter_map(Link::poll_timeout).chain(self.site.poll_timeout());
            let next = due.filter(|at| *at > self.now).min();
            let next = next.filter(|next| *next <= end);
            self.now = next.unwrap_or(end);
            self.settle();
            if next.is_none() {
                return;
            }
        }
    }
}
