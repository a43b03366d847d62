use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use tonic::Status;

use super::origin::{Origin, Scene};
use super::{CDS, events, run, run_until};

/// A watch that runs, until it is dropped.
pub(crate) struct Watching {
    child: Child,
    out: BufReader<Box<dyn Read>>,
}

impl Watching {
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_xds"))
            .arg("watch")
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(Box::new(child.stdout.take().unwrap()) as Box<dyn Read>);
        Self { child, out }
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.out.read_line(&mut line).unwrap() > 0, "it ended");
        line
    }

    /// The next events, in the order of what they are and of their names.
    pub(crate) fn next(&mut self, count: usize) -> Vec<Value> {
        let mut events: Vec<Value> = (0..count).map(|_| serde_json::from_str(&self.line()).unwrap()).collect();
        events.sort_by_key(|event| (event["event"].to_string(), event["name"].to_string()));
        events
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_event_is_an_object_and_a_lost_server_makes_what_was_printed_stale() {
    let scenes = [
        Scene::clusters(&["a", "b"]),
        Scene::Refuse(Status::unavailable("come back later")),
        Scene::clusters(&["a", "c"]),
    ];
    let origin = Origin::play(&scenes);
    let server = origin.address();
    let mut watching = Watching::start(&["--server", &server, "--output", "json", "cluster"]);

    let begun = watching.next(3);
    let of = |event: &str, name: &str| json!({"event": event, "type": CDS, "name": name, "server": server});
    let put = |name: &str| {
        let mut put = of("put", name);
        put["version"] = "v1".into();
        put["stale"] = false.into();
        put["resource"] = json!({"@type": CDS, "name": name});
        put
    };
    assert_eq!(begun, [of("answered", "*"), put("a"), put("b")]);

    origin.end_stream();
    let lost = watching.next(1).remove(0);
    assert_eq!((&lost["event"], &lost["stale"]), (&json!("ambient"), &json!(true)));
    assert_eq!((&lost["kind"], &lost["server"], lost.get("name")), (&json!("unreachable"), &json!(server), None));
    assert!(lost["message"].as_str().unwrap().contains("come back later"), "{lost}");

    let back = watching.next(3);
    assert_eq!(back[0], json!({"event": "ambient", "server": server, "stale": false}));
    assert_eq!(back[1..], [put("c"), of("removed", "b")]);
}

#[test]
fn for_people_there_is_a_line_an_event() {
    let origin = Origin::play(&[Scene::clusters(&["a"]), Scene::clusters(&[])]);
    let mut watching = Watching::start(&["--server", &origin.address(), "cluster", "a"]);
    let without_time = |line: String| line.split_once("Z  ").unwrap().1.to_owned();
    assert_eq!(without_time(watching.line()), "put      a  version v1  58 bytes\n");
    origin.end_stream();
    assert_eq!(without_time(watching.line()), "removed  a\n");
}

#[cfg(unix)]
#[test]
fn it_ends_by_an_interrupt_which_is_no_failure() {
    let origin = Origin::play(&[Scene::clusters(&["a"])]);
    let mut watching = Watching::start(&["--server", &origin.address(), "cluster", "a", "no-such"]);
    watching.line();
    let id = watching.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(watching.child.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn it_ends_when_nobody_reads_what_it_prints_though_nothing_happens() {
    let origin = Origin::play(&[Scene::clusters(&["a"])]);
    let mut watching = Watching::start(&["--server", &origin.address(), "cluster", "a"]);
    watching.line();
    // As `head -1` does.
    let Watching { child, out } = &mut watching;
    drop(std::mem::replace(out, BufReader::new(Box::new(std::io::empty()))));
    let (ended, waited) = mpsc::channel();
    let id = child.id().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| ended.send(child.wait().unwrap().code()));
        let code = waited.recv_timeout(Duration::from_secs(30));
        if code.is_err() {
            Command::new("kill").args(["-KILL", &id]).status().unwrap();
        }
        assert_eq!(code, Ok(Some(0)));
    });
}

#[test]
fn with_a_timeout_it_exits_as_get_does() {
    let origin = Origin::play(&[Scene::clusters(&["a"])]);
    let watch = |names: &[&str]| {
        let args = ["watch", "--server", &origin.address(), "-o", "json", "cluster"];
        run_until(|run| run.code != 3, &[&args[..], names].concat())
    };
    let there = watch(&["a", "*"]);
    assert_eq!((there.code, events(&there, "put").len(), &*there.err), (0, 1, ""));
    assert_eq!(watch(&["a", "b"]).code, 1);
}

#[test]
fn with_nothing_to_watch_it_does_not_wait() {
    let run = run(&["watch", "-o", "json", "cluster", "xdstp://a"]);
    assert_eq!((run.code, &events(&run, "error")[0]["kind"]), (1, &"invalid".into()));
}
