//! Redirects of TP1 (rule 82).

use super::*;

fn cluster(authority: &str, id: &str) -> String {
    xdstp(authority, CDS, id)
}

impl World {
    /// What a watch hears while what it finds out is looked for, too.
    pub(super) fn follow<R: Content>(&self, watch: &mut Watch<R>) -> Vec<String> {
        let hops = 0..12;
        let turn = |_| {
            let told = heard(watch);
            self.network.settle();
            told
        };
        hops.flat_map(turn).collect()
    }

    pub(super) fn other(&self) -> crate::test::Server {
        self.network.server(OTHER)
    }

    pub(super) fn put_other(&self, type_url: &str, name: &str, version: &str) {
        self.other().put(type_url, name, version, &message(name, version));
        self.network.settle();
    }

    pub(super) fn redirect(&self, name: &str, version: &str, to: &str) {
        self.top().redirect(CDS, name, version, to);
        self.network.settle();
    }
}

#[test]
fn r082_a_redirected_resource_is_what_it_leads_to_whoever_has_that() {
    let world = World::new();
    let (here, there) = (cluster("a", "bar"), cluster("other", "baz"));
    world.redirect(&here, "42", &there);
    world.put_other(CDS, &there, "7");
    let mut watch = world.watch(&here);
    assert_eq!(world.follow(&mut watch), [format!("put {here} 7")]);
    assert_eq!(world.top().take_asked(), [format!("+{here}")]);
    assert_eq!(world.other().take_asked(), [format!("+{there}")]);
    assert!(world.top().take_refused().is_empty(), "it is acknowledged, though it is no cluster");

    world.put_other(CDS, &there, "8");
    assert_eq!(world.follow(&mut watch), [format!("put {here} 8")]);
    drop(watch);
    world.network.settle();
    assert_eq!(world.other().take_asked(), [format!("-{there}")], "nobody wants it any more");
}

/// Whoever asks where it is from is told of that.
#[test]
fn r082_what_is_in_use_is_of_the_first_target_until_the_next_one_answers() {
    let world = World::new();
    let (one, two) = (cluster("other", "one"), cluster("a", "two"));
    world.put_other(CDS, &one, "1");
    world.redirect("x", "1", &one);
    let mut watch = world.watch("x");
    assert_eq!(world.follow(&mut watch), ["put x 1"]);
    let of = |watch: &Watch<Cluster>| watch.server().unwrap().to_string();
    assert_eq!(of(&watch), OTHER);

    for turn in ["2", "3"] {
        world.redirect("x", turn, &two);
        assert_eq!(world.follow(&mut watch), ["ambient x: absent"], "{turn}");
        assert_eq!(of(&watch), OTHER, "{turn}");
    }
    assert_eq!(world.other().take_asked(), [format!("+{one}")], "and not left");
    world.put(CDS, &two, "2");
    assert_eq!(world.follow(&mut watch), ["put x 2"]);
    assert_eq!((of(&watch).as_str(), world.other().take_asked()), (TOP, vec![format!("-{one}")]));
}

#[test]
fn r082_an_old_style_name_may_be_redirected_and_a_redirect_may_be_replaced_without_a_gap() {
    let world = World::new();
    let (one, two) = (cluster("a", "one"), cluster("other", "two"));
    world.put(CDS, "x", "1");
    let mut watch = world.watch("x");
    assert_eq!(world.follow(&mut watch), ["put x 1"]);

    world.redirect("x", "2", &one);
    assert_eq!(world.follow(&mut watch), ["ambient x: absent"], "what there was is used until it leads somewhere");
    world.put(CDS, &one, "of one");
    assert_eq!(world.follow(&mut watch), ["put x of one"]);
    world.redirect("x", "3", &two);
    assert_eq!(world.follow(&mut watch), ["ambient x: absent"]);
    world.put_other(CDS, &two, "of two");
    assert_eq!(world.follow(&mut watch), ["put x of two"]);
    world.put(CDS, &one, "late");
    assert!(world.follow(&mut watch).is_empty(), "it leads there no more");
    world.put(CDS, "x", "4");
    assert_eq!(world.follow(&mut watch), ["put x 4"]);
    world.network.settle();
    assert_eq!(world.other().take_asked(), [format!("+{two}"), format!("-{two}")]);
}

