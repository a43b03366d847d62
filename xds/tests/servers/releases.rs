//! A relay that releases by stages: what is told of it, and what is ordered, by the tool alone.

use std::fs;
use std::path::Path;
use std::sync::mpsc;

use serde_json::json;
use xds_relay::{Config, Relay};

use super::cli::Run;
use super::origin::nobody;
use super::{CDS, objects, run};

struct Running {
    directory: tempfile::TempDir,
    admin: String,
}

impl Running {
    fn start(more: &str) -> Self {
        Self::settling("0s", more)
    }

    fn settling(settle: &str, more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("files")).unwrap();
        write(directory.path(), &[("a", 1)]);
        let config = format!(
            "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\norigins: [{{ name: files, files: files }}]\nstate: {{ path: state }}\n\
             rollout: [{{ scope: old-style, settle: {settle}, stages: [{{ percent: 1, hold: 1h }}, {{ percent: 2, hold: 1h }}] }}]\n\
             {more}\n"
        );
        let file = directory.path().join("relay.yaml");
        let (address, serving) = mpsc::channel::<String>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let relay = Relay::bind(Config::parse(file, &config).unwrap()).await.unwrap();
                address.send(relay.admin_address().unwrap().unwrap().to_string()).unwrap();
                relay.run(std::future::pending()).await
            })
        });
        Self { directory, admin: serving.recv().unwrap() }
    }

    fn told(&self, args: &[&str]) -> Run {
        run(&[&["relay", "--admin", &self.admin], args].concat())
    }

    /// The releases once they are what is waited for.
    fn once(&self, done: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let releases = |_| self.told(&["releases", "-o", "json"]);
        let scope = |run: Run| (!run.out.is_empty()).then(|| objects(&run)[0]["scopes"][0].clone());
        (0..1000).map(releases).find_map(|run| scope(run).filter(&done)).unwrap()
    }
}

fn write(directory: &Path, clusters: &[(&str, u32)]) {
    let cluster =
        |(name, seconds): &(&str, u32)| format!("- {{ '@type': {CDS}, name: {name}, connect_timeout: {seconds}s }}\n");
    let text = format!("resources:\n{}", clusters.iter().map(cluster).collect::<String>());
    fs::write(directory.join("next"), text).unwrap();
    fs::rename(directory.join("next"), directory.join("files/a.yaml")).unwrap();
}

