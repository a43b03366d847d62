//! Watches that are not looked at, and such as open others while they are told something: S40 and S53 to S56.
//!
//! grpc-go reads the next response of a stream once every watch of the last one is done. A watch here has no queue and sees what is
//! newest, so that nobody waits for it (rule 42): what is held in these scenarios is that one that does not look delays neither the
//! answers to a server nor another watch.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use futures_core::Stream;

use super::wire::{body, request, requests, response, wrapper};
use super::*;

/// A server that says what the test says, and what it is answered.
struct Scripted {
    world: World,
    protocol: Protocol,
}

impl Scripted {
    fn new(protocol: Protocol) -> Self {
        let world = World::of(protocol, KEEPS);
        world.top().be_silent(true);
        Self { world, protocol }
    }

    fn everywhere(scenario: impl Fn(&Self)) {
        [Protocol::Delta, Protocol::Sotw].into_iter().for_each(|protocol| scenario(&Self::new(protocol)));
    }

    /// The words of the NACK, if it is one; there is one answer, at once.
    fn answered(&self, version: &str, resources: &[(&str, &str)]) -> Option<String> {
        let resources: Vec<_> =
            resources.iter().map(|(name, content)| wrapper(name, version, body(CDS, name, content))).collect();
        self.world.top().send(&response(self.protocol, CDS, (version, version), &resources));
        self.world.network.settle();
        let answer = request(&self.world.top(), self.protocol);
        assert_eq!(answer.nonce, version, "{:?}", self.protocol);
        answer.error.map(|(_, words)| words)
    }
}

#[test]
fn s053_a_watch_that_does_not_look_delays_neither_the_next_response_nor_another_watch() {
    Scripted::everywhere(|of| {
        let (mut slow, mut quick) = (of.world.watch("x"), of.world.watch("x"));
        requests(&of.world.top(), of.protocol);
        for version in ["1", "2", "3"] {
            assert_eq!(of.answered(version, &[("x", version)]), None);
            assert_eq!(heard(&mut quick), [format!("put x {version}")], "{:?}", of.protocol);
        }
        assert_eq!(heard(&mut slow), ["put x 3"], "it sees what is newest");
    });
}

#[test]
fn s054_nor_does_it_where_a_response_has_several_names() {
    Scripted::everywhere(|of| {
        let (mut slow, mut quick) = (of.world.watch("x"), of.world.watch("y"));
        requests(&of.world.top(), of.protocol);
        for version in ["1", "2", "3"] {
            assert_eq!(of.answered(version, &[("x", version), ("y", version)]), None);
            assert_eq!(heard(&mut quick), [format!("put y {version}")], "{:?}", of.protocol);
        }
        assert_eq!(heard(&mut slow), ["put x 3"]);
    });
}

#[test]
fn s055_nor_where_what_comes_is_refused() {
    Scripted::everywhere(|of| {
        let (mut slow, mut quick) = (of.world.watch("x"), of.world.watch("x"));
        requests(&of.world.top(), of.protocol);
        for bad in ["bad 1", "bad 2"] {
            assert_eq!(of.answered(bad, &[("x", bad)]), Some(format!("x: {bad} is bad")));
            assert_eq!(
                heard(&mut quick),
                [format!("failed x: invalid at {bad:?} ({bad} is bad)")],
                "{:?}",
                of.protocol
            );
        }
        assert_eq!(heard(&mut slow), ["failed x: invalid at \"bad 2\" (bad 2 is bad)"]);
        assert_eq!(of.answered("3", &[("x", "3")]), None);
        assert_eq!((heard(&mut slow), heard(&mut quick)), (vec!["put x 3".to_owned()], vec!["put x 3".to_owned()]));
    });
}

#[test]
fn s056_nor_where_what_there_was_is_gone() {
    let of = Scripted::new(Protocol::Sotw);
    let (mut slow, mut quick) = (of.world.watch("x"), of.world.watch("x"));
    requests(&of.world.top(), of.protocol);
    assert_eq!(of.answered("1", &[("x", "1")]), None);
    assert_eq!(heard(&mut quick), ["put x 1"]);
    assert_eq!(of.answered("2", &[]), None);
    assert_eq!(heard(&mut quick), ["ambient x: absent"]);
    // Nothing of it was seen: first what is used on, and then why it is not newer.
    assert_eq!(heard(&mut slow), ["put x 1", "ambient x: absent"]);
    assert_eq!(of.answered("3", &[("x", "3")]), None);
    assert_eq!((heard(&mut slow), heard(&mut quick)), (vec!["put x 3".to_owned()], vec!["put x 3".to_owned()]));
}

/// A program that opens watches where it is woken, as an executor may that runs what it wakes.
struct Opens {
    client: Client,
    opened: Mutex<Vec<Watch>>,
    woken: AtomicUsize,
}

impl Wake for Opens {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Relaxed);
        let opened = ["x", "y", "z"].map(|name| self.client.watch(CDS, name));
        self.opened.lock().unwrap().extend(opened);
    }
}

#[test]
fn s040_watches_of_the_same_and_of_other_names_are_opened_while_one_is_told_something() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        let (client, opened, woken) = (world.client.clone(), Mutex::default(), AtomicUsize::new(0));
        let opens = Arc::new(Opens { client, opened, woken });
        let mut watch = world.client.watch(CDS, "x");
        let waker = Waker::from(opens.clone());
        let polled = std::pin::Pin::new(&mut watch).poll_next(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        ["x", "y", "z"].iter().for_each(|name| world.put(CDS, name, "1"));
        world.network.settle();
        assert!(opens.woken.load(Ordering::Relaxed) > 0, "{protocol:?}");
        let mut opened = std::mem::take(&mut *opens.opened.lock().unwrap());
        for (at, watch) in opened.iter_mut().enumerate() {
            assert_eq!(heard(watch).last().unwrap(), &format!("put {} 1", ["x", "y", "z"][at % 3]), "{protocol:?}");
        }
        assert_eq!(heard(&mut watch).last().unwrap(), "put x 1");
        let names: std::collections::BTreeSet<_> =
            requests(&world.top(), protocol).into_iter().flat_map(|request| request.names).collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["x", "y", "z"], "{protocol:?}");
        assert_eq!(world.top().opened(), 1, "on one stream");
    }
}
