//! Whatever happens to names that have variants (TP2), through a relay behind a relay: nobody is given another's variant,
//! nobody loses one that is there, a removal says which variant it is of, and everybody ends with what there is.
//!
//! Variants come, change, go and are divided in another way, in one change each. Clients of either protocol send different
//! parameters, come back with what they hold, and turn to other parameters. The origin is away at times, and it and the clients
//! speak either form of TP2.

mod faults;
mod removals;
mod several;
mod varied;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use crate::parameters::{BOTH, chain, vary};
use crate::support::{CLUSTERS, DELTA, Hearer, Protocol, SECOND, World};
use faults::Fault;
use removals::Removals;
use several::Several;
use varied::{LAYOUTS, Sends, Varied};

const NAMES: [&str; 2] = ["cart", "shop"];
/// Everything there is, which the last client asks for.
const ALL: &str = "*";
/// What the origin speaks, and what the clients do.
const FORMS: [[&str; 2]; 4] = [["final", "final"], ["draft", "draft"], ["final", "draft"], ["draft", "final"]];
const CLIENTS: usize = 5;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A name is divided so, and of its variants these are there: all with one content, or each with its own.
    Divide(u8, u8, u8, bool),
    /// A variant that is there, or comes beside the others, is new.
    Put(u8, u8),
    Drop(u8, u8),
    Up(bool),
    Want(u8, u8, bool),
    Reconnect(u8),
    /// A client begins again, and sends other parameters.
    Turn(u8, u8),
    Wait(u8),
}

fn event() -> impl Strategy<Value = Event> {
    let (name, client) = (0..2_u8, 0..CLIENTS as u8);
    prop_oneof![
        5 => (name.clone(), 0..LAYOUTS.len() as u8, 0..16_u8, any::<bool>())
            .prop_map(|(name, layout, of, alike)| Event::Divide(name, layout, of, alike)),
        4 => (name.clone(), 0..4_u8).prop_map(|(name, at)| Event::Put(name, at)),
        4 => (name.clone(), 0..4_u8).prop_map(|(name, at)| Event::Drop(name, at)),
        3 => any::<bool>().prop_map(Event::Up),
        4 => (client.clone(), name, any::<bool>()).prop_map(|(client, name, is)| Event::Want(client, name, is)),
        2 => client.clone().prop_map(Event::Reconnect),
        2 => (client, 0..Sends::ALL.len() as u8).prop_map(|(client, sends)| Event::Turn(client, sends)),
        4 => (1..40_u8).prop_map(Event::Wait),
    ]
}

#[derive(Clone, Debug)]
struct History {
    upstream: Protocol,
    forms: [&'static str; 2],
    events: Vec<Event>,
}

fn histories() -> impl Strategy<Value = History> {
    let events = proptest::collection::vec(event(), 1..24);
    let forms = proptest::sample::select(FORMS.to_vec());
    (proptest::sample::select(BOTH.to_vec()), forms, events).prop_map(|(upstream, forms, events)| History {
        upstream,
        forms,
        events,
    })
}

/// A client, and what is known of it.
struct Seat {
    client: usize,
    protocol: Protocol,
    sends: Sends,
    wants: BTreeSet<&'static str>,
    /// What it was told, and not told otherwise.
    holds: BTreeMap<String, String>,
    /// Of what there was nothing for it, at some time since it had what there was.
    was_without: BTreeSet<&'static str>,
}

impl Seat {
    fn covers(&self, name: &str) -> bool {
        self.wants.contains(name) || self.wants.contains(ALL)
    }
}

struct Run {
    world: World,
    last: usize,
    forms: [&'static str; 2],
    varied: Varied,
    seats: Vec<Seat>,
    /// One that is told of variants by constraints.
    several: Option<Several>,
    removals: Arc<Mutex<Removals>>,
}

impl Run {
    fn new(history: &History, fault: Option<Fault>) -> Self {
        let (mut world, last) = chain(history.upstream, &history.forms);
        let removals = Arc::new(Mutex::new(Removals::default()));
        let (hears, upstream) = (removals.clone(), history.upstream);
        let mut plant = fault.map(Fault::plant);
        world.between = Some(Box::new(move |_, hearer, response| {
            let mut removals = hears.lock().unwrap();
            let is_delta = match hearer {
                Hearer::Relay(_) => upstream == DELTA,
                Hearer::Client(client) => removals.speaks_delta(client),
            };
            if !is_delta {
                return response;
            }
            let response = match &mut plant {
                Some(plant) => plant(hearer, response),
                None => response,
            };
            if let Hearer::Client(client) = hearer {
                removals.hears(client, &response);
            }
            response
        }));
        let varied = Varied::new(history.forms[0] == "draft");
        let several = (history.forms[1] == "final").then(|| Several::new(&world, last, &NAMES));
        let mut run = Self { world, last, forms: history.forms, varied, seats: Vec::new(), several, removals };
        for at in 0..CLIENTS {
            let seat = run.sit(at, Sends::ALL[at % Sends::ALL.len()]);
            run.seats.push(seat);
            let wants = if at + 1 == CLIENTS { &[ALL][..] } else { &NAMES };
            wants.iter().for_each(|name| run.want(at, name, true));
        }
        run
    }

