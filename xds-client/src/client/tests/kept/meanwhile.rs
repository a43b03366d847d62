//! What was kept, while servers say a part of what there is, or the store is not there yet: no silence takes anything of it.

use super::super::responses::response;
use super::super::wire::{body, wrapper};
use super::*;

/// A program with `x` and `y` kept, that begins anew with a server that says nothing by itself.
fn kept(protocol: Protocol) -> Program {
    let mut program = Program::new(protocol);
    for name in ["x", "y"] {
        program.world.put(EDS, name, "1");
    }
    let watches = ["x", "y"].map(|name| program.world.watch_raw(EDS, name));
    program.save();
    drop(watches);
    program.top().be_silent(true);
    program.restart(protocol);
    program
}

/// The server says this of the names that it was asked for, and nothing else.
fn say(program: &Program, protocol: Protocol, versions: &[(&str, &str)]) {
    let resources: Vec<_> =
        versions.iter().map(|(name, version)| wrapper(name, version, body(EDS, name, version))).collect();
    program.top().send(&response(protocol, EDS, &resources));
    program.world.network.settle();
}

fn passes(program: &Program, seconds: u32) {
    for _ in 0..seconds {
        program.world.network.pass(SECOND);
        program.save();
    }
}

#[test]
fn what_a_server_is_silent_of_while_it_speaks_of_the_rest_is_served_and_stays_kept() {
    let mut program = kept(Protocol::Delta);
    let [mut x, mut y] = ["x", "y"].map(|name| program.world.watch_raw(EDS, name));
    say(&program, Protocol::Delta, &[("x", "2")]);
    assert_eq!(heard(&mut x), ["put x 2"]);
    assert_eq!(heard(&mut y), [""; 0], "it may be about to answer");
    passes(&program, 14);
    assert_eq!((heard(&mut y), y.is_stale()), (vec!["put y 1".to_owned()], true));
    passes(&program, 120);
    assert_eq!((heard(&mut y), y.is_stale()), (vec![], true), "nobody has spoken of it");
    assert!(!x.is_stale());

    program.top().go_down("away");
    drop((x, y));
    program.restart(Protocol::Delta);
    let mut y = program.world.watch_raw(EDS, "y");
    assert_eq!(heard(&mut y).first().map(String::as_str), Some("put y 1"));
}

#[test]
fn what_is_served_because_of_a_silence_is_asked_for_and_gives_way_to_any_word() {
    for removed in [false, true] {
        let program = kept(Protocol::Delta);
        let [_x, mut y] = ["x", "y"].map(|name| program.world.watch_raw(EDS, name));
        say(&program, Protocol::Delta, &[("x", "2")]);
        passes(&program, 14);
        assert_eq!(heard(&mut y), ["put y 1"]);
        program.top().remove(EDS, "y");
        if !removed {
            program.top().put(EDS, "y", "2", &message("y", "2"));
        }
        program.top().be_silent(false);
        passes(&program, 1);
        let expected = if removed { "ambient y: absent" } else { "put y 2" };
        assert_eq!(heard(&mut y), [expected]);
        assert!(!y.is_stale(), "its server has spoken of it, whatever stays in use");
    }
}

#[test]
fn what_was_told_to_be_as_it_is_was_told_by_a_word() {
    whatever(|mut program, protocol| {
        program.world.put(EDS, "x", "1");
        let watch = program.world.watch_raw(EDS, "x");
        program.save();
        program.top().go_down("away");
        drop(watch);
        program.restart(protocol);
        let mut watch = program.world.watch_raw(EDS, "x");
        passes(&program, 1);
        assert!(heard(&mut watch).contains(&"put x 1".to_owned()) && watch.is_stale());
        // It takes connections, and hangs.
        program.top().be_silent(true);
        program.top().come_up();
        passes(&program, 300);
        assert!(watch.is_stale(), "{protocol:?}");
        assert!(!heard(&mut watch).iter().any(|heard| heard.contains(" x")));
        program.top().be_silent(false);
        program.top().end_streams();
        passes(&program, 60);
        assert!(!watch.is_stale(), "{protocol:?}");
        assert!(!heard(&mut watch).iter().any(|heard| heard.contains(" x")), "it is the same");
    });
}

