//! Load reports (LRS).

use std::sync::{Arc, OnceLock};

use xds_transport::wire::load_report::{ClusterStats, LoadStatsRequest, LoadStatsResponse, UpstreamLocalityStats};
use xds_transport::wire::{Duration as WireDuration, Locality};

use super::fallback::{SERVERS, several, told};
use super::*;
use crate::federation::Dialed;
use crate::upstream::Consumer;
use crate::{ConfigSource, LoadError, LoadReporter, LoadStream, Transport};

pub(super) const TEN: Duration = Duration::from_secs(10);

pub(super) fn zone(zone: &str) -> Locality {
    Locality { region: "r".into(), zone: zone.into(), sub_zone: String::new() }
}

pub(super) fn reporter(world: &World) -> LoadReporter {
    world.client.load_reporter(TOP).unwrap()
}

/// What is said of a cluster, and of its localities: issued, succeeded, failed, in progress.
fn words_of(stats: &ClusterStats) -> String {
    let of_zone = |stats: &UpstreamLocalityStats| {
        let zone = stats.locality.as_ref().map_or("", |locality| &locality.zone);
        let counts = [
            stats.total_issued_requests,
            stats.total_successful_requests,
            stats.total_error_requests,
            stats.total_requests_in_progress,
        ];
        format!(" {zone}{counts:?}")
    };
    let zones: String = stats.upstream_locality_stats.iter().map(of_zone).collect();
    let dropped: String =
        stats.dropped_requests.iter().map(|of| format!(" {}:{}", of.category, of.dropped_count)).collect();
    let service = Some(&stats.cluster_service_name).filter(|name| !name.is_empty()).map(|name| format!("/{name}"));
    let seconds = stats.load_report_interval.unwrap().seconds;
    let name = &stats.cluster_name;
    format!("{name}{} {seconds}s{zones} dropped {}{dropped}", service.unwrap_or_default(), stats.total_dropped_requests)
}

/// The reports of a server since this was looked at last.
pub(super) fn reports(server: &crate::test::Server) -> Vec<Vec<String>> {
    let reports = server.take_load_reports();
    reports.iter().map(|report| report.cluster_stats.iter().map(words_of).collect()).collect()
}

#[test]
fn r029_load_goes_to_servers_of_the_bootstrap_and_another_is_refused_by_name() {
    let world = World::new();
    let refused = world.client.load_reporter("elsewhere:1").unwrap_err();
    assert_eq!(refused, LoadError::UnknownServer { server: "elsewhere:1".into() });
    let words = "load is reported to servers of the bootstrap, and \"elsewhere:1\" is none of those in use";
    assert_eq!(refused.to_string(), words);
    // That of an authority is one of them, too, though nothing of it is watched.
    let other = world.client.load_reporter(OTHER).unwrap();
    world.network.settle();
    assert_eq!(
        (&**other.server(), world.network.server(OTHER).load_streams(), world.top().load_streams()),
        (OTHER, 1, 0)
    );
    let bad = world.client.watch(CDS, "xdstp://nobody/x");
    assert_eq!(bad.load_reporter().unwrap_err(), LoadError::NotWatched);
}

#[test]
fn r029_a_server_is_told_of_the_clusters_that_it_asks_for_as_often_as_it_asks() {
    let world = World::new();
    let (web, other) = (reporter(&world).cluster("web", "eds"), reporter(&world).cluster("other", ""));
    let (a, b) = (web.locality(&zone("a")), web.locality(&zone("b")));
    for locality in [&a, &a, &a, &b, &other.locality(&zone("a"))] {
        locality.call_started();
    }
    a.call_finished(true, &[]);
    a.call_finished(false, &[]);
    world.network.pass(TEN);
    assert_eq!(reports(&world.top()), [[""; 0]; 0], "it does not ask");
    world.top().ask_for_load(&["web", "none"], TEN);
    world.network.pass(TEN);
    assert_eq!(reports(&world.top()), [["web/eds 20s a[3, 1, 1, 1] b[1, 0, 0, 1] dropped 0"]]);

    a.call_finished(true, &[]);
    b.call_started();
    web.call_dropped("throttle");
    web.call_dropped("throttle");
    web.call_dropped("");
    world.network.pass(2 * TEN);
    let since = ["web/eds 10s a[0, 1, 0, 0] b[1, 0, 0, 2] dropped 3 throttle:2"];
    let nothing = ["web/eds 10s a[0, 0, 0, 0] b[0, 0, 0, 2] dropped 0"];
    assert_eq!(
        reports(&world.top()),
        [since, nothing],
        "what is not over is told again, and so is that nothing happened"
    );

    // It asks otherwise: what it did not ask for counts from where it began.
    world.top().ask_for_load(&[], 3 * TEN);
    world.network.pass(3 * TEN);
    let all = vec!["other 70s dropped 0".replace("s ", "s a[1, 0, 0, 1] ")];
    let all = [all, vec!["web/eds 30s a[0, 0, 0, 0] b[0, 0, 0, 2] dropped 0".into()]].concat();
    assert_eq!(reports(&world.top()), [all]);
    world.top().ask_for_load(&["none"], TEN);
    world.network.pass(TEN);
    assert_eq!(reports(&world.top()), [[""; 0]], "a report without anything says that the client is there");
}

