use std::collections::BTreeMap;

use super::*;

const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|l| l == line)
}

#[test]
fn every_family_has_help_and_type_and_every_sample_a_number() {
    let metrics = Metrics::new([]);
    metrics.downstream(CLUSTER).bytes.add(1 << 40);
    metrics.reloads("files").failed.inc();
    let _up = metrics.upstream_connected("a");
    let resources = BTreeMap::from([(CLUSTER.to_owned(), 3)]);
    let text = metrics.render(&Gauges { ready: true, resources, subscribers: 2, bodies: 3, ..Gauges::default() });

    assert!(has_line(&text, "# TYPE xds_relay_downstream_sent_bytes_total counter"), "{text}");
    assert!(has_line(
        &text,
        "xds_relay_downstream_sent_bytes_total{type=\"envoy.config.cluster.v3.Cluster\"} 1099511627776"
    ));
    assert!(has_line(&text, "xds_relay_file_reloads_total{origin=\"files\",result=\"failed\"} 1"));
    assert!(has_line(&text, "xds_relay_file_reloads_total{origin=\"files\",result=\"ok\"} 0"));
    assert!(has_line(&text, "# TYPE xds_relay_subscribers gauge"));
    assert!(has_line(&text, "xds_relay_subscribers 2"));
    assert!(has_line(&text, "xds_relay_ready 1"));
    assert!(has_line(&text, "xds_relay_resources{type=\"envoy.config.cluster.v3.Cluster\"} 3"));
    let mut declared = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(declared.insert(rest.split(' ').next().unwrap()), "declared twice: {line}");
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let name = name.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
            assert!(declared.contains(name) || family.is_some_and(|family| declared.contains(family)), "{line}");
            value.parse::<f64>().unwrap();
        }
    }
}

#[test]
fn a_guard_counts_a_stream_for_as_long_as_it_lives() {
    let metrics = Metrics::new([]);
    metrics.declare_origin("a");
    let text = metrics.render(&Gauges::default());
    assert!(has_line(&text, "xds_relay_upstream_connected{origin=\"a\"} 0"), "{text}");

    let (up, down) = (metrics.upstream_connected("a"), metrics.stream_opened(Protocol::Sotw));
    let text = metrics.render(&Gauges::default());
    assert!(has_line(&text, "xds_relay_upstream_connected{origin=\"a\"} 1"));
    assert!(has_line(&text, "xds_relay_upstream_disconnects_total{origin=\"a\"} 0"));
    assert!(has_line(&text, "xds_relay_downstream_streams{protocol=\"sotw\"} 1"));

    drop((up, down));
    let text = metrics.render(&Gauges::default());
    assert!(has_line(&text, "xds_relay_upstream_connected{origin=\"a\"} 0"));
    assert!(has_line(&text, "xds_relay_upstream_connects_total{origin=\"a\"} 1"));
    assert!(has_line(&text, "xds_relay_upstream_disconnects_total{origin=\"a\"} 1"));
    assert!(has_line(&text, "xds_relay_downstream_streams{protocol=\"sotw\"} 0"));
    assert!(has_line(&text, "xds_relay_downstream_streams_opened_total{protocol=\"sotw\"} 1"));
}

#[test]
fn types_beyond_the_bound_share_one_label_and_known_types_keep_theirs() {
    let metrics = Metrics::new([CLUSTER]);
    for i in 0..DISTINCT_TYPES * 2 {
        metrics.downstream(&format!("type.googleapis.com/made.up.T{i}")).requests.inc();
    }
    metrics.downstream(CLUSTER).requests.inc();
    let text = metrics.render(&Gauges::default());
    let samples = text.lines().filter(|l| l.starts_with("xds_relay_downstream_requests_total{")).count();
    assert_eq!(samples, DISTINCT_TYPES + 1);
    assert!(has_line(&text, "xds_relay_downstream_requests_total{type=\"envoy.config.cluster.v3.Cluster\"} 1"));
    assert!(has_line(&text, &format!("xds_relay_downstream_requests_total{{type=\"other\"}} {}", DISTINCT_TYPES + 1)));
}

#[test]
fn a_long_or_strange_type_url_cannot_break_the_format() {
    let metrics = Metrics::new([]);
    metrics.downstream(&"x".repeat(10_000)).requests.inc();
    metrics.downstream("a\"b\nc\\d").requests.inc();
    let text = metrics.render(&Gauges::default());
    assert!(has_line(&text, "xds_relay_downstream_requests_total{type=\"other\"} 1"));
    assert!(has_line(&text, r#"xds_relay_downstream_requests_total{type="a\"b\nc\\d"} 1"#), "{text}");
}

#[test]
fn handles_of_one_type_count_together() {
    let metrics = Metrics::new([]);
    let (a, b) = (metrics.upstream("o", CLUSTER), metrics.upstream("o", CLUSTER));
    a.responses.inc();
    b.responses.add(2);
    assert_eq!(a.responses.value(), 3);
    assert_eq!(metrics.upstream("p", CLUSTER).responses.value(), 0);
}
