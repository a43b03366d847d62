//! What `xds push` takes, before it speaks with anybody.

use std::fs;

use super::run;

/// Nobody is there: what is good gets as far as that.
const NOWHERE: &str = "127.0.0.1:1";

#[test]
fn what_envoy_would_refuse_for_its_values_is_not_pushed_unless_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("routes.yaml");
    let types = "type.googleapis.com/envoy.config";
    let route = "{name: web, virtual_hosts: [{name: all, domains: []}]}".replacen(
        '{',
        &format!("{{\"@type\": {types}.route.v3.RouteConfiguration, "),
        1,
    );
    let port = "{name: c, load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: \
                {address: a, port_value: 99999}}}}]}]}}";
    let cluster = port.replacen('{', &format!("{{\"@type\": {types}.cluster.v3.Cluster, "), 1);
    fs::write(&file, format!("resources:\n- {route}\n- {cluster}\n")).unwrap();
    let file = file.to_str().unwrap();
    let push = ["push", "--etcd", NOWHERE, "--prefix", "mesh/", "--timeout", "1"];
    let refused = run(&[&push[..], &[file]].concat());
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{}", refused.err);
    for words in [
        "routes.yaml:2:",
        "resources[0].virtual_hosts[0].domains: expected at least 1 item, found none; in RouteConfiguration `web`",
        "routes.yaml:3:",
        "socket_address.port_value: expected at most 65535, found 99999; in Cluster `c`",
    ] {
        assert!(refused.err.contains(words), "{words}: {}", refused.err);
    }
    let taken = run(&[&push[..], &["--no-validate", file]].concat());
    assert_eq!(taken.code, 3, "{}", taken.err);
}
