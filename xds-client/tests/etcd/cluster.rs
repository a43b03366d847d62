//! Clusters of etcd on loopback, each of processes of its own, which end with it.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use xdstp_client::state::{Etcd, EtcdOptions, Store, StoreError};

pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) const PREFIX: &str = "test/";

/// A cluster. What etcd says is in its directory.
pub(crate) struct Cluster {
    pub(crate) directory: TempDir,
    members: Vec<Member>,
    initial: String,
    token: String,
    more: Vec<String>,
    scheme: &'static str,
}

struct Member {
    name: String,
    client: u16,
    peer: u16,
    process: Option<Child>,
}

impl Cluster {
    /// So many members, which answer.
    pub(crate) fn start(count: usize) -> Self {
        let mut cluster = Self::prepared(count, "http");
        cluster.start_all();
        cluster.wait();
        cluster
    }

    /// One member that is called by TLS, with these arguments.
    pub(crate) fn start_secure(more: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let mut cluster = Self::prepared(1, "https");
        cluster.more = more(cluster.directory.path());
        cluster.start_all();
        cluster
    }

    fn prepared(count: usize, scheme: &'static str) -> Self {
        let ports = free_ports(count * 2);
        let member = |(number, ports): (usize, &[u16])| {
            let [client, peer] = ports else { panic!("two ports each") };
            Member { name: format!("m{number}"), client: *client, peer: *peer, process: None }
        };
        let members: Vec<_> = ports.chunks(2).enumerate().map(member).collect();
        let initial: Vec<_> =
            members.iter().map(|member| format!("{}=http://127.0.0.1:{}", member.name, member.peer)).collect();
        let (initial, token) = (initial.join(","), "first".to_owned());
        Self { directory: tempfile::tempdir().unwrap(), members, initial, token, more: Vec::new(), scheme }
    }

    fn start_all(&mut self) {
        (0..self.members.len()).for_each(|member| self.restart(member));
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| format!("{}://127.0.0.1:{}", self.scheme, member.client)).collect()
    }

    pub(crate) fn port(&self, member: usize) -> u16 {
        self.members[member].client
    }

    /// A store in it that has these keys to itself.
    pub(crate) fn store(&self, prefix: &str) -> Etcd {
        Etcd::open(EtcdOptions::new(self.endpoints(), prefix).unwrap()).unwrap()
    }

    /// Returns when it answers.
    pub(crate) fn wait(&self) {
        until_it_answers(&self.store(PREFIX));
    }

    /// Ends a member on the spot.
    pub(crate) fn kill(&mut self, member: usize) {
        if let Some(mut process) = self.members[member].process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// A member does nothing any more, and its connections stay.
    pub(crate) fn stop(&self, member: usize) {
        let process = self.members[member].process.as_ref().unwrap();
        assert!(Command::new("kill").args(["-STOP", &process.id().to_string()]).status().unwrap().success());
    }

    /// Starts a member that was ended.
    pub(crate) fn restart(&mut self, member: usize) {
        let data = self.data(member);
        let Member { name, client, peer, process } = &mut self.members[member];
        let log = File::options().create(true).append(true).open(self.directory.path().join("log")).unwrap();
        let (client, peer) = (format!("{}://127.0.0.1:{client}", self.scheme), format!("http://127.0.0.1:{peer}"));
        let mut command = Command::new("etcd");
        command
            .args(["--name", name, "--log-level", "error", "--logger", "zap", "--strict-reconfig-check=false"])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &self.initial, "--initial-cluster-token", &self.token])
            .arg("--data-dir")
            .arg(data)
            .args(&self.more)
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        *process = Some(command.spawn().unwrap_or_else(|error| panic!("etcd does not start: {error}")));
    }

    pub(crate) fn data(&self, member: usize) -> PathBuf {
        self.directory.path().join(&self.members[member].name)
    }

    /// All members are gone, and what they had; they come back as another cluster at the same addresses.
    pub(crate) fn become_another(&mut self) {
        for member in 0..self.members.len() {
            self.kill(member);
            fs::remove_dir_all(self.data(member)).unwrap();
        }
        self.token = "second".to_owned();
        self.start_all();
        self.wait();
    }

    /// Puts back what is in a file, under the same name and at the same address, as who restores a backup does.
    pub(crate) fn restore(&mut self, snapshot: &Path) {
        self.kill(0);
        fs::remove_dir_all(self.data(0)).unwrap();
        let (data, peer) = (self.data(0), format!("http://127.0.0.1:{}", self.members[0].peer));
        self.control(&[
            "snapshot",
            "restore",
            snapshot.to_str().unwrap(),
            "--name=m0",
            &format!("--data-dir={}", data.display()),
            &format!("--initial-cluster={}", self.initial),
            &format!("--initial-cluster-token={}", self.token),
            &format!("--initial-advertise-peer-urls={peer}"),
        ]);
        self.restart(0);
        self.wait();
    }

    /// Which member leads.
    pub(crate) fn leader(&self) -> usize {
        let status = self.control(&["endpoint", "status", "-w", "json"]);
        let status: Vec<serde_json::Value> = serde_json::from_str(&status).unwrap();
        let is_leader = |of: &serde_json::Value| of["Status"]["leader"] == of["Status"]["header"]["member_id"];
        let leader = status.iter().find(|of| is_leader(of)).unwrap();
        let endpoints = self.endpoints();
        endpoints.iter().position(|endpoint| leader["Endpoint"] == **endpoint).unwrap()
    }

    /// What is compacted is not kept any more.
    pub(crate) fn compact(&self, revision: u64) {
        self.control(&["compact", &revision.to_string()]);
    }

    /// What etcd's own tool says.
    pub(crate) fn control(&self, arguments: &[&str]) -> String {
        let endpoints = self.endpoints().join(",");
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").arg("--endpoints").arg(endpoints).args(arguments);
        let output = command.output().unwrap_or_else(|error| panic!("etcdctl does not start: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..self.members.len()).for_each(|member| self.kill(member));
    }
}

pub(crate) fn until_it_answers(store: &dyn Store) {
    let since = Instant::now();
    while let Err(error) = store.list("") {
        assert!(matches!(error, StoreError::Away(_)) && since.elapsed() < LONG, "it does not begin: {error}");
    }
}

/// Which nobody has, and no other test in this process will be told of. The system gives none of these to who connects somewhere:
/// a member that is started again finds its own.
fn free_ports(count: usize) -> Vec<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 100).unwrap() * 100;
    let ports = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::SeqCst) % 2000);
    ports.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).take(count).collect()
}
