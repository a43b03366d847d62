//! An API server that a test scripts: it lists and watches as Kubernetes does, and does it badly where it is told to.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use tokio::io::duplex;
use tokio::sync::Notify;

use super::super::dial::{Dial, Dialing, Io};
use super::script;
use crate::lock::lock;

/// Clones are the same one.
#[derive(Clone, Default)]
pub(super) struct Cluster {
    state: Arc<Mutex<State>>,
    pub(super) changed: Arc<Notify>,
}

/// What is there, what was done, and what goes wrong next.
#[derive(Default)]
pub(super) struct State {
    /// By plural, namespace and name.
    pub(super) objects: BTreeMap<(String, String, String), Value>,
    /// What was done: of which kind, and how it is told.
    pub(super) events: Vec<(String, Value)>,
    /// What was done before is not known any more.
    pub(super) compacted: usize,
    /// The lists that pages are of, by their versions.
    pub(super) lists: BTreeMap<String, (usize, Vec<Value>)>,
    /// The targets of all requests, and what they said of who asks.
    pub(super) requests: Vec<(String, Option<String>)>,
    /// What becomes of the next requests of a kind.
    pub(super) faults: BTreeMap<Kind, VecDeque<Fault>>,
    /// No page has more.
    pub(super) page: Option<usize>,
    /// How many times all connections were cut.
    pub(super) cuts: usize,
    /// An outage: nobody is let in.
    pub(super) is_away: bool,
    /// Nobody may read these.
    pub(super) forbidden: Option<&'static str>,
    /// Bytes at a time.
    pub(super) drip: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    List,
    /// A page that is not the first.
    More,
    Watch,
}

/// What goes wrong with one request.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// This status, with this in it, and these lines in the head.
    Status(u16, String, &'static str),
    /// 200, and this for an answer.
    Says(String),
    /// The answer has so many bytes, and then the connection is cut.
    Cut(usize),
    /// Nothing is said, for ever.
    Silence,
    /// It begins well, and then nothing is said for ever.
    Stall,
}

/// An event of a watch that says that what was since is not known.
pub(super) fn expired() -> String {
    let status =
        json!({ "kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old" });
    format!("{}\n", json!({ "type": "ERROR", "object": status }))
}

pub(super) fn status(code: u16, reason: &str, message: &str) -> String {
    json!({ "kind": "Status", "status": "Failure", "reason": reason, "code": code, "message": message }).to_string()
}

/// That of the state after so many events: to who asks it is a text.
pub(super) fn version(events: usize) -> String {
    format!("v/{:04x}?", events * 7919 % 65536)
}

impl Cluster {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A config map, whose keys are there since this second.
    pub(super) fn apply(&self, namespace: &str, name: &str, since: u32, data: &[(&str, &str)]) {
        let data: BTreeMap<_, _> = data.iter().copied().collect();
        self.put("configmaps", namespace, name, since, json!({ "data": data }));
    }

    /// One with a cluster in it, which is called like it.
    pub(super) fn cluster(&self, name: &str, timeout: u32) {
        self.apply("mesh", name, 0, &[("a.yaml", &super::text(name, timeout))]);
    }

    pub(super) fn put(&self, plural: &str, namespace: &str, name: &str, since: u32, mut object: Value) {
        let state = &mut *self.state();
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        let is_new = !state.objects.contains_key(&key);
        object["metadata"] = json!({
            "name": name, "namespace": namespace, "creationTimestamp": format!("2026-01-01T00:00:{since:02}Z"),
            "resourceVersion": version(state.events.len() + 1),
        });
        state.objects.insert(key, object.clone());
        self.tell(state, plural, if is_new { "ADDED" } else { "MODIFIED" }, object);
    }

    pub(super) fn delete(&self, namespace: &str, name: &str) {
        let state = &mut *self.state();
        let key = ("configmaps".to_owned(), namespace.to_owned(), name.to_owned());
        let Some(mut object) = state.objects.remove(&key) else { return };
        object["metadata"]["resourceVersion"] = version(state.events.len() + 1).into();
        self.tell(state, "configmaps", "DELETED", object);
    }

    fn tell(&self, state: &mut State, plural: &str, what: &str, mut object: Value) {
        object["kind"] = if plural == "configmaps" { "ConfigMap" } else { "XdsResource" }.into();
        state.events.push((plural.to_owned(), json!({ "type": what, "object": object })));
        self.changed.notify_waiters();
    }

    /// The next request of a kind ends like this.
    pub(super) fn fail(&self, kind: Kind, fault: Fault) {
        self.state().faults.entry(kind).or_default().push_back(fault);
    }

    /// All connections are cut: within a line, where one is on its way.
    pub(super) fn cut(&self) {
        self.state().cuts += 1;
        self.changed.notify_waiters();
    }

    /// What was done is not known any more, and lists that go on are not either.
    pub(super) fn compact(&self) {
        let state = &mut *self.state();
        state.compacted = state.events.len();
        state.lists.clear();
    }

    /// How many requests there were of a kind.
    pub(super) fn asked(&self, kind: Kind) -> usize {
        self.state().requests.iter().filter(|(target, _)| script::kind(target) == kind).count()
    }
}

impl Dial for Cluster {
    fn dial(&self) -> Dialing<'_> {
        Box::pin(async {
            if self.state().is_away {
                return Err("nobody is there".to_owned());
            }
            let (near, far) = duplex(1 << 16);
            tokio::spawn(script::serve(self.clone(), far));
            Ok(Box::new(near) as Box<dyn Io>)
        })
    }
}