#[test]
fn r029_metrics_are_summed_by_their_names() {
    let world = World::new();
    world.top().ask_for_load(&["web"], TEN);
    let locality = reporter(&world).cluster("web", "").locality(&zone("a"));
    for (cpu, queue) in [(0.25, 3.0), (0.5, 4.0), (f64::NAN, f64::INFINITY)] {
        locality.call_started();
        locality.call_finished(true, &[("cpu_utilization", cpu), ("named_metrics.queue", queue)]);
    }
    for name in 0..1000 {
        locality.call_started();
        locality.call_finished(true, &[(&format!("named_metrics.{name}"), 1.0), ("mem_utilization", 0.5)]);
    }
    world.network.pass(TEN);
    let [report] = &world.top().take_load_reports()[..] else { panic!("one is due") };
    let stats = &report.cluster_stats[0].upstream_locality_stats[0];
    assert_eq!(stats.total_successful_requests, 1003);
    let sums = |stats: &Option<xds_transport::wire::load_report::UnnamedEndpointLoadMetricStats>| {
        stats.map(|stats| (stats.num_requests_finished_with_metric, stats.total_metric_value))
    };
    assert_eq!((sums(&stats.cpu_utilization), sums(&stats.mem_utilization)), (Some((2, 0.75)), Some((1000, 500.0))));
    assert_eq!(sums(&stats.application_utilization), None);
    let queue = stats.load_metric_stats.iter().find(|metric| metric.metric_name == "named_metrics.queue").unwrap();
    assert_eq!((queue.num_requests_finished_with_metric, queue.total_metric_value), (2, 7.0));
    // With the two that have a field of their own.
    assert_eq!(stats.load_metric_stats.len() + 2, 100, "names are whoever's");
    world.network.pass(TEN);
    let report = world.top().take_load_reports();
    assert!(report[0].cluster_stats[0].upstream_locality_stats[0].load_metric_stats.is_empty());
}

#[test]
fn r029_what_is_counted_while_no_server_can_be_reached_is_told_when_it_is_back() {
    let world = World::new();
    world.top().ask_for_load(&["web"], TEN);
    let reporter = reporter(&world);
    let locality = reporter.cluster("web", "").locality(&zone("a"));
    locality.call_started();
    world.network.pass(TEN);
    assert_eq!((reports(&world.top()).len(), reporter.trouble()), (1, None));

    world.top().go_down("away");
    locality.call_started();
    world.network.pass(Duration::from_secs(300));
    locality.call_finished(true, &[]);
    assert_eq!((reports(&world.top()).len(), reporter.trouble().as_deref()), (0, Some("away")));
    world.top().come_up();
    // The longest wait that there is.
    world.network.pass(Duration::from_secs(144));
    let first = reports(&world.top()).remove(0);
    let [words] = &first[..] else { panic!("{first:?}") };
    assert!(words.ends_with(" a[1, 1, 0, 1] dropped 0"), "{words}");
    let seconds: u64 = words.split(['s', ' ']).nth(1).unwrap().parse().unwrap();
    assert!((300..=444).contains(&seconds), "{words}");
    assert_eq!(reporter.trouble(), None);

    // A stream that ends says who it is anew, and is asked anew.
    world.top().end_streams();
    assert_eq!(world.top().load_streams(), 0);
    world.network.pass(2 * TEN);
    assert_eq!((world.top().load_streams(), reports(&world.top()).len()), (1, 1));
}

