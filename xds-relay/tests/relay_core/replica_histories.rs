//! Whatever happens to relays that have their releases in one store, and to that.

use std::sync::atomic::Ordering;
use std::time::Duration;

use proptest::prelude::*;
use xds_relay::releases::{Act, Stage, Stages, Who};

use crate::support::replicas::Replicas;
use crate::support::{CLUSTERS, SECOND};

#[derive(Clone, Copy, Debug)]
enum Event {
    Set(u8),
    SetAt(u8, u8),
    Cut(u8, bool),
    Expire,
    Freeze(u8),
    Unfreeze(u8),
    Rollback(u8),
    Move(u8, u8),
    Snapshot,
    Restore,
    Start,
    Restart(u8),
    Tick,
    Wait(u8),
}

fn event() -> impl Strategy<Value = Event> {
    let relay = 0..3u8;
    prop_oneof![
        4 => (1..6u8).prop_map(Event::Set),
        2 => (relay.clone(), 1..6u8).prop_map(|(relay, body)| Event::SetAt(relay, body)),
        2 => (relay.clone(), any::<bool>()).prop_map(|(relay, is)| Event::Cut(relay, is)),
        2 => Just(Event::Expire),
        1 => relay.clone().prop_map(Event::Freeze),
        2 => relay.clone().prop_map(Event::Unfreeze),
        1 => relay.clone().prop_map(Event::Rollback),
        2 => (0..4u8, relay).prop_map(|(client, relay)| Event::Move(client, relay)),
        1 => Just(Event::Snapshot),
        1 => Just(Event::Restore),
        1 => Just(Event::Start),
        2 => (0..3u8).prop_map(Event::Restart),
        3 => Just(Event::Tick),
        6 => (1..70u8).prop_map(Event::Wait),
    ]
}

/// Whether it is frozen in the store, and known to enough relays: what none of them knows any more is lost.
#[derive(Default)]
struct Frozen {
    is: bool,
    /// The store was put back, and not all that is known is there again: what is done meanwhile may go with what is mended.
    is_lost: bool,
}

impl Frozen {
    fn before(&mut self, relays: &Replicas, event: Event) {
        let knows = |relay| relays.control(relay).frozen().is_some();
        let is_cut_off = |relay: usize| relays.seats[relay].is_cut_off.load(Ordering::Relaxed);
        match event {
            // Who does not know it, or is away for longer than it is awaited, is not heard.
            Event::Restore => {
                self.is &= (0..relays.seats.len()).all(|relay| knows(relay) && !is_cut_off(relay));
                self.is_lost = true;
            }
            Event::Cut(..) | Event::Start | Event::Restart(_) => self.is &= !self.is_lost,
            Event::Wait(seconds) => self.is_lost &= seconds < 15 || (0..relays.seats.len()).any(is_cut_off),
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever happens, all that a client has is of one release that there was; and relays that hear each other agree.
    /// And what is frozen in the store stays so, as long as nobody unfreezes it and somebody knows it.
    #[test]
    fn whatever_happens_clients_have_a_whole_release_and_relays_agree(
        events in proptest::collection::vec(event(), 1..24),
        are_at_once in (0..3u8).prop_map(|of| of == 0),
    ) {
        let files = |body: u8| [format!("a@{body}"), "b@0".to_owned(), format!("c-{body}@{body}")];
        // What the files of each relay say.
        let mut said = [1; 5];
        let mut set = |relays: &mut Replicas, only: Option<u8>, body: Option<u8>| {
            let all = u8::try_from(relays.seats.len()).unwrap();
            for relay in only.map_or(0..all, |only| only..only + 1) {
                let said = &mut said[usize::from(relay)];
                *said = body.unwrap_or(*said);
                let files = files(*said);
                relays.set_at(relay.into(), &files.each_ref().map(String::as_str));
            }
        };
        let mut relays = Replicas::new(3, |rollout| {
            if are_at_once {
                let stage = Stage { who: Who::Percent("100%".parse().unwrap()), hold: Duration::ZERO };
                rollout.stages = Stages::new([stage]);
            }
        });
        let mut frozen = Frozen::default();
        set(&mut relays, None, Some(1));
        relays.advance(5);
        let mut clients: Vec<_> = (0..4).map(|number: usize| {
            relays.node(number % 3, &format!("n{number}"), if number == 0 { "canary" } else { "other" })
        }).collect();
        let mut homes = [0, 1, 2, 0];
        relays.advance(2);
        let mut snapshot = relays.snapshot();
        for event in events {
            frozen.before(&relays, event);
            match event {
                Event::Set(body) => set(&mut relays, None, Some(body)),
                Event::SetAt(relay, body) => set(&mut relays, Some(relay), Some(body)),
                Event::Cut(relay, is) => relays.cut_off(relay.into(), is),
                Event::Expire => relays.expire(),
                Event::Freeze(relay) => {
                    let applied = relays.apply(relay.into(), Act::Freeze);
                    frozen.is |= applied.is_ok_and(|applied| applied.is_kept);
                }
                Event::Unfreeze(relay) => frozen.is &= relays.apply(relay.into(), Act::Unfreeze).is_err(),
                Event::Rollback(relay) => _ = relays.order(relay.into(), Act::Rollback { to: None }),
                Event::Move(client, relay) => {
                    let client = usize::from(client);
                    homes[client] = relay;
                    relays.world.disconnect(clients[client]);
                    let cluster = if client == 0 { "canary" } else { "other" };
                    clients[client] = relays.node(relay.into(), &format!("n{client}"), cluster);
                    relays.advance(1);
                }
                Event::Snapshot => snapshot = relays.snapshot(),
                Event::Restore => relays.restore(&snapshot),
                Event::Start if relays.seats.len() < 5 => {
                    relays.start();
                    let relay = relays.seats.len() - 1;
                    set(&mut relays, Some(u8::try_from(relay).unwrap()), None);
                }
                Event::Start => {}
                Event::Restart(relay) => {
                    let its = clients.iter().zip(homes).filter(|(_, home)| *home == relay).map(|(client, _)| *client);
                    relays.restart(relay.into(), &its.collect::<Vec<_>>());
                    set(&mut relays, Some(relay), None);
                }
                // Nobody hears anything.
                Event::Tick => relays.world.advance(SECOND),
                Event::Wait(seconds) => relays.advance(seconds.into()),
            }
            for client in &clients {
                let held = relays.world.clients[*client].held(CLUSTERS);
                prop_assert!((1..6).any(|body| held == files(body)), "{:?}", held);
            }
        }
        let all = relays.seats.len();
        (0..all).for_each(|relay| relays.cut_off(relay, false));
        relays.advance(12);
        for relay in 1..all {
            prop_assert_eq!(relays.control(0), relays.control(relay));
        }
        prop_assert!(!frozen.is || relays.control(0).frozen().is_some(), "what was frozen is not");
    }
}
