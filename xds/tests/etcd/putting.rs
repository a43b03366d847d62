//! What is put into etcd, and by whom.

use std::fs;
use std::path::Path;

use crate::cli::{Run, xds};
use crate::cluster::Cluster;
use crate::relays::{CLUSTER, PREFIX, Running, Watching};

const GLOB: &str = "xdstp://kv.example.com/envoy.config.cluster.v3.Cluster/shop/*";

/// The tool with these arguments behind the command.
fn tool(cluster: &Cluster, command: &str, args: &[&str]) -> Run {
    let endpoints = cluster.endpoints().join(",");
    xds(&[&[command, "--etcd", &endpoints, "--prefix", PREFIX], args].concat(), "")
}

fn write_clusters(file: &Path, clusters: &[(&str, &str)]) {
    let text = clusters.iter().map(|(name, timeout)| {
        format!("- {{\"@type\": type.googleapis.com/{CLUSTER}, name: \"{name}\", connect_timeout: {timeout}}}\n")
    });
    fs::write(file, format!("resources:\n{}", text.collect::<String>())).unwrap();
}

#[test]
fn what_is_pushed_put_and_removed_reaches_the_clients_of_two_relays() {
    let cluster = Cluster::start(1);
    let relays = [Running::start(&cluster.endpoints()), Running::start(&cluster.endpoints())];
    relays.iter().for_each(|relay| _ = relay.until("/readyz", |status, _| status == 200));
    let mut watches = relays.each_ref().map(|relay| (Watching::of(relay, "web"), Watching::of(relay, GLOB)));
    for (web, glob) in &mut watches {
        assert!(web.next().contains("does not exist"));
        assert_eq!(glob.next(), "answered");
    }
    let directory = tempfile::tempdir().unwrap();
    let (a, file) = (GLOB.replace('*', "a"), directory.path().join("clusters.yaml"));
    write_clusters(&file, &[("web", "1s"), (&a, "2s")]);
    let pushed = tool(&cluster, "push", &[directory.path().to_str().unwrap()]);
    assert_eq!((pushed.code, pushed.err.as_str()), (0, ""), "{}", pushed.out);
    let lines: Vec<_> = pushed.out.lines().collect();
    assert_eq!(lines[..2], [format!("put mesh/res/{CLUSTER}/web"), format!("put mesh/res/{CLUSTER}/{a}")]);
    assert!(lines[2].starts_with("2 put, at revision "), "{}", lines[2]);
    for (web, glob) in &mut watches {
        assert_eq!((web.next(), glob.next()), ("web 1s".to_owned(), format!("{a} 2s")));
    }
    // A person.
    let key = |name: &str| format!("mesh/res/{CLUSTER}/{name}");
    let text = format!("{{\"@type\": \"type.googleapis.com/{CLUSTER}\", \"connect_timeout\": \"3s\"}}");
    cluster.control(&["put", &key("web"), &text]);
    for (web, _) in &mut watches {
        assert_eq!(web.next(), "web 3s");
    }
    let removed = tool(&cluster, "rm", &["cluster", "web", &a, "none"]);
    assert_eq!(removed.code, 1, "one is not there: {}", removed.err);
    assert!(
        removed.out.contains(&format!("rm  mesh/res/{CLUSTER}/web\n"))
            && removed.out.contains("2 removed, 1 not there")
    );
    for (web, glob) in &mut watches {
        assert!(web.next().contains("does not exist"));
        assert_eq!(glob.next(), format!("{a} is gone"));
        assert!(web.is_quiet() && glob.is_quiet());
    }
}

#[test]
fn what_is_there_is_not_put_again_and_a_dry_run_puts_nothing() {
    let cluster = Cluster::start(1);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("clusters.yaml");
    write_clusters(&file, &[("a", "1s"), ("b", "1s")]);
    let file = file.to_str().unwrap();
    let dry = tool(&cluster, "push", &["--dry-run", file]);
    assert_eq!((dry.code, dry.out.lines().last()), (0, Some("2 would be put")), "{}", dry.err);
    assert_eq!(cluster.control(&["get", "--prefix", "mesh/", "--keys-only"]), "");
    assert_eq!(tool(&cluster, "push", &[file]).code, 0);
    let again = tool(&cluster, "push", &[file]);
    assert_eq!((again.code, again.out.as_str()), (0, "2 unchanged\n"));
    write_clusters(Path::new(file), &[("a", "1s"), ("b", "2s")]);
    let changed = tool(&cluster, "push", &[file]);
    assert!(changed.out.contains("1 put, 1 unchanged, at revision "), "{}", changed.out);
    let dry = tool(&cluster, "rm", &["--dry-run", "cluster", "a"]);
    assert_eq!((dry.code, dry.out.lines().last()), (0, Some("1 would be removed")));
}

#[test]
fn what_is_more_than_one_transaction_is_refused_unless_it_may_be_in_pieces() {
    let cluster = Cluster::start(1);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("clusters.yaml");
    let names: Vec<_> = (0..300).map(|number| format!("c{number:03}")).collect();
    write_clusters(&file, &names.iter().map(|name| (name.as_str(), "1s")).collect::<Vec<_>>());
    let file = file.to_str().unwrap();
    let refused = tool(&cluster, "push", &[file]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert!(
        refused
            .err
            .starts_with("xds: 300 changes are more than one transaction of etcd takes; with --in-pieces they are 3")
    );
    let pushed = tool(&cluster, "push", &["--in-pieces", file]);
    assert_eq!(pushed.code, 0, "{}", pushed.err);
    assert!(pushed.out.lines().last().unwrap().starts_with("300 put, at revision "));
    assert_eq!(tool(&cluster, "push", &[file]).out, "300 unchanged\n");
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_put() {
    let cluster = Cluster::start(1);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bad.yaml");
    fs::write(&file, format!("resources:\n- {{\"@type\": type.googleapis.com/{CLUSTER}, nane: a}}\n")).unwrap();
    let file = file.to_str().unwrap();
    let bad = tool(&cluster, "push", &[file]);
    assert_eq!((bad.code, bad.out.as_str()), (2, ""));
    assert!(bad.err.starts_with(&format!("xds: {file}:2:")), "{}", bad.err);
    let bad = tool(&cluster, "rm", &["cluster", "xdstp://a/envoy.config.cluster.v3.Cluster/*"]);
    assert_eq!((bad.code, bad.err.contains("cannot be the name of a resource")), (2, true), "{}", bad.err);
    let clear = tool(&cluster, "rm", &["--user", "me", "--password-file", file, "cluster", "a"]);
    assert_eq!((clear.code, clear.err.contains("a password goes to etcd over TLS only")), (2, true), "{}", clear.err);
    let away = xds(&["rm", "--etcd", "127.0.0.1:1", "--prefix", "a/", "--timeout", "0.5", "cluster", "a"], "");
    assert_eq!((away.code, away.err.starts_with("xds: etcd: it is away: ")), (3, true), "{}", away.err);
}