#[test]
fn r029_reporters_to_a_server_are_one_stream_which_ends_with_the_last_of_them() {
    let world = World::new();
    let (first, second) = (reporter(&world), reporter(&world));
    let locality = first.cluster("web", "").locality(&zone("a"));
    second.cluster("web", "").locality(&zone("a")).call_started();
    world.top().ask_for_load(&["web"], TEN);
    drop((first, second));
    world.network.pass(TEN);
    assert_eq!(
        (world.top().load_streams(), reports(&world.top())),
        (1, vec![vec!["web 10s a[1, 0, 0, 1] dropped 0".to_owned()]])
    );
    drop(locality);
    world.network.settle();
    assert_eq!(world.top().load_streams(), 0);
    let _again = reporter(&world);
    world.network.settle();
    assert_eq!(world.top().load_streams(), 1);
}

#[test]
fn r029_what_was_counted_last_is_told_before_the_stream_ends() {
    let world = World::new();
    world.top().ask_for_load(&["web"], TEN);
    let (reporter, locality) = {
        let reporter = reporter(&world);
        let web = reporter.cluster("web", "");
        (reporter.clone(), web.locality(&zone("a")))
    };
    world.network.pass(TEN);
    world.top().take_load_reports();
    world.network.pass(TEN / 2);
    locality.call_started();
    locality.call_finished(true, &[]);
    reporter.cluster("other", "").call_dropped("x");
    drop((reporter, locality));
    world.network.settle();
    assert_eq!(reports(&world.top()), [["web 5s a[1, 1, 0, 0] dropped 0"]], "of what it asks for, and at once");
    assert_eq!(world.top().load_streams(), 0);

    // What there is nothing to tell by, or of, is not told.
    for asked in [true, false] {
        let idle = world.client.load_reporter(if asked { TOP } else { OTHER }).unwrap();
        let held = idle.cluster("web", "").locality(&zone("a"));
        world.network.settle();
        drop((idle, held));
        world.network.settle();
    }
    assert_eq!((reports(&world.top()), world.top().load_streams()), (Vec::<Vec<String>>::new(), 0));
    assert_eq!(world.network.server(OTHER).load_streams(), 0);
}

#[test]
fn r029_an_interval_is_a_second_at_least_and_one_that_is_none_ends_the_stream() {
    let world = World::new();
    let reporter = reporter(&world);
    let _web = reporter.cluster("web", "");
    world.top().ask_for_load(&["web"], Duration::ZERO);
    world.network.pass(TEN);
    assert_eq!(reports(&world.top()).len(), 10);
    world.top().answer_load(&LoadStatsResponse { send_all_clusters: true, ..LoadStatsResponse::default() });
    world.network.pass(TEN);
    assert_eq!(reports(&world.top()).len(), 10, "what is not said is nothing");
    for (seconds, nanos) in [(-1, 0), (1, -1), (1, 1_000_000_000)] {
        let load_reporting_interval = Some(WireDuration { seconds, nanos });
        world.top().answer_load(&LoadStatsResponse { load_reporting_interval, ..LoadStatsResponse::default() });
        world.network.pass(Duration::from_secs(100));
        let words = format!("load_reporting_interval: {seconds} s and {nanos} ns are no interval");
        assert_eq!(reporter.trouble().as_deref(), Some(&*words));
    }
    let load_reporting_interval = Some(WireDuration { seconds: i64::MAX, nanos: 0 });
    world.top().answer_load(&LoadStatsResponse { load_reporting_interval, ..LoadStatsResponse::default() });
    world.network.pass(Duration::from_secs(100 * 365 * 24 * 3600 - 60));
    assert_eq!((world.top().load_streams(), reports(&world.top()).len()), (1, 0));
}

#[test]
fn r029_a_server_that_is_silent_is_waited_for() {
    let world = World::new();
    world.top().be_silent(true);
    let _web = reporter(&world).cluster("web", "");
    world.top().ask_for_load(&["web"], TEN);
    world.network.pass(Duration::from_secs(3600));
    assert_eq!((world.top().load_streams(), world.top().take_load_reports()), (1, Vec::<LoadStatsRequest>::new()));
}

