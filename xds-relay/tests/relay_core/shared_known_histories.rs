//! Whatever happens to relays that share what they know, to what they have it in, and to their origin.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use xds_relay::state::{Memory, Op, Store as _};

use crate::last_known_good::text;
use crate::shared_known::Sharers;
use crate::support::{CLUSTERS, DELTA, ENDPOINTS, Protocol, SOTW};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Copy, Debug)]
enum Event {
    Put(u8, u8),
    Remove(u8),
    Up(bool),
    Cut(u8, bool),
    Expire,
    /// A relay is killed, and starts again, with its disk or another one.
    Restart(u8, bool),
    Snapshot,
    Restore,
    Wait(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..4u8, 1..4u8).prop_map(|(name, body)| Event::Put(name, body)),
        3 => (0..4u8).prop_map(Event::Remove),
        3 => any::<bool>().prop_map(Event::Up),
        2 => (0..3u8, any::<bool>()).prop_map(|(relay, is)| Event::Cut(relay, is)),
        2 => Just(Event::Expire),
        4 => (0..3u8, any::<bool>()).prop_map(|(relay, disk)| Event::Restart(relay, disk)),
        1 => Just(Event::Snapshot),
        1 => Just(Event::Restore),
        6 => (1..80u8).prop_map(Event::Wait),
    ]
}

/// What an origin has, and since which event without a pause; what a client holds, the same.
#[derive(Default)]
struct Since(BTreeMap<String, usize>);

impl Since {
    fn look(&mut self, names: Vec<String>, event: usize) -> Vec<(String, usize)> {
        let gone: Vec<_> =
            self.0.iter().filter(|(name, _)| !names.contains(name)).map(|(n, s)| (n.clone(), *s)).collect();
        self.0.retain(|name, _| names.contains(name));
        names.into_iter().for_each(|name| _ = self.0.entry(name).or_insert(event));
        gone
    }
}

fn names(held: &[String]) -> Vec<String> {
    held.iter().map(|held| held.split('@').next().unwrap().to_owned()).collect()
}

fn holds(sharers: &Sharers, client: usize) -> Vec<String> {
    sharers.world.clients[client].held(CLUSTERS)
}

fn history(events: Vec<Event>, upstream: Protocol) -> Result<(), TestCaseError> {
    let mut sharers = Sharers::new(3, &text(upstream));
    let mut origin: BTreeMap<&str, u8> = BTreeMap::new();
    let clients: Vec<_> =
        (0..3).map(|relay| sharers.client(relay, if relay == 1 { SOTW } else { DELTA }, "n")).collect();
    for client in &clients {
        sharers.world.subscribe(*client, CLUSTERS, &["*"]);
        sharers.world.subscribe(*client, ENDPOINTS, &["e"]);
    }
    let (mut has, mut held) = (Since::default(), [(); 3].map(|()| Since::default()));
    let mut snapshot: Vec<Op> = Vec::new();
    for (at, event) in events.into_iter().enumerate() {
        match event {
            Event::Put(name, body) => {
                let name = NAMES[usize::from(name)];
                origin.insert(name, body);
                has.look(origin.keys().map(ToString::to_string).collect(), at);
                sharers.world.put(0, CLUSTERS, name, &body.to_string());
            }
            Event::Remove(name) => {
                let name = NAMES[usize::from(name)];
                origin.remove(name);
                has.look(origin.keys().map(ToString::to_string).collect(), at);
                sharers.world.remove(0, CLUSTERS, name);
            }
            Event::Up(is) => sharers.world.set_up(0, is),
            Event::Cut(relay, is) => sharers.seats[usize::from(relay)].is_cut_off.store(is, Ordering::Relaxed),
            Event::Expire => sharers.expire(),
            Event::Restart(relay, disk) => {
                let relay = usize::from(relay);
                if !disk {
                    sharers.own[relay] = Memory::default();
                }
                sharers.world.disconnect(clients[relay]);
                sharers.restart(relay);
                sharers.world.connect(clients[relay], relay);
            }
            Event::Snapshot => {
                let entries = sharers.store.lock().unwrap().list("").unwrap().entries;
                snapshot = entries.into_iter().map(|entry| Op::put(entry.key, entry.value)).collect();
            }
            Event::Restore => {
                let restored = Memory::default();
                let _ = restored.commit(&snapshot, &[]).unwrap();
                *sharers.store.lock().unwrap() = restored;
                sharers.expire();
            }
            Event::Wait(seconds) => sharers.advance(seconds.into()),
        }
        for (client, held) in clients.iter().zip(&mut held) {
            for (name, since) in held.look(names(&holds(&sharers, *client)), at) {
                let is_there_since = has.0.get(&name).copied();
                prop_assert!(is_there_since.is_none_or(|there| there > since), "{name} was there all the time");
            }
        }
    }
    // All is well again: who is served has what there is.
    sharers.seats.iter().for_each(|seat| seat.is_cut_off.store(false, Ordering::Relaxed));
    sharers.world.set_up(0, true);
    // The turn of one that was cut off is over by itself.
    sharers.expire();
    sharers.advance(100);
    let there: Vec<_> = origin.iter().map(|(name, body)| format!("{name}@{body}")).collect();
    for client in &clients {
        prop_assert_eq!(holds(&sharers, *client), there.clone());
    }
    // And so has who begins with nothing, once all of them have heard that for long, and are gone with the origin.
    sharers.advance(100);
    sharers.world.set_up(0, false);
    sharers.advance(2);
    sharers.start();
    let new = sharers.client(3, DELTA, "n");
    sharers.world.subscribe(new, CLUSTERS, &["*"]);
    sharers.advance(5);
    // What went while nobody wrote may be there still: that something is not there nobody learns from it.
    let mut held = holds(&sharers, new);
    held.retain(|held| names(std::slice::from_ref(held)).iter().all(|name| origin.contains_key(&**name)));
    prop_assert_eq!(held, there);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_nobody_loses_what_there_is_and_who_begins_with_nothing_has_it(
        events in proptest::collection::vec(event(), 1..20),
        is_sotw in any::<bool>(),
    ) {
        history(events, if is_sotw { SOTW } else { DELTA })?;
    }
}