#[cfg(unix)]
#[test]
fn releases_are_compared_frozen_taken_back_and_waited_for_and_it_is_known_by_whom() {
    let relay = Running::start("");
    let first = relay.once(|scope| scope["stable"].is_string());
    let stable = first["stable"].as_str().unwrap();
    let nothing = relay.told(&["diff"]);
    assert_eq!((nothing.code, nothing.err.contains("there is nothing to compare: ")), (1, true), "{}", nothing.err);
    let waited = relay.told(&["rollout", "wait"]);
    assert_eq!((waited.code, waited.out), (0, format!("{stable}: stable\n")));

    let because = ["--by", "ann", "--why", "a test"];
    let frozen = relay.told(&[&["freeze"], &because[..]].concat());
    assert_eq!((frozen.code, &*frozen.err), (0, ""));
    assert!(frozen.out.starts_with("old-style: frozen; mark "), "{}", frozen.out);
    write(relay.directory.path(), &[("a", 2), ("b", 1)]);
    let second = relay.once(|scope| scope["candidate"].is_object());
    let candidate = second["candidate"]["release"].as_str().unwrap();
    let waited = relay.told(&["rollout", "wait"]);
    assert_eq!((waited.code, waited.out), (4, format!("{candidate}: frozen: a test\n")));

    let diff = relay.told(&["diff"]);
    let expected =
        format!("old-style: {stable} → {candidate}\n+ Cluster b\n~ Cluster a\n    connect_timeout: \"1s\" → \"2s\"\n");
    assert_eq!((diff.code, diff.out), (1, expected));
    let same = relay.told(&["diff", "--to", stable]);
    assert_eq!((same.code, same.out), (0, format!("old-style: {stable} → {stable}\nnothing differs\n")));

    for (args, code) in [
        (&["unfreeze"][..], 0),
        (&["unfreeze"], 1),
        (&["rollout", "stage", "2"], 0),
        (&["rollout", "stage", "3"], 1),
        (&["rollout", "hold"], 0),
        (&["rollback", "--mark", "1"], 1),
    ] {
        let done = relay.told(&[args, &because[..]].concat());
        assert_eq!(done.code, code, "{args:?}: {} {}", done.out, done.err);
        assert_eq!(done.err.is_empty(), code == 0);
    }
    // Who ran it, where nothing says so; and where orders are taken, as it is told.
    let mut unsaid = std::process::Command::new(env!("CARGO_BIN_EXE_xds"));
    let unsaid =
        unsaid.args(["relay", "--admin", &relay.admin, "rollout", "hold", "--why", "a test"]).env_remove("USER");
    let unsaid = unsaid.output().unwrap();
    assert_ne!(unsaid.status.code(), Some(2), "{}", String::from_utf8_lossy(&unsaid.stderr));
    let waited = relay.told(&["rollout", "wait", "--within", "0.1"]);
    assert_eq!((waited.code, waited.out), (1, format!("{candidate}: not stable within 100ms\n")));
    assert_eq!(relay.told(&[&["rollback"], &because[..]].concat()).code, 0);
    let waited = relay.told(&["rollout", "wait", "--release", candidate]);
    assert_eq!((waited.code, waited.out), (1, format!("{candidate}: not under way any more\n")));

    // What removes much waits for somebody to look at it.
    let many: Vec<_> = (0..20).map(|at| format!("c{at}")).collect();
    write(relay.directory.path(), &many.iter().map(|name| (&**name, 1)).collect::<Vec<_>>());
    relay.once(|scope| scope["candidate"].is_object());
    assert_eq!(relay.told(&[&["rollout", "promote"], &because[..]].concat()).code, 0);
    let many = relay.once(|scope| scope["candidate"].is_null())["stable"].as_str().unwrap().to_owned();
    // In two steps, of which neither is much of the files.
    let half: Vec<_> = (0..10).map(|at| format!("c{at}")).collect();
    write(relay.directory.path(), &half.iter().map(|name| (&**name, 1)).collect::<Vec<_>>());
    let half = relay.once(|scope| scope["candidate"].is_object())["candidate"]["release"].clone();
    write(relay.directory.path(), &[("c0", 1)]);
    relay.once(|scope| scope["candidate"]["release"] != half);
    let waited = relay.told(&["rollout", "wait", "--not", &many]);
    assert_eq!((waited.code, waited.out.ends_with(": halted: it removes much\n")), (3, true), "{}", waited.out);
    assert_eq!(relay.told(&["releases"]).code, 1);
    assert_eq!(relay.told(&[&["rollback"], &because[..]].concat()).code, 0);
    let back = relay.told(&[&["rollback", "--to", stable], &because[..]].concat());
    assert_eq!(back.code, 0, "{}", back.err);
    let diff = relay.told(&["diff", "--from", &many, "--to", stable]);
    assert!(diff.out.contains("it removes much: ") && diff.out.contains("- Cluster c19\n"), "{}", diff.out);
    let elsewhere =
        relay.told(&[&["freeze", "--orders", "10.0.0.1:1", "--orders-token", "Cargo.toml"], &because[..]].concat());
    assert!(elsewhere.code == 2 && elsewhere.err.contains("not sent in clear text"), "{}", elsewhere.err);

    let audit = relay.told(&["audit", "-o", "json", "--limit", "3"]);
    let entries = objects(&audit);
    let done: Vec<_> = entries.iter().map(|entry| entry["done"].clone()).collect();
    assert_eq!(done, ["rolled back", "rolled back", "removes much"]);
    assert!(entries[0]["by"].as_str().unwrap().starts_with("ann (uid "), "{}", entries[0]);
    assert_eq!((&entries[0]["why"], &entries[0]["release"]), (&json!("a test"), &json!(stable)));
    let text = relay.told(&["audit"]);
    assert!(text.out.starts_with("WHEN") && text.out.contains("frozen"), "{}", text.out);
    let taken_back = format!("{many}, for {stable}");
    assert!(text.out.contains(&taken_back), "{}: {taken_back}", text.out);
}

#[test]
fn that_nothing_is_released_yet_is_said_and_is_no_success() {
    let relay = Running::settling("1h", "");
    let releases = relay.told(&["releases"]);
    assert!(releases.out.contains("no release yet: nothing is served\n"), "{}", releases.out);
    assert_eq!((releases.code, &*releases.err), (1, ""));
    assert_eq!(relay.told(&["releases", "-o", "json"]).code, 1);
}

#[test]
fn where_no_orders_are_taken_or_nobody_answers_it_is_said() {
    let relay = Running::start("orders: none");
    relay.once(|scope| scope["stable"].is_string());
    let refused = relay.told(&["freeze", "--by", "ann", "--why", "a test"]);
    assert_eq!((refused.code, &*refused.err), (1, "xds: this relay takes no orders: `orders` of its configuration\n"));
    let nobody = nobody();
    let away = relay.told(&["freeze", "--by", "ann", "--why", "a test", "--orders", &nobody]);
    assert_eq!(away.code, 3, "{}", away.err);
    let away = run(&["relay", "--admin", &nobody, "rollout", "wait"]);
    assert_eq!(away.code, 5, "{}", away.err);
    // The admin pages take none.
    let pages = relay.told(&["freeze", "--by", "ann", "--why", "a test", "--orders", &relay.admin]);
    assert_eq!((pages.code, pages.err.contains("orders are not taken here: ")), (1, true), "{}", pages.err);
    assert_eq!(relay.told(&["freeze", "--by", "ann"]).code, 2, "a reason is wanted");
}
