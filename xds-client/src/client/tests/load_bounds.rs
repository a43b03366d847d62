//! Load reports (LRS): how much there is in a message, of what, and what is left out.

use std::sync::Arc;

use xds_transport::wire::load_report::LoadStatsResponse;
use xds_transport::wire::{Duration as WireDuration, Locality};

use super::load::{TEN, reporter, reports, zone};
use super::*;
use crate::LocalityLoad;

/// Names of localities as long as they may be.
fn long_zone(at: usize) -> Locality {
    Locality { region: "r".repeat(900), zone: format!("{at:04}"), sub_zone: String::new() }
}

#[test]
fn r029_a_large_report_goes_out_in_parts_that_servers_take() {
    let world = World::new();
    let reporter = reporter(&world);
    let name = |at: usize| format!("{at:04}{}", "x".repeat(4000));
    let held: Vec<_> = (0..1000).map(|at| reporter.cluster(&name(at), "")).collect();
    world.top().ask_for_load(&[], TEN);
    world.network.pass(2 * TEN);
    let parts = world.top().take_load_reports();
    let names = parts.iter().flat_map(|part| part.cluster_stats.iter().map(|stats| stats.cluster_name.clone()));
    let expected: Vec<_> = (0..2000).map(|at| name(at % held.len())).collect();
    assert_eq!(names.collect::<Vec<_>>(), expected, "each of them once in each of two reports");
    assert!(
        parts.iter().all(|part| prost::Message::encoded_len(part) < 2 << 20) && parts.len() == 8,
        "{}",
        parts.len()
    );
}

#[test]
fn r029_the_report_of_one_cluster_goes_out_in_parts_too_and_each_locality_is_in_one() {
    let world = World::new();
    world.top().ask_for_load(&[], TEN);
    let reporter = reporter(&world);
    let (small, large) = (reporter.cluster("a", ""), reporter.cluster("large", ""));
    small.call_dropped("x");
    large.call_dropped("y");
    let held: Vec<_> = (0..900).map(|at| large.locality(&long_zone(at))).collect();
    for locality in &held {
        locality.call_started();
        for metric in 0..10 {
            let name = format!("named_metrics.{metric}{}", "m".repeat(200));
            locality.call_finished(true, &[(&name, 1.0)]);
        }
    }
    world.network.pass(TEN);
    let parts = world.top().take_load_reports();
    assert!(parts.len() >= 3, "{}", parts.len());
    assert!(parts.iter().all(|part| prost::Message::encoded_len(part) < 2 << 20));
    let of_large = || parts.iter().flat_map(|part| &part.cluster_stats).filter(|stats| stats.cluster_name == "large");
    assert!(of_large().all(|stats| stats.load_report_interval.unwrap().seconds == 10));
    assert_eq!(of_large().map(|stats| stats.total_dropped_requests).sum::<u64>(), 1, "once");
    let zones = of_large().flat_map(|stats| &stats.upstream_locality_stats);
    let mut seen: Vec<_> =
        zones.map(|zone| (&zone.locality.as_ref().unwrap().zone, zone.total_issued_requests)).collect();
    seen.sort();
    let expected: Vec<_> = (0..900).map(|at| format!("{at:04}")).collect();
    assert_eq!(seen, expected.iter().map(|zone| (zone, 1)).collect::<Vec<_>>());
}

#[test]
fn r029_load_of_more_localities_than_are_told_apart_is_that_of_an_unknown_one() {
    let world = World::new();
    world.top().ask_for_load(&["web"], TEN);
    let web = reporter(&world).cluster("web", "");
    let held: Vec<_> = (0..1500).map(|at| web.locality(&zone(&at.to_string()))).collect();
    held.iter().for_each(LocalityLoad::call_started);
    // One whose names are too long is not told apart either.
    web.locality(&zone(&"z".repeat(5000))).call_started();
    world.network.pass(TEN);
    let report = world.top().take_load_reports();
    let zones = report.iter().flat_map(|report| &report.cluster_stats).flat_map(|stats| &stats.upstream_locality_stats);
    let issued = |unknown: bool| {
        let those = zones.clone().filter(|zone| (zone.locality == Some(Locality::default())) == unknown);
        those.map(|zone| zone.total_issued_requests).collect::<Vec<_>>()
    };
    assert_eq!(issued(true), [502]);
    assert_eq!(issued(false), vec![1; 999]);
}

#[test]
fn r029_more_is_not_held_than_there_is_room_for_and_what_is_left_out_is_counted() {
    #[derive(Default)]
    struct Told(parking_lot::Mutex<std::collections::BTreeMap<&'static str, u64>>);
    impl crate::Metrics for Told {
        fn load_left_out(&self, server: &str, what: &'static str, count: u64) {
            assert_eq!(server, TOP);
            *self.0.lock().entry(what).or_default() += count;
        }
    }
    let (network, told) = (Network::new(now()), Arc::<Told>::default());
    let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure));
    let client = Client::builder(bootstrap).transport(network.clone()).metrics(told.clone()).build().unwrap();
    let reporter = client.load_reporter(TOP).unwrap();
    network.server(TOP).ask_for_load(&[], TEN);
    let held: Vec<_> = (0..10_010).map(|at| reporter.cluster(&at.to_string(), "")).collect();
    held.iter().for_each(|cluster| cluster.call_dropped("x"));
    let beyond = held.last().unwrap().locality(&zone("a")).endpoint("10.0.0.1:80".parse().unwrap());
    beyond.call_started();
    beyond.call_finished(true, &[("m", 1.0)]);
    assert_eq!((reporter.left_out().clusters, reporter.left_out().calls), (10, 11));
    for metric in 0..110 {
        let web = held[0].locality(&zone("a"));
        web.call_started();
        web.call_finished(true, &[(&format!("named_metrics.{metric}"), 1.0)]);
        held[0].call_dropped(&format!("category {metric}"));
    }
    let zones: Vec<_> = (0..1000).map(|at| held[1].locality(&zone(&at.to_string()))).collect();
    let endpoints: Vec<_> = (0..1005).map(|port| zones[0].endpoint(([10, 0, 0, 1], port).into())).collect();
    for endpoint in &endpoints {
        endpoint.call_started();
        endpoint.call_finished(true, &[]);
    }
    network.pass(TEN);
    let reports = network.server(TOP).take_load_reports();
    assert_eq!(reports.iter().map(|report| report.cluster_stats.len()).sum::<usize>(), 10_000);
    let left_out = reporter.left_out();
    assert_eq!((left_out.metrics, left_out.categories, left_out.localities, left_out.endpoints), (10, 11, 1, 5));
    let expected =
        [("calls", 11), ("categories", 11), ("clusters", 10), ("endpoints", 5), ("localities", 1), ("metrics", 10)];
    assert_eq!(*told.0.lock(), expected.into());

    // Whoever lets go makes room.
    drop((held, zones, endpoints, beyond));
    let _more: Vec<_> = (0..100).map(|at| reporter.cluster(&format!("new {at}"), "")).collect();
    assert_eq!(reporter.left_out().clusters, 10);
}