/// What a program does that goes by `lrs_server: { self: {} }`.
#[test]
fn r071_self_is_the_server_that_sent_the_cluster_and_a_switch_has_it_told_again() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        assert_eq!(ConfigSource::parse(b"\x2a\x00"), Ok(ConfigSource::SelfConfigSource));
        let world = several(protocol, &[KEEPS; 2]);
        let server = |at: usize| world.network.server(SERVERS[at]);
        for at in [0, 1] {
            server(at).put(CDS, "x", "1", &message("x", "1"));
            server(at).put(CDS, "y", "1", &message("y", "1"));
            server(at).ask_for_load(&[], TEN);
        }
        let mut watch = world.watch("x").renotify_on_switch();
        let mut plain = world.watch("x");
        let expected = ["put x 1"];
        assert_eq!(
            (told(&mut watch), told(&mut plain)),
            (expected.map(str::to_owned).into(), vec!["put x 1".to_owned()])
        );
        let first = watch.load_reporter().unwrap();
        assert_eq!(&**first.server(), SERVERS[0]);
        let load = first.cluster("x", "").locality(&zone("a"));

        // The first is away, and something new has the second asked.
        server(0).go_down("away");
        let _new = world.watch("y");
        world.network.pass(Duration::from_secs(100));
        assert_eq!(told(&mut watch).last().map(String::as_str), Some("put x 1"), "{protocol:?}");
        assert!(!told(&mut plain).contains(&"put x 1".to_owned()), "to others it is no news");
        let second = watch.load_reporter().unwrap();
        assert_eq!(&**second.server(), SERVERS[1]);
        second.cluster("x", "").locality(&zone("a")).call_started();
        world.network.pass(TEN);
        assert_eq!(reports(&server(1)).concat().iter().filter(|words| words.contains("a[1, 0, 0, 1]")).count(), 1);

        server(0).come_up();
        world.network.pass(Duration::from_secs(100));
        assert_eq!(told(&mut watch).last().map(String::as_str), Some("put x 1"), "{protocol:?}: back");
        assert_eq!(&**watch.load_reporter().unwrap().server(), SERVERS[0]);
        assert!(told(&mut watch).is_empty());
        drop((load, second));
        world.network.settle();
        assert_eq!(server(1).load_streams(), 0);
    }
}

#[test]
fn r071_of_a_collection_all_is_told_again_and_whoever_waits_is_woken() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    struct Woken(AtomicUsize);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let world = several(Protocol::Delta, &[KEEPS; 2]);
    let names = ["x", "y"].map(|id| xdstp("a", CDS, id));
    for (at, name) in [(0, &names[0]), (0, &names[1]), (1, &names[0]), (1, &names[1])] {
        world.network.server(SERVERS[at]).put(CDS, name, "1", &message(name, "1"));
    }
    let mut watch = world.watch(&xdstp("a", CDS, "*")).renotify_on_switch();
    world.network.pass(Duration::from_secs(1));
    let all = [format!("put {} 1", names[0]), format!("put {} 1", names[1]), "answered".to_owned()];
    assert_eq!(told(&mut watch), all);
    world.network.server(SERVERS[0]).go_down("away");
    world.network.pass(Duration::from_secs(100));
    told(&mut watch);
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = woken.clone().into();
    let mut cx = Context::from_waker(&waker);
    assert!(std::pin::pin!(watch.changed()).poll(&mut cx).is_pending());
    let _new = world.watch(&xdstp("a", CDS, "z"));
    world.network.pass(Duration::from_secs(1));
    assert!(woken.0.load(Ordering::Relaxed) > 0);
    let rest = told(&mut watch);
    assert!(rest.ends_with(&all), "{rest:?}");
}

/// A transport that asks its client for a reporter to another server, whenever it is to open a stream.
struct Asks {
    network: Network,
    client: Arc<OnceLock<Client>>,
}

impl Transport for Asks {
    fn open(&self, server: &Server, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        self.network.open(server, node, consumer)
    }

    fn open_load_reports(&self, server: &Server, stream: LoadStream) -> Option<Box<dyn Dialed>> {
        if server.uri() == TOP
            && let Some(client) = self.client.get()
        {
            let other = client.load_reporter(OTHER).unwrap();
            assert_eq!(&**other.server(), OTHER);
        }
        self.network.open_load_reports(server, stream)
    }
}

#[test]
fn a_transport_may_ask_for_a_reporter_while_it_opens_a_stream() {
    let network = Network::speaking(Protocol::Delta, now());
    let server = |uri| Server::new(uri, ChannelCreds::Insecure);
    let bootstrap = Bootstrap::new(server(TOP)).with_authority("o", Authority::default().with_server(server(OTHER)));
    let client = Arc::<OnceLock<Client>>::default();
    let transport = Asks { network: network.clone(), client: client.clone() };
    let built = Client::builder(bootstrap).transport(transport).build().unwrap();
    let reporter = client.get_or_init(|| built).load_reporter(TOP).unwrap();
    network.settle();
    assert_eq!((&**reporter.server(), network.server(TOP).load_streams()), (TOP, 1));
    assert_eq!(network.server(OTHER).load_streams(), 0, "nobody holds it any more");
}
