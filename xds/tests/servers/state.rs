//! What is kept of what servers say, and shown when they are away.

use std::fs;

use serde_json::json;

use tonic::Status;

use super::origin::{Origin, Scene};
use super::watch::Watching;
use super::{CDS, GLOB, MEMBER, events, run};

#[test]
fn what_was_seen_is_shown_as_stale_when_the_server_is_silent() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let origin = Origin::play(&[Scene::clusters(&["web"]), Scene::Silence]);
    let address = origin.address();
    let get = |more: &[&str]| {
        let args = ["get", "--server", &address, "--state", state.to_str().unwrap(), "--timeout", "5"];
        run(&[&args[..], more].concat())
    };
    let fresh = get(&["-o", "json", "cluster", "web"]);
    assert_eq!((fresh.code, fresh.err.as_str()), (0, ""));
    assert_eq!(events(&fresh, "put")[0]["stale"], json!(false));
    let stale = get(&["-o", "json", "cluster", "web"]);
    assert_eq!(stale.code, 0, "{}", stale.err);
    let (put, before) = (events(&stale, "put"), events(&fresh, "put"));
    assert_eq!(
        (&put[0]["stale"], &put[0]["version"], &put[0]["resource"]),
        (&json!(true), &before[0]["version"], &before[0]["resource"])
    );
    let told = events(&stale, "ambient");
    assert_eq!(
        (&told[0]["name"], &told[0]["stale"], &told[0]["kind"]),
        (&json!("web"), &json!(true), &json!("timeout"))
    );
    let table = get(&["cluster", "web"]);
    assert!(table.code == 0 && table.out.contains("STATE") && table.out.contains(" stale\n"), "{}", table.out);
    assert!(table.err.contains("web is as it was before: "), "{}", table.err);
    let unknown = get(&["-o", "text", "cluster", "other"]);
    assert_eq!(unknown.code, 3, "{}", unknown.err);
}

#[test]
fn of_a_bootstrap_too_when_it_is_away_and_another_server_or_node_has_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let origin = Origin::play(&[Scene::clusters(&["web"]), Scene::Refuse(Status::unavailable("away"))]);
    for node in ["me", "other"] {
        let servers = json!([{ "server_uri": origin.address(), "channel_creds": [{ "type": "insecure" }] }]);
        fs::write(path(node), json!({ "xds_servers": servers, "node": { "id": node } }).to_string()).unwrap();
    }
    let get = |node: &str| {
        run(&[
            "get",
            "--bootstrap",
            &path(node),
            "--state",
            &path("state"),
            "--timeout",
            "5",
            "-o",
            "json",
            "cluster",
            "web",
        ])
    };
    assert_eq!(get("me").code, 0);
    let (mine, others) = (get("me"), get("other"));
    assert_eq!((mine.code, others.code), (0, 3), "{} {}", mine.err, others.err);
    assert_eq!(events(&mine, "put")[0]["stale"], json!(true));
}

#[test]
fn where_nothing_can_be_kept_that_is_said_and_the_answer_printed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let origin = Origin::play(&[Scene::clusters(&["web"])]);
    let run = run(&["get", "--server", &origin.address(), "--state", file.to_str().unwrap(), "cluster", "web"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("nothing is kept: "), "{}", run.err);
}

#[test]
fn what_was_seen_is_shown_as_stale_with_the_trouble_beside_it_when_nobody_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let away = Status::unavailable("no server is left");
    let origin = Origin::play(&[Scene::clusters(&["web"]), Scene::Refuse(away)]);
    let address = origin.address();
    let get = |more: &[&str]| {
        let args = ["get", "--server", &address, "--state", state.to_str().unwrap(), "cluster", "web"];
        run(&[&args[..], more].concat())
    };
    assert_eq!(get(&[]).code, 0);
    let table = get(&[]);
    assert!(table.code == 0 && table.out.contains(" stale\n"), "{}", table.out);
    assert!(table.err.contains("no server is left"), "{}", table.err);
    let told = get(&["-o", "json"]);
    assert_eq!((told.code, events(&told, "ambient").len()), (0, 1), "{}", told.out);
}

#[test]
fn that_what_is_stale_is_as_it_was_is_told_when_the_server_says_so() {
    for (asked, name) in [("web", "web"), ("*", "web"), (GLOB, MEMBER)] {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let there = Scene::clusters(&["web", MEMBER]);
        let origin = Origin::play(&[there.clone(), Scene::Silence, there]);
        let address = origin.address();
        let args = ["--server", &address, "--state", state.to_str().unwrap(), "-o", "json", "cluster", asked];
        assert_eq!(run(&[&["get"], &args[..]].concat()).code, 0);
        let mut watching = Watching::start(&args);
        let stale = |event: &serde_json::Value| event["event"] == "put" && event["stale"] == true;
        assert!((0..2).any(|_| stale(&watching.next(1)[0])), "{asked}");
        // Of `get`, which is over, and of this.
        origin.end_stream();
        origin.end_stream();
        let fresh = json!({"event": "ambient", "type": CDS, "name": name, "server": address, "stale": false});
        // A stream without an answer is a trouble of its own, and its end another.
        assert!((0..4).any(|_| watching.next(1)[0] == fresh), "{asked}");
    }
}