    fn sit(&mut self, at: usize, sends: Sends) -> Seat {
        let protocol = BOTH[at % 2];
        let is_draft = self.forms[1] == "draft";
        let client = self.world.client_selecting(self.last, protocol, sends.selector(is_draft));
        // What the draft says of a variant that is gone is its name.
        self.removals.lock().unwrap().sit(client, protocol, protocol == DELTA && !is_draft);
        let (wants, holds) = (BTreeSet::new(), BTreeMap::new());
        Seat { client, protocol, sends, wants, holds, was_without: BTreeSet::new() }
    }

    fn want(&mut self, at: usize, name: &'static str, is: bool) {
        let seat = &mut self.seats[at];
        if is == seat.wants.contains(name) {
            return;
        }
        if is {
            seat.wants.insert(name);
            return self.world.clients[seat.client].subscribe(CLUSTERS, &[name]);
        }
        seat.wants.remove(name);
        let left: Vec<_> = seat.holds.keys().filter(|held| !seat.covers(held)).cloned().collect();
        for name in left {
            seat.holds.remove(&name);
            self.world.clients[seat.client].holds.remove(&(CLUSTERS.to_owned(), name.clone()));
            self.removals.lock().unwrap().forget(seat.client, Some(&name));
        }
        self.world.clients[seat.client].unsubscribe(CLUSTERS, &[name]);
    }

    fn apply(&mut self, event: Event) {
        let name = |at: u8| NAMES[usize::from(at)];
        match event {
            Event::Divide(of, layout, there, alike) => {
                let change = self.varied.divide(name(of), usize::from(layout), there, alike);
                self.change(name(of), change);
            }
            Event::Put(of, at) => {
                let change = self.varied.put(name(of), at.into());
                self.change(name(of), change);
            }
            Event::Drop(of, at) => {
                let change = self.varied.drop(name(of), at.into());
                self.change(name(of), change);
            }
            Event::Up(is) => self.world.origins[0].up = is,
            Event::Want(at, _, is) if usize::from(at) + 1 == CLIENTS => self.want(at.into(), ALL, is),
            Event::Want(at, of, is) => self.want(at.into(), name(of), is),
            Event::Reconnect(at) => {
                let client = self.seats[usize::from(at)].client;
                self.world.clients[client].disconnect(self.world.now);
                self.removals.lock().unwrap().forget(client, None);
                let core = self.world.relays[self.last].core.clone();
                self.world.clients[client].connect(&core, self.world.now);
            }
            Event::Turn(at, sends) => {
                let at = usize::from(at);
                let before = self.seats[at].client;
                self.world.clients[before].disconnect(self.world.now);
                let wants = self.seats[at].wants.clone();
                self.seats[at] = self.sit(at, Sends::ALL[usize::from(sends)]);
                wants.into_iter().for_each(|name| self.want(at, name, true));
            }
            Event::Wait(seconds) => self.world.advance(SECOND * u32::from(seconds)),
        }
        self.world.settle();
    }