#[test]
fn what_a_server_removed_is_not_there_after_a_restart_though_nobody_watched_it_any_more() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut program = Program::of(protocol, DROPS);
        for name in ["x", "y"] {
            program.world.put(CDS, name, "1");
        }
        let [mut x, y] = ["x", "y"].map(|name| program.world.watch(name));
        program.save();
        assert_eq!(heard(&mut x), ["put x 1"]);
        program.top().remove(CDS, "x");
        program.world.network.settle();
        assert_eq!(heard(&mut x), ["failed x: absent"], "{protocol:?}");
        drop((x, y));
        program.world.network.pass(SECOND);
        program.save();
        program.top().go_down("away");
        program.restart(protocol);
        let [mut x, mut y] = ["x", "y"].map(|name| program.world.watch(name));
        assert_eq!(heard(&mut x), ["failed all: unreachable (away)"], "{protocol:?}");
        assert_eq!(heard(&mut y).first().map(String::as_str), Some("put y 1"), "{protocol:?}: it was left only");
    }
}

/// A directory is opened by who writes to it first.
struct Late {
    world: World,
    directory: tempfile::TempDir,
    began: (Instant, SystemTime),
}

impl Late {
    fn client(network: &Network, directory: &tempfile::TempDir) -> Client {
        let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure).with_features(DROPS));
        let bootstrap = bootstrap.with_authority("a", Authority::default());
        Client::builder(bootstrap).state(directory.path()).transport(network.clone()).build().unwrap()
    }

    fn new() -> Self {
        let network = Network::speaking(Protocol::Delta, now());
        let directory = tempfile::tempdir().unwrap();
        let (client, began) = (Self::client(&network, &directory), (network.now(), SystemTime::now()));
        Self { world: World { network, client }, directory, began }
    }

    fn restart(self) -> Self {
        let Self { world: World { network, client }, directory, began } = self;
        drop(client);
        network.settle();
        let client = Self::client(&network, &directory);
        Self { world: World { network, client }, directory, began }
    }

    fn save(&self) {
        let now = self.world.network.now();
        while self.world.client.save(now, self.began.1 + now.duration_since(self.began.0)).unwrap().more {}
    }
}

#[test]
fn a_store_that_is_opened_late_loses_nothing_that_no_server_spoke_of() {
    let late = Late::new();
    let names = ["x", "y", "z"].map(|id| xdstp("a", EDS, id));
    for name in &names {
        late.world.put(EDS, name, "1");
    }
    let watches = names.each_ref().map(|name| late.world.watch_raw(EDS, name));
    late.save();
    drop(watches);

    let late = late.restart();
    let [x, y, z] = names.each_ref().map(String::as_str);
    let glob = xdstp("a", EDS, "*");
    // It speaks of two of them, of one that it is gone, before the disk does.
    late.world.top().be_silent(true);
    let mut watches = [x, y, z].map(|name| late.world.watch_raw(EDS, name));
    late.world.top().send(&response(Protocol::Delta, EDS, &[wrapper(x, "2", body(EDS, x, "2"))]));
    let removed = DeltaDiscoveryResponse {
        type_url: EDS.into(),
        nonce: "n".into(),
        removed_resources: vec![z.into()],
        ..Default::default()
    };
    late.world.top().send(&prost::Message::encode_to_vec(&removed));
    late.world.network.settle();
    assert_eq!(
        watches.each_mut().map(heard),
        [vec![format!("put {x} 2")], vec![], vec![format!("failed {z}: absent")]]
    );
    late.save();
    for _ in 0..12 {
        late.world.network.pass(SECOND);
        late.save();
    }
    assert_eq!(heard(&mut watches[1]), [format!("put {y} 1")]);
    assert!(watches[1].is_stale());
    assert_eq!([heard(&mut watches[0]), heard(&mut watches[2])], [vec![""; 0], vec![]]);
    late.world.network.pass(100 * SECOND);
    late.save();

    late.world.top().go_down("away");
    drop(watches);
    let late = late.restart();
    // The disk is read before anybody looks.
    late.save();
    let mut watches = [x, y, z, glob.as_str()].map(|name| late.world.watch_raw(EDS, name));
    late.world.network.pass(SECOND);
    let mut said = watches.each_mut().map(heard);
    said.iter_mut().for_each(|said| said.retain(|said| said.starts_with("put")));
    said[3].sort();
    let (x, y) = (format!("put {x} 2"), format!("put {y} 1"));
    assert_eq!(said, [vec![x.clone()], vec![y.clone()], vec![], vec![x, y]]);
}