#[test]
fn r082_members_of_a_glob_are_redirected_and_it_is_answered_when_each_has_led_somewhere() {
    let world = World::new();
    let (foo, bar, baz) = (cluster("a", "my/foo"), cluster("a", "my/bar"), cluster("other", "baz"));
    world.put(CDS, &foo, "1");
    world.redirect(&bar, "42", &baz);
    world.other().be_silent(true);
    let mut watch = world.watch(&cluster("a", "my/*"));
    world.network.pass(Duration::from_secs(1));
    assert_eq!(world.follow(&mut watch), [format!("put {foo} 1")]);
    world.other().be_silent(false);
    world.put_other(CDS, &baz, "7");
    assert_eq!(world.follow(&mut watch), [format!("put {bar} 7"), "answered".into()]);

    world.other().remove(CDS, &baz);
    world.network.settle();
    assert_eq!(world.follow(&mut watch), [format!("ambient {bar}: absent")]);
    world.top().remove(CDS, &bar);
    world.network.settle();
    assert_eq!(world.follow(&mut watch), [format!("removed {bar}")]);
    assert_eq!(world.other().take_asked(), [format!("+{baz}"), format!("-{baz}")]);
}

#[test]
fn r082_redirects_end() {
    let world = World::new();
    let (one, two) = (cluster("a", "one"), cluster("b", "two"));
    world.redirect(&one, "1", &two);
    world.redirect(&two, "1", &one);
    let mut watch = world.watch(&one);
    let told = world.follow(&mut watch);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with(&format!("failed {one}: xdstp://")) && told[0].contains("more redirects"), "{told:?}");
    // It is told once, and over when one of them is a resource.
    world.network.settle();
    assert!(world.follow(&mut watch).is_empty());
    world.put(CDS, &two, "2");
    assert_eq!(world.follow(&mut watch), [format!("put {one} 2")]);
}

#[test]
fn r082_eight_redirects_are_followed_and_nine_are_not() {
    for (redirects, follows) in [(8, true), (9, false)] {
        let world = World::new();
        let name = |at: usize| cluster("a", &format!("at-{at}"));
        (0..redirects).for_each(|at| world.redirect(&name(at), "1", &name(at + 1)));
        world.put(CDS, &name(redirects), "1");
        let mut watch = world.watch(&name(0));
        assert_eq!(world.follow(&mut watch) == [format!("put {} 1", name(0))], follows, "{redirects}");
    }
}

#[test]
fn r082_where_nobody_may_be_asked_the_watch_says_so_and_nobody_is() {
    let world = World::new();
    let listener = xdstp("a", LDS, "x");
    for (to, words) in [
        ("xdstp://stranger/envoy.config.cluster.v3.Cluster/x", "authority \"stranger\""),
        ("http://cdn/envoy.config.cluster.v3.Cluster/x", "only xdstp: is asked for"),
        ("file:///etc/x", "only xdstp: is asked for"),
        ("xdstp://a/envoy.config.cluster.v3.Cluster/x/*", "it is a collection"),
        ("xdstp://a/envoy.config.cluster.v3.ClusterCollection/x", "it is a list"),
        ("xdstp://a/envoy.config.cluster.v3.Cluster/x#entry=y", "has entries"),
        (&listener, "it is the name of a envoy.config.listener.v3.Listener"),
    ] {
        world.redirect("x", to, to);
        let mut watch = world.watch("x");
        let told = world.follow(&mut watch);
        assert!(told.len() == 1 && told[0].starts_with("failed x: ") && told[0].contains(words), "{told:?}");
    }
    let dialed = world.network.dialed();
    assert_eq!(dialed, 1);
}

#[test]
fn r082_a_redirect_that_cannot_be_read_is_refused_and_what_there_was_stays() {
    let world = World::new();
    world.put(CDS, "x", "1");
    let mut watch = world.watch("x");
    assert_eq!(world.follow(&mut watch), ["put x 1"]);
    world.redirect("x", "2", "xdstp://no-type");
    let told = world.follow(&mut watch);
    assert!(told.len() == 1 && told[0].starts_with("ambient x: invalid at \"2\""), "{told:?}");
    assert_eq!(world.top().take_refused().len(), 1);
}

