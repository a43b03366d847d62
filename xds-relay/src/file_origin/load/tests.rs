use std::fs;

use super::*;

const CLUSTER: &str = "\"@type\": x/envoy.config.cluster.v3.Cluster";
const MANAGER: &str = "\"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: a";

/// What an origin of these files, and one of another authority, has.
fn origin(files: &[(&str, String)]) -> Result<LoadedOrigin, String> {
    let directory = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| fs::write(directory.path().join(name), text).unwrap());
    let text = "origins: [{ name: files, files: . }, { name: up, server: 'a:1', authorities: [theirs] }]\n\
                default_origin: files\n";
    let config = Config::parse(directory.path().join("relay.yaml"), text).unwrap();
    let (path, descriptors) = config.origins[0].kind.files().unwrap();
    let place = format!("{}/./", directory.path().display());
    load_origin(&config, &config.origins[0], path, descriptors).map_err(|error| error.to_string().replace(&place, ""))
}

fn resources(list: &[&str]) -> String {
    format!("resources:\n- {}\n", list.join("\n- "))
}

#[test]
fn all_that_is_wrong_in_all_files_is_told_at_once() {
    let cluster = |more: &str| format!("{{ {CLUSTER}, {more} }}");
    let bad = resources(&[&cluster("nmae: a"), &cluster("name: b"), &cluster("name: c, connect_timeout: soon")]);
    let files = [
        ("1.yaml", bad),
        ("2.yaml", "resources: [".to_owned()),
        (
            "3.yaml",
            resources(&[&cluster("name: b"), &cluster("name: 'xdstp://theirs/envoy.config.cluster.v3.Cluster/x'")]),
        ),
        ("4.yaml", resources(&[&cluster("name: good")])),
    ];
    let told = origin(&files).unwrap_err();
    let places: Vec<_> = told.lines().map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": ")).collect();
    assert!(places[0].starts_with("origin \"files\": 1.yaml:2:"), "{told}");
    assert_eq!(places.len(), 5, "{told}");
    assert!(places[1].starts_with("1.yaml:4:") && places[1].contains("resources[2].connect_timeout"), "{told}");
    assert!(places[2].starts_with("2.yaml:"), "{told}");
    assert_eq!(places[3..], ["3.yaml:2:3: resources[0]", "3.yaml:3:3: resources[1]"], "{told}");
}

#[test]
fn of_very_much_that_is_wrong_so_much_is_told_and_how_much_more_there_is() {
    let bad = resources(&["5"; 100]);
    let told = origin(&[("1.yaml", bad)]).unwrap_err();
    assert_eq!((told.lines().count(), told.lines().last()), (21, Some("and 80 others")), "{told}");
}

#[test]
fn what_is_referred_to_and_is_in_no_file_is_noted_with_its_place() {
    let route = "{ match: { prefix: / }, route: { cluster: there } }";
    let weighted = "{ match: { prefix: / }, route: { weighted_clusters: { clusters: [{ name: there }, { name: lost, weight: 1 }] } } }";
    let routes = |name: &str, routes: &str| {
        format!("name: {name}, virtual_hosts: [{{ name: v, domains: ['*'], routes: [{routes}] }}]")
    };
    let filter = |inside: &str| format!("{{ name: f, typed_config: {{ {MANAGER}, {inside} }} }}");
    let rds = |name: &str| filter(&format!("rds: {{ route_config_name: {name}, config_source: {{ ads: {{}} }} }}"));
    let inline =
        filter(&format!("route_config: {{ {} }}", routes("i", "{ match: { prefix: / }, route: { cluster: inline } }")));
    let tcp = "{ name: t, typed_config: { \"@type\": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: a, cluster: tcp } }";
    let listener = |name: &str, filters: &str| {
        format!(
            "{{ \"@type\": x/envoy.config.listener.v3.Listener, name: {name}, filter_chains: [{{ filters: [{filters}] }}] }}"
        )
    };
    let configuration = |inside: &str| format!("{{ \"@type\": x/envoy.config.route.v3.RouteConfiguration, {inside} }}");
    let theirs = "\"xdstp://theirs/envoy.config.route.v3.RouteConfiguration/x\"";
    let files = [
        (
            "a.yaml",
            resources(&[&listener("one", &[rds("r"), rds("gone"), rds(theirs), inline, tcp.to_owned()].join(", "))]),
        ),
        ("b.yaml", resources(&[&configuration(&routes("r", &format!("{route}, {weighted}")))])),
        (
            "c.yaml",
            resources(&[&format!(
                "{{ {CLUSTER}, name: there, type: EDS, eds_cluster_config: {{ service_name: s, eds_config: {{ ads: {{}} }} }} }}"
            )]),
        ),
        ("d.yaml", resources(&[&format!("{{ name: other, aliases: [tcp], resource: {{ {CLUSTER}, name: other }} }}")])),
    ];
    let loaded = origin(&files).unwrap();
    assert_eq!(loaded.resources.len(), 4);
    let mut told: Vec<_> = loaded
        .dangling
        .iter()
        .map(|error| format!("{}:{} {}", error.file.file_name().unwrap().display(), error.line.unwrap(), error.reason))
        .collect();
    told.sort();
    let expected = [
        "a.yaml:2 Listener `one` refers to Cluster `inline`, which no file has",
        "a.yaml:2 Listener `one` refers to RouteConfiguration `gone`, which no file has",
        "b.yaml:2 RouteConfiguration `r` refers to Cluster `lost`, which no file has",
        "c.yaml:2 Cluster `there` refers to ClusterLoadAssignment `s`, which no file has",
    ];
    assert_eq!(told, expected);
}
