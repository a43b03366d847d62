//! `#alt=` of TP1 (rule 83).

use super::*;

const LONG: Duration = Duration::from_secs(200);

/// A cloud, and what is on the premises: the example of TP1.
struct Premises {
    world: World,
    cloud: String,
    onprem: String,
}

impl Premises {
    fn new(features: Features) -> Self {
        let world = World::of(Protocol::Delta, features);
        Self { world, cloud: xdstp("a", CDS, "foo"), onprem: xdstp("other", CDS, "bar") }
    }

    fn watch(&self) -> Watch<Cluster> {
        self.world.watch(&format!("{}#alt={}", self.cloud, self.onprem))
    }

    fn away(&self) {
        self.world.top().go_down("away");
        self.world.network.pass(LONG);
    }

    fn back(&self) {
        self.world.top().come_up();
        self.world.network.pass(LONG);
    }
}

#[test]
fn r083_the_alternative_is_not_asked_while_the_first_answers_and_no_directive_is_ever_sent() {
    let at = Premises::new(KEEPS);
    at.world.put(CDS, &at.cloud, "1");
    let mut watch = at.watch();
    assert_eq!(at.world.follow(&mut watch), [format!("put {} 1", at.cloud)]);
    assert_eq!(at.world.top().take_asked(), [format!("+{}", at.cloud)]);
    assert_eq!(at.world.other().opened(), 0);
    // What is held is used on: gRFC A71.
    at.away();
    assert_eq!(at.world.follow(&mut watch), ["ambient all: unreachable (away)"]);
    assert_eq!(at.world.other().opened(), 0);
}

#[test]
fn r083_who_cannot_reach_the_first_uses_the_alternative_by_its_name_until_the_first_has_it() {
    let at = Premises::new(KEEPS);
    at.world.put_other(CDS, &at.onprem, "of the premises");
    at.away();
    let mut watch = at.watch();
    assert_eq!(at.world.follow(&mut watch), [format!("put {} of the premises", at.cloud)]);
    assert_eq!(at.world.other().take_asked(), [format!("+{}", at.onprem)]);
    at.world.put_other(CDS, &at.onprem, "newer");
    assert_eq!(at.world.follow(&mut watch), [format!("put {} newer", at.cloud)]);

    at.world.put(CDS, &at.cloud, "of the cloud");
    at.back();
    assert_eq!(at.world.follow(&mut watch), [format!("put {} of the cloud", at.cloud)]);
    assert_eq!(at.world.other().take_asked(), [format!("-{}", at.onprem)]);
    at.world.put_other(CDS, &at.onprem, "late");
    assert!(at.world.follow(&mut watch).is_empty());
}

#[test]
fn r083_what_is_in_use_is_kept_when_the_first_is_back_without_it() {
    for (features, keeps) in [(KEEPS, true), (DROPS, false)] {
        let at = Premises::new(features);
        at.world.put_other(CDS, &at.onprem, "1");
        at.away();
        let mut watch = at.watch();
        assert_eq!(at.world.follow(&mut watch), [format!("put {} 1", at.cloud)]);
        at.back();
        if keeps {
            assert_eq!(at.world.follow(&mut watch), [format!("ambient {}: absent", at.cloud)]);
            at.world.put_other(CDS, &at.onprem, "2");
            assert_eq!(at.world.follow(&mut watch), [format!("put {} 2", at.cloud)]);
        } else {
            assert_eq!(at.world.follow(&mut watch), [format!("failed {}: absent", at.cloud)]);
        }
        at.world.put(CDS, &at.cloud, "3");
        assert_eq!(at.world.follow(&mut watch), [format!("put {} 3", at.cloud)]);
    }
}

#[test]
fn r083_silence_and_answers_are_no_reason_to_turn_away() {
    let at = Premises::new(KEEPS);
    at.world.put_other(CDS, &at.onprem, "1");
    let mut watch = at.watch();
    assert_eq!(at.world.follow(&mut watch), [format!("failed {}: absent", at.cloud)]);
    drop(watch);
    at.world.top().be_silent(true);
    let mut watch = at.watch();
    at.world.network.pass(PATIENCE);
    assert_eq!(at.world.follow(&mut watch), [format!("failed {}: timeout, an absence", at.cloud)]);
    assert_eq!(at.world.other().opened(), 0);
}

#[test]
fn r083_when_both_are_away_that_is_told_and_whoever_is_back_first_is_used() {
    let at = Premises::new(KEEPS);
    at.world.put_other(CDS, &at.onprem, "1");
    at.world.other().go_down("away, too");
    at.away();
    let mut watch = at.watch();
    assert_eq!(at.world.follow(&mut watch), [format!("failed {}: unreachable (away, too)", at.cloud)]);
    at.world.put(CDS, &at.cloud, "2");
    at.back();
    assert_eq!(at.world.follow(&mut watch).last().unwrap(), &format!("put {} 2", at.cloud));
}

#[test]
fn r083_an_alternative_may_have_another() {
    let at = Premises::new(KEEPS);
    at.away();
    at.world.other().go_down("away, too");
    // `b` is served by the same servers as `a`: only the third is another.
    let network = &at.world.network;
    let server = |uri| Server::new(uri, ChannelCreds::Insecure);
    let bootstrap = Bootstrap::new(server(TOP))
        .with_authority("a", Authority::default())
        .with_authority("other", Authority::default().with_server(server(OTHER)))
        .with_authority("third", Authority::default().with_server(server("third:1")));
    let client = Client::builder(bootstrap).transport(network.clone()).build().unwrap();
    let third = xdstp("third", CDS, "baz");
    network.server("third:1").put(CDS, &third, "3", &message(&third, "3"));
    let escaped = format!("{}%23alt={third}", at.onprem);
    let mut watch = client.watch_as::<Cluster>(&format!("{}#alt={escaped}", at.cloud));
    network.settle();
    assert_eq!(at.world.follow(&mut watch), [format!("put {} 3", at.cloud)]);
}

#[test]
fn r083_an_alternative_is_one_resource_of_the_same_type() {
    let at = Premises::new(KEEPS);
    for other in [xdstp("other", LDS, "x"), xdstp("other", CDS, "x/*"), "http://cdn/T/x".into()] {
        let mut watch = at.world.watch_raw(CDS, &format!("{}#alt={other}", at.cloud));
        let told = at.world.follow(&mut watch);
        assert!(told.len() == 1 && told[0].contains("its alternative is not"), "{told:?}");
    }
    // Who the alternative is of, is said when it is needed.
    at.away();
    let stranger = xdstp("stranger", CDS, "x");
    let mut watch = at.world.watch_raw(CDS, &format!("{}#alt={stranger}", at.cloud));
    assert_eq!(
        at.world.follow(&mut watch),
        [format!("failed {}: authority \"stranger\" is not in the bootstrap (as node \"me\")", at.cloud)]
    );
}

#[test]
fn r083_whose_server_counts_is_that_of_the_alternative_while_it_is_used() {
    let at = Premises::new(KEEPS);
    at.world.put_other(CDS, &at.onprem, "1");
    at.away();
    let mut watch = at.watch();
    assert_eq!(at.world.follow(&mut watch), [format!("put {} 1", at.cloud)]);
    assert_eq!(watch.server().as_deref(), Some(OTHER));
    at.world.put(CDS, &at.cloud, "2");
    at.back();
    assert_eq!(at.world.follow(&mut watch).last().unwrap(), &format!("put {} 2", at.cloud));
    assert_eq!(watch.server().as_deref(), Some(TOP));
}