    /// In one step.
    fn change(&mut self, name: &str, change: varied::Change) {
        let put: Vec<_> = change.put.iter().map(|(variant, body)| (variant, body.as_str())).collect();
        vary(&mut self.world, CLUSTERS, name, &put, &change.gone.iter().collect::<Vec<_>>());
    }

    /// What was told meanwhile.
    fn check(&mut self) -> Result<(), String> {
        if let Some(wrong) = self.removals.lock().unwrap().wrong.take() {
            return Err(wrong);
        }
        if let Some(several) = &mut self.several {
            several.read(self.world.now);
            several.check(&self.varied)?;
        }
        for seat in &mut self.seats {
            for name in NAMES.into_iter().filter(|name| self.varied.bodies(name, seat.sends).is_empty()) {
                seat.was_without.insert(name);
            }
            for line in self.world.told(seat.client) {
                hear(seat, &self.varied, &line).map_err(|wrong| format!("{wrong}: {:?} {line}", seat.sends))?;
            }
            for name in NAMES {
                let has = |held: &String| self.varied.bodies(name, seat.sends).contains(&held.as_str());
                if seat.holds.get(name).is_some_and(has) {
                    seat.was_without.remove(name);
                }
            }
        }
        Ok(())
    }

    /// All is well, and stays so.
    fn end(&mut self) -> Result<(), String> {
        self.apply(Event::Up(true));
        self.check()?;
        self.apply(Event::Wait(100));
        self.check()?;
        if let Some(several) = &self.several {
            several.end(&self.varied)?;
        }
        for seat in &self.seats {
            for name in NAMES.into_iter().filter(|name| seat.covers(name)) {
                let (held, due) = (seat.holds.get(name), self.varied.bodies(name, seat.sends));
                let is_right = held.map_or(due.is_empty(), |held| due.contains(&held.as_str()));
                if !is_right {
                    let (protocol, sends) = (seat.protocol, seat.sends);
                    return Err(format!("the end: {protocol:?} {sends:?} holds {held:?} of {name}, not {due:?}"));
                }
            }
        }
        Ok(())
    }
}

fn hear(seat: &mut Seat, varied: &Varied, line: &str) -> Result<(), String> {
    if line.starts_with("ended") {
        return Err("the stream ended".into());
    }
    for word in line.split(' ').skip(1) {
        if let Some(gone) = word.strip_prefix("-!").or(word.strip_prefix('-')) {
            let gone = gone.split(':').next().unwrap();
            let held = seat.holds.remove(gone);
            if held.is_some() && seat.covers(gone) && !seat.was_without.contains(gone) {
                return Err(format!("taken away: {gone}"));
            }
        } else if let Some((name, body)) = word.split_once('@') {
            if !seat.covers(name) {
                return Err(format!("unasked: {name}"));
            }
            if !varied.is_for(name, body, seat.sends) {
                return Err(format!("another's variant: {body}"));
            }
            seat.holds.insert(name.to_owned(), body.to_owned());
        }
    }
    Ok(())
}

fn run(history: &History, fault: Option<Fault>) -> Result<(), String> {
    let mut run = Run::new(history, fault);
    run.world.settle();
    run.check()?;
    for (at, event) in history.events.iter().enumerate() {
        run.apply(*event);
        run.check().map_err(|wrong| format!("{wrong} (event {at})"))?;
    }
    run.end()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_to_variants_everybody_has_its_own_and_loses_none(history in histories()) {
        run(&history, None).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn every_planted_fault_is_found() {
    for fault in Fault::ALL {
        let config = Config { cases: 400, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let found = runner.run(&histories(), |history| match run(&history, Some(fault)) {
            Err(wrong) if wrong.contains(fault.found_by()) => Err(TestCaseError::fail(wrong)),
            _ => Ok(()),
        });
        let Err(TestError::Fail(wrong, _)) = found else { panic!("{fault:?} is not found") };
        println!("{fault:?}: {wrong}");
    }
}
