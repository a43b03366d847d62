//! The configuration, read again by a process that runs: on SIGHUP and when it changed.

#![cfg(all(unix, feature = "file-origin"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of these tests")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::Receiver;

use xdstp_client::{Client, Endpoint, Event, Watch};

#[path = "support/process.rs"]
mod process;

use process::{PATIENCE, Running, answer, connect, file, lines, relay};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// A relay of the files in `mesh` beside its configuration.
struct Relay {
    process: Running,
    said: Receiver<String>,
}

impl Relay {
    fn start(config: &Path) -> Self {
        let mut command = relay();
        command.arg("--config").arg(config);
        let mut process = Running::start(command, "/config_dump\n");
        let said = lines(process.child.stderr.take().unwrap());
        Self { process, said }
    }

    /// The next line of the log that has these words in it.
    fn says(&self, words: &str) -> String {
        let mut lines = std::iter::from_fn(|| self.said.recv_timeout(PATIENCE).ok());
        lines.find(|line| line.contains(words)).unwrap_or_else(|| panic!("nothing is said of {words:?}"))
    }

    fn page(&self, path: &str) -> String {
        answer(&mut connect(self.process.address_after("admin    http://").trim_end_matches('/')), path)
    }

    fn counts(&self, line: &str) -> bool {
        self.page("/metrics").lines().any(|counted| counted == format!("xds_relay_{line}"))
    }

    fn watch(&self) -> Watch {
        Client::connect(Endpoint::new(self.process.address_after("xDS      ")).unwrap()).watch(CLUSTERS, "a")
    }
}

async fn put(watch: &mut Watch) {
    let event = tokio::time::timeout(PATIENCE, watch.changed()).await.unwrap();
    assert!(matches!(event, Event::Put { .. }), "{event:?}");
}

fn config(more: &str) -> String {
    format!("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\norigins: [{{ name: mesh, files: mesh }}]\n{more}\n")
}