#[test]
fn r029_endpoints_are_told_apart_to_who_asks_for_that_and_to_nobody_else() {
    let world = World::new();
    let answer = |report_endpoint_granularity| {
        let load_reporting_interval = Some(WireDuration { seconds: 10, nanos: 0 });
        world.top().answer_load(&LoadStatsResponse {
            send_all_clusters: true,
            report_endpoint_granularity,
            load_reporting_interval,
            ..LoadStatsResponse::default()
        });
    };
    let locality = reporter(&world).cluster("web", "").locality(&zone("a"));
    let [first, second] = ["10.0.0.1:80", "[fe80::1]:443"].map(|at| locality.endpoint(at.parse().unwrap()));
    let report = |asked: bool| {
        answer(asked);
        locality.call_started();
        first.call_started();
        second.call_started();
        first.call_finished(true, &[("named_metrics.queue", 3.0), ("cpu_utilization", 0.5)]);
        world.network.pass(TEN);
        let mut reports = world.top().take_load_reports();
        reports.remove(0).cluster_stats.remove(0).upstream_locality_stats.remove(0)
    };
    for round in 1..4 {
        let asked = round % 2 == 0;
        let stats = report(asked);
        assert_eq!((stats.total_issued_requests, stats.total_successful_requests), (3, 1));
        assert_eq!(stats.total_requests_in_progress, 2 * round);
        if !asked {
            assert_eq!(stats.upstream_endpoint_stats, []);
            continue;
        }
        let [v4, v6] = &stats.upstream_endpoint_stats[..] else { panic!("{stats:?}") };
        assert_eq!((v4.total_issued_requests, v4.total_successful_requests, v4.total_requests_in_progress), (1, 1, 0));
        assert_eq!((v6.total_issued_requests, v6.total_requests_in_progress), (1, round));
        let metrics: Vec<_> = v4.load_metric_stats.iter().map(|of| (&*of.metric_name, of.total_metric_value)).collect();
        assert_eq!(metrics, [("cpu_utilization", 0.5), ("named_metrics.queue", 3.0)]);
        // An address of Envoy's: { socket_address: { address: "10.0.0.1", port_value: 80 } }.
        assert_eq!(&v4.address[..], b"\x0a\x0c\x12\x0810.0.0.1\x18\x50");
        assert_eq!(&v6.address[..], b"\x0a\x0c\x12\x07fe80::1\x18\xbb\x03");
    }
    drop((first, second));
    answer(true);
    world.network.pass(2 * TEN);
    let reports = world.top().take_load_reports();
    let endpoints =
        reports.iter().map(|report| report.cluster_stats[0].upstream_locality_stats[0].upstream_endpoint_stats.len());
    assert_eq!(endpoints.collect::<Vec<_>>(), [1, 0], "what is not over is told once more, and nobody holds it then");
}

#[test]
fn r029_what_nobody_holds_any_more_is_reported_once() {
    let world = World::new();
    world.top().ask_for_load(&["web", "gone"], TEN);
    let reporter = reporter(&world);
    let web = reporter.cluster("web", "");
    for name in ["a", "b"] {
        web.locality(&zone(name)).call_started();
    }
    reporter.cluster("gone", "").call_dropped("x");
    web.locality(&zone("b")).call_finished(true, &[]);
    world.network.pass(2 * TEN);
    let last = vec!["gone 10s dropped 1 x:1".to_owned(), "web 10s a[1, 0, 0, 1] b[1, 1, 0, 0] dropped 0".to_owned()];
    assert_eq!(reports(&world.top()), [last, vec!["web 10s dropped 0".to_owned()]]);

    // Of a server that never asks, no more is kept than so much.
    world.top().ask_for_load(&["none"], TEN);
    let kept = reporter.cluster("kept", "");
    for name in 0..5000 {
        reporter.cluster(&name.to_string(), "").call_dropped("");
        kept.locality(&zone(&name.to_string())).call_started();
    }
    kept.call_dropped("");
    world.top().ask_for_load(&[], TEN);
    world.network.pass(TEN);
    let report = &world.top().take_load_reports()[0].cluster_stats;
    assert!(report.len() <= 1002, "{}", report.len());
    let kept = report.iter().find(|stats| stats.cluster_name == "kept").unwrap();
    assert!((1..=1000).contains(&kept.upstream_locality_stats.len()) && kept.total_dropped_requests == 1);
}