#[test]
fn r082_what_a_redirect_leads_to_may_be_away_or_refused_and_that_is_told_of_the_name_that_was_asked_for() {
    let world = World::new();
    let (here, there) = (cluster("a", "bar"), cluster("other", "baz"));
    world.redirect(&here, "1", &there);
    world.other().go_down("away");
    let mut watch = world.watch(&here);
    assert_eq!(world.follow(&mut watch), [format!("failed {here}: unreachable (away)")]);
    world.other().come_up();
    world.put_other(CDS, &there, "bad");
    world.network.pass(Duration::from_secs(200));
    let told = world.follow(&mut watch);
    assert_eq!(told.last().unwrap(), &format!("failed {here}: invalid at \"bad\" (bad is bad)"));
    assert_eq!(world.other().take_refused().len(), 1);
    world.put_other(CDS, &there, "2");
    assert_eq!(world.follow(&mut watch), [format!("put {here} 2")]);
    world.other().go_down("away again");
    world.network.pass(Duration::from_secs(200));
    assert_eq!(world.follow(&mut watch), [format!("ambient {here}: unreachable (away again)")]);
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(std::sync::atomic::AtomicUsize);

impl std::task::Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn r082_who_waits_is_woken_by_what_a_redirect_leads_to() {
    use std::sync::atomic::Ordering::Relaxed;

    let world = World::new();
    let (here, there) = (cluster("a", "bar"), cluster("other", "baz"));
    world.redirect(&here, "1", &there);
    let mut watch = world.watch(&here);
    let woken = std::sync::Arc::<Woken>::default();
    let waker = std::task::Waker::from(woken.clone());
    let mut poll = || {
        let mut cx = std::task::Context::from_waker(&waker);
        futures_core::Stream::poll_next(std::pin::Pin::new(&mut watch), &mut cx)
    };
    assert!(poll().is_pending(), "the redirect is there, and nothing of what it leads to");
    for (version, count) in [("1", 1), ("2", 2)] {
        while poll().is_ready() {}
        let before = woken.0.load(Relaxed);
        world.put_other(CDS, &there, version);
        assert!(woken.0.load(Relaxed) > before, "{count}");
        assert!(poll().is_ready());
    }
}

#[test]
fn r082_whose_server_counts_is_that_of_what_a_redirect_leads_to() {
    let world = World::new();
    let (here, there) = (cluster("a", "bar"), cluster("other", "baz"));
    world.redirect(&here, "1", &there);
    world.put_other(CDS, &there, "1");
    let mut watch = world.watch(&here);
    assert_eq!(watch.server().as_deref(), Some(TOP));
    assert_eq!(world.follow(&mut watch), [format!("put {here} 1")]);
    assert_eq!(watch.server().as_deref(), Some(OTHER));
    world.put(CDS, &here, "2");
    assert_eq!(world.follow(&mut watch), [format!("put {here} 2")]);
    assert_eq!(watch.server().as_deref(), Some(TOP));
}

/// Longer than the first wait for another stream: that one is gone (rule 48), and no name has had its time.
pub(super) const SOON: Duration = Duration::from_secs(5);

#[test]
fn r082_who_has_a_redirect_and_nothing_of_what_it_leads_to_has_nothing_to_go_on_with() {
    let world = World::new();
    let (here, there) = (cluster("a", "bar"), cluster("other", "baz"));
    world.redirect(&here, "1", &there);
    world.other().be_silent(true);
    let mut watch = world.watch(&here);
    assert_eq!(world.follow(&mut watch), [""; 0]);
    world.top().go_down("away");
    world.network.pass(SOON);
    assert_eq!(world.follow(&mut watch), ["failed all: unreachable (away)"]);
    world.top().come_up();
    world.other().be_silent(false);
    world.put_other(CDS, &there, "1");
    world.redirect(&here, "2", &there);
    world.network.pass(SOON);
    assert_eq!(world.follow(&mut watch).last().unwrap(), &format!("put {here} 1"));
    world.top().go_down("away");
    world.network.pass(SOON);
    assert_eq!(world.follow(&mut watch), ["ambient all: unreachable (away)"]);
    // What it led to is gone for good, where that is no longer used on.
    let world = World::of(Protocol::Delta, DROPS);
    world.redirect(&here, "1", &there);
    world.put_other(CDS, &there, "1");
    let mut watch = world.watch(&here);
    assert_eq!(world.follow(&mut watch), [format!("put {here} 1")]);
    world.other().remove(CDS, &there);
    world.network.settle();
    assert_eq!(world.follow(&mut watch), [format!("failed {here}: absent")]);
    world.top().go_down("away");
    world.network.pass(SOON);
    assert_eq!(world.follow(&mut watch), ["failed all: unreachable (away)"]);
}

#[test]
fn r071_what_a_redirect_leads_to_is_told_again_when_another_of_its_servers_counts() {
    let server = |uri| Server::new(uri, ChannelCreds::Insecure);
    let others = Authority::default().with_server(server(OTHER)).with_server(server("second:1"));
    let bootstrap =
        Bootstrap::new(server(TOP)).with_authority("a", Authority::default()).with_authority("other", others);
    let world = World::with(Protocol::Delta, bootstrap);
    let (here, there) = (cluster("a", "bar"), cluster("other", "baz"));
    world.redirect(&here, "1", &there);
    world.put_other(CDS, &there, "1");
    world.network.server("second:1").put(CDS, &there, "1", &message(&there, "1"));
    let mut watch = world.watch(&here).renotify_on_switch();
    assert_eq!(world.follow(&mut watch), [format!("put {here} 1")]);
    world.other().go_down("away");
    // Something that nothing is known of has the next server asked (gRFC A71).
    let _new = world.watch(&cluster("other", "new"));
    world.network.pass(SOON);
    assert_eq!(watch.server().as_deref(), Some("second:1"));
    assert!(world.follow(&mut watch).contains(&format!("put {here} 1")));
}

#[test]
fn r082_what_a_redirect_leads_to_is_told_to_be_away_again_when_its_own_server_is_back() {
    let world = World::new();
    let there = cluster("other", "baz");
    world.redirect("x", "1", &there);
    let mut watch = world.watch("x");
    assert_eq!(world.follow(&mut watch), ["failed x: absent"]);
    world.top().go_down("away");
    world.network.pass(Duration::from_secs(200));
    assert_eq!(world.follow(&mut watch), ["failed all: unreachable (away)"]);
    world.top().come_up();
    world.network.pass(Duration::from_secs(200));
    assert_eq!(world.follow(&mut watch), ["failed x: absent"]);
    world.put_other(CDS, &there, "1");
    assert_eq!(world.follow(&mut watch), ["put x 1"]);
}

#[test]
fn r082_of_one_server_that_has_no_target_the_same_is_told_when_it_is_back() {
    let world = World::new();
    world.redirect("x", "1", &cluster("a", "none"));
    let mut watch = world.watch("x");
    assert_eq!(world.follow(&mut watch), ["failed x: absent"]);
    world.top().go_down("away");
    world.network.pass(Duration::from_secs(200));
    let told = world.follow(&mut watch);
    assert!(told.iter().all(|told| told.ends_with("unreachable (away)")) && !told.is_empty(), "{told:?}");
    world.top().come_up();
    world.network.pass(Duration::from_secs(200));
    assert_eq!(world.follow(&mut watch), ["failed x: absent"]);
}

#[test]
fn r082_a_redirect_that_leads_nowhere_does_so_still_when_its_server_is_back() {
    let world = World::new();
    world.redirect("x", "1", &cluster("unknown", "none"));
    let mut watch = world.watch("x");
    let nowhere = world.follow(&mut watch);
    assert!(nowhere.len() == 1 && nowhere[0].starts_with("failed x: "), "{nowhere:?}");
    world.top().go_down("away");
    world.network.pass(Duration::from_secs(200));
    assert_eq!(world.follow(&mut watch), ["failed all: unreachable (away)"]);
    world.top().come_up();
    world.network.pass(Duration::from_secs(200));
    assert_eq!(world.follow(&mut watch), nowhere);
}

#[test]
fn r082_what_is_in_use_is_of_the_target_before_where_the_redirect_leads_nowhere_any_more() {
    let world = World::new();
    let one = cluster("other", "one");
    world.put_other(CDS, &one, "1");
    world.redirect("x", "1", &one);
    let mut watch = world.watch("x");
    assert_eq!(world.follow(&mut watch), ["put x 1"]);
    world.redirect("x", "2", &cluster("unknown", "none"));
    let told = world.follow(&mut watch);
    assert!(told.len() == 1 && told[0].starts_with("ambient x: "), "{told:?}");
    assert_eq!(watch.server().as_deref(), Some(OTHER));
    world.redirect("x", "3", &one);
    assert_eq!(world.follow(&mut watch), ["put x 1"]);
}