fn serve(directory: &Path, seconds: u32) {
    let _ = fs::create_dir(directory.join("mesh"));
    let text =
        format!(r#"{{ "resources": [{{ "@type": "{CLUSTERS}", "name": "a", "connect_timeout": "{seconds}s" }}] }}"#);
    fs::write(directory.join("mesh/new"), text).unwrap();
    fs::rename(directory.join("mesh/new"), directory.join("mesh/a.json")).unwrap();
}

#[tokio::test]
async fn sighup_has_the_file_count_anew_under_an_open_stream_that_goes_on() {
    let (directory, file) = file(&config(""));
    serve(directory.path(), 1);
    let relay = Relay::start(&file);
    let mut watch = relay.watch();
    put(&mut watch).await;
    // In place, and at once: nobody waits for a second look who asks for the first.
    fs::write(&file, config("linger: 1m\nlog: debug\nclients: [{ match: { any: true }, names: [a] }]")).unwrap();
    relay.process.signal("HUP");
    relay.says("the configuration is read again: clients, log count now");
    relay.says("these need a restart, and stay as they were: linger");
    assert!(relay.page("/api/v1/status").contains(r#""config":{"needs_restart":["linger"]},"log":"debug""#));
    serve(directory.path(), 2);
    put(&mut watch).await;
    assert!(relay.counts("downstream_streams_opened_total{protocol=\"delta\"} 1"), "the stream is the one that it was");
    assert!(relay.counts("config_reloads_total{result=\"ok\"} 1") && relay.counts("config_needs_restart 1"));
    // Nothing is new: that is said, too, to who asks.
    relay.process.signal("HUP");
    relay.says("nothing that can count at once is new");
}

#[test]
fn what_is_new_in_a_file_of_rules_is_said_to_need_a_restart() {
    let rules = |text: &str| {
        format!(
            "fragments: [{{ rules: [{{ match: {{ any_match: true }}, result: {{ string_fragment: {text} }} }}] }}]\n"
        )
    };
    let (directory, file) = file(&config("aggregation: rules.yaml"));
    serve(directory.path(), 1);
    let write = |text: &str| fs::write(directory.path().join("rules.yaml"), text).unwrap();
    write(&rules("one"));
    let relay = Relay::start(&file);
    let hangup = || {
        relay.process.signal("HUP");
        relay.says("SIGHUP: the configuration is read again");
    };
    write(&rules("two"));
    hangup();
    relay.says("these need a restart, and stay as they were: aggregation.rules");
    assert!(relay.counts("config_needs_restart 1"));
    // What is not good is said now, and not when it is needed.
    write("fragments: []\n");
    hangup();
    let line = relay.says("the configuration is not good, and all stays as it was: ");
    assert!(line.contains("rules.yaml"), "{line}");
    write(&rules("one"));
    hangup();
    relay.says("nothing that can count at once is new");
    assert!(relay.counts("config_needs_restart 0"), "it is as it was when the relay began");

    // Without SIGHUP it is looked at as the configuration is.
    let odd = rules("a").replace("any_match: true", "request_node_match: { id_match: { regex_match: 'a**' } }");
    write(&odd);
    relay.says("these need a restart, and stay as they were: aggregation.rules");
    let line = relay.says("rules.yaml:1:");
    assert!(line.contains("error parsing regexp: invalid nested repetition operator"), "{line}");
    write("fragments: []\n");
    relay.says("the configuration is not good, and all stays as it was: ");
    write(&rules("one"));
    relay.says("nothing that can count at once is new");
}

#[tokio::test]
async fn a_file_that_is_not_good_is_said_with_its_place_and_all_stays_until_it_is() {
    let (directory, file) = file(&config("clients: [{ match: { any: true } }]"));
    serve(directory.path(), 1);
    let relay = Relay::start(&file);
    let mut watch = relay.watch();
    put(&mut watch).await;
    let write = |text: &str| {
        fs::write(directory.path().join("new"), text).unwrap();
        fs::rename(directory.path().join("new"), &file).unwrap();
    };
    write(&config("clients: [{ match: { any: true }, names: [] }]\nlimits: { streams: none }"));
    let place = format!("{}:5:20: limits.streams: `none`: expected a number", file.display());
    let line = relay.says("the configuration is not good, and all stays as it was: ");
    assert!(line.contains(&place), "{line}");
    assert!(relay.page("/api/v1/status").contains(&place));
    assert!(relay.counts("config_reloads_total{result=\"failed\"} 1"));
    // Who asks is answered, as often as they do.
    relay.process.signal("HUP");
    relay.says("SIGHUP: the configuration is read again");
    let line = relay.says("the configuration is not good, and all stays as it was: ");
    assert!(line.contains(&place), "{line}");
    assert!(relay.counts("config_reloads_total{result=\"failed\"} 2"));
    // What a file that it names lacks has a place, too.
    fs::write(directory.path().join("tokens"), "").unwrap();
    write(&config("clients: [{ match: { token: tokens } }]"));
    let line = relay.says("the configuration is not good, and all stays as it was: ");
    assert!(line.contains(&format!("{}:4:29: clients[0].match.token: ", file.display())), "{line}");
    serve(directory.path(), 2);
    put(&mut watch).await;
    // The file that it names is good by now, and it is the same.
    fs::write(directory.path().join("tokens"), "one-0123456789abcdef").unwrap();
    relay.says("an open stream is denied: no rule of `clients` is for this client");
    relay.says("clients[0].match.any, clients[0].match.token count now");
    assert!(relay.counts("downstream_denied_total{reason=\"client\"} 1"));
    assert!(!relay.page("/api/v1/status").contains(r#""config":"#));
}

/// As Kubernetes replaces the files of a volume: the link that all of them lead through.
#[tokio::test]
async fn a_link_that_leads_elsewhere_is_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for (version, more) in [("v1", ""), ("v2", "clients: [{ match: { cidr: [10.0.0.0/8] } }]")] {
        fs::create_dir(path(version)).unwrap();
        let text = config(more).replace("files: mesh", &format!("files: '{}'", path("mesh").display()));
        fs::write(path(version).join("relay.yaml"), text).unwrap();
    }
    serve(directory.path(), 1);
    symlink("v1", path("..data")).unwrap();
    symlink("..data/relay.yaml", path("relay.yaml")).unwrap();
    let relay = Relay::start(&path("relay.yaml"));
    let mut watch = relay.watch();
    put(&mut watch).await;
    symlink("v2", path("..data_tmp")).unwrap();
    fs::rename(path("..data_tmp"), path("..data")).unwrap();
    relay.says("an open stream is denied: no rule of `clients` is for this client");
    relay.says("the configuration is read again: clients count now");
    assert!(relay.counts("downstream_denied_total{reason=\"client\"} 1"));
}

/// A POST to the admin pages, with a header.
fn post(relay: &Relay, path: &str, header: &str) -> String {
    let mut stream = connect(relay.process.address_after("admin    http://").trim_end_matches('/'));
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{header}content-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn what_is_logged_changes_while_it_runs_and_not_from_a_browser() {
    let (directory, file) = file(&config("log: error"));
    serve(directory.path(), 1);
    let relay = Relay::start(&file);
    for header in ["origin: http://evil.example\r\n", "origin: null\r\n", "sec-fetch-site: cross-site\r\n"] {
        assert!(post(&relay, "/logging?level=debug", header).starts_with("HTTP/1.1 403 "), "{header}");
    }
    assert!(post(&relay, "/logging?level=debgu", "").starts_with("HTTP/1.1 400 "));
    assert!(relay.page("/logging").ends_with("\r\n\r\nerror\n"));
    assert!(post(&relay, "/logging?level=warn,xds_relay=info", "").ends_with("\r\n\r\nwarn,xds_relay=info\n"));
    relay.says("as somebody says on the admin pages, this is logged now: warn,xds_relay=info");
    // Who it was: afterwards, and before where afterwards it would not be logged.
    assert!(post(&relay, "/logging?level=off", "").ends_with("\r\n\r\noff\n"));
    let line = relay.says("asked for on the admin pages: /logging?level=off");
    assert!(line.contains("audit") && line.contains("peer=\"127.0.0.1:"), "{line}");
    assert!(post(&relay, "/logging?level=warn,xds_relay=info", "").ends_with("\r\n\r\nwarn,xds_relay=info\n"));
    assert!(relay.page("/logging").ends_with("\r\n\r\nwarn,xds_relay=info\n"));
    // The configuration is as it was: it does not take that back.
    relay.process.signal("HUP");
    relay.says("nothing that can count at once is new");
    fs::write(&file, config("log: debug")).unwrap();
    relay.process.signal("HUP");
    relay.says("the configuration is read again: log count now");
    assert!(relay.page("/logging").ends_with("\r\n\r\ndebug\n"));
}

#[test]
fn values_come_from_the_environment_of_the_process() {
    let (directory, file) = file(&config("node: { id: '${POD_NAME}' }\nlinger: ${LINGER:-1m}"));
    serve(directory.path(), 1);
    let check = |pod: Option<&str>| {
        let mut command = relay();
        command.arg("--config").arg(&file).arg("--check").env_remove("POD_NAME").env_remove("LINGER");
        pod.iter().for_each(|pod| _ = command.env("POD_NAME", pod));
        command.output().unwrap()
    };
    assert_eq!(check(Some("relay-1")).status.code(), Some(0));
    let output = check(None);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(":4:13: node.id: `${POD_NAME}`: the environment has no POD_NAME"), "{said}");
}

#[tokio::test]
async fn files_that_envoy_would_refuse_are_told_whole_and_what_was_served_stays() {
    let (directory, file) = file(&config("").replace("files: mesh", "files: mesh, sub_directories: true"));
    serve(directory.path(), 1);
    let relay = Relay::start(&file);
    let mut watch = relay.watch();
    put(&mut watch).await;
    fs::create_dir(directory.path().join("mesh/below")).unwrap();
    let cluster = |name: &str| format!("{{ \"@type\": {CLUSTERS}, name: {name}, connect_timeout: 0s, lb_policy: 77 }}");
    let bad = format!("resources:\n- {}\n- {}\n", cluster("b"), cluster("c"));
    fs::write(directory.path().join("mesh/below/bad.yaml"), bad).unwrap();
    for (line, path) in
        [(2, "[0].connect_timeout"), (2, "[0].lb_policy"), (3, "[1].connect_timeout"), (3, "[1].lb_policy")]
    {
        let said = relay.says("expected");
        assert!(said.contains(&format!("mesh/below/bad.yaml:{line}:")) && said.contains(path), "{said}");
    }
    relay.says("files are not good: the last good state is kept");
    assert!(relay.counts("file_reloads_total{origin=\"mesh\",result=\"failed\"} 1"));
    fs::remove_dir_all(directory.path().join("mesh/below")).unwrap();
    serve(directory.path(), 2);
    relay.says("files changed");
    put(&mut watch).await;
}
