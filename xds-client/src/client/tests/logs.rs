//! What a client logs.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata};

use super::*;

/// Levels and messages of what is logged.
type Logged = Arc<Mutex<Vec<(Level, String)>>>;

/// Whoever listens: nothing is noted where nobody reads it.
struct Lines(Option<Logged>);

/// Listens for all other threads. Where one logs that nobody listens to, a line may be taken for one that nobody ever hears.
static OTHERS: LazyLock<()> = LazyLock::new(|| {
    let _ = tracing::subscriber::set_global_default(Lines(None));
});

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?}").unwrap();
        }
    }
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let Some(lines) = &self.0 else { return };
        let mut text = Text(String::new());
        event.record(&mut text);
        lines.lock().unwrap().push((*event.metadata().level(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What is logged of this meanwhile, without the rest.
fn logged(about: &str, scenario: impl FnOnce()) -> Vec<(Level, String)> {
    LazyLock::force(&OTHERS);
    let lines = Logged::default();
    tracing::subscriber::with_default(Lines(Some(lines.clone())), scenario);
    let mut lines = std::mem::take(&mut *lines.lock().unwrap());
    lines.retain(|(_, line)| line.contains(about));
    lines
}

#[test]
fn r065_that_a_deleted_resource_is_used_on_is_logged_once_and_that_it_is_back() {
    let lines = logged("deleted", || {
        let world = World::new();
        world.put(CDS, "x", "1");
        let mut watch = world.watch("x");
        world.top().remove(CDS, "x");
        world.network.settle();
        world.top().end_streams();
        world.network.pass(Duration::from_secs(5));
        world.put(CDS, "x", "2");
        assert_eq!(heard(&mut watch).last().map(String::as_str), Some("put x 2"));
        world.put(CDS, "x", "3");
    });
    let expected = [
        (Level::WARN, "deleted by its server, and used on".to_owned()),
        (Level::INFO, "deleted by its server before, and there again".to_owned()),
    ];
    assert_eq!(lines, expected);
}

/// Whoever comes back is told again, and so is who is sent something of a collection that is refused.
#[test]
fn rule_118_why_something_is_not_sent_is_logged_once_however_often_it_is_said() {
    let lines = logged("not sent", || {
        let world = World::new();
        let watch = world.watch("x");
        for words in ["not yet", "not you"] {
            world.top().fail(CDS, "x", 7, words);
            world.network.settle();
            world.top().end_streams();
            world.network.pass(Duration::from_secs(5));
        }
        drop(watch);
    });
    assert_eq!(lines, ["not yet", "not you"].map(|words| (Level::WARN, format!("not sent: {words}"))));
}

/// Where all is asked for on the same stream, not each that the error may concern asks for the glob.
#[test]
fn rule_118_why_a_glob_is_not_sent_is_logged_once_beside_a_wildcard() {
    let lines = logged("not sent", || {
        let world = World::new();
        let (glob, member) = (xdstp("a", CDS, "g/*"), xdstp("a", CDS, "g/1"));
        let watches = ["*", &glob, &member].map(|name| world.watch(name));
        for version in ["1", "2", "3"] {
            world.put(CDS, &member, version);
            world.top().fail(CDS, &glob, 7, "ask by name");
            world.network.settle();
        }
        drop(watches);
    });
    assert_eq!(lines, [(Level::WARN, "not sent: ask by name".to_owned())]);
}

#[test]
fn r084_that_names_are_asked_for_without_dpds_is_logged_once_however_many_they_are() {
    let lines = logged("dynamic parameters", || {
        let dpds = "xdstp://a/envoy.config.dynamic_parameters.v3.DynamicParameterConstraintsMap/d";
        let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure))
            .with_authority("a", Authority::default().with_dpds(dpds.parse().unwrap()));
        let world = World::with(Protocol::Delta, bootstrap);
        world.top().be_silent(true);
        let mut watches = ["x", "y"].map(|id| world.watch_raw(CDS, &xdstp("a", CDS, id)));
        world.network.pass(PATIENCE);
        let _ = watches.each_mut().map(heard);
    });
    let [(Level::WARN, line)] = &lines[..] else { panic!("{lines:?}") };
    assert!(line.ends_with("without: no answer within 15s"), "{line}");
}
