//! The relay as a process.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// Long enough for any machine; nothing waits this long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn relay() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xds-relay"));
    command.env_remove("XDS_RELAY_LOG").stdin(Stdio::null());
    command
}

pub(crate) fn file(text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("relay.yaml");
    fs::write(&file, text).unwrap();
    (directory, file)
}

/// A relay that has said what it serves; ended when dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) greeting: String,
}

impl Running {
    pub(crate) fn start(mut command: Command, last_line: &'static str) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, greeted) = mpsc::channel();
        thread::spawn(move || {
            let mut greeting = String::new();
            while !greeting.contains(last_line) && stdout.read_line(&mut greeting).is_ok_and(|n| n > 0) {}
            let _ = send.send(greeting);
        });
        let greeting = greeted.recv_timeout(PATIENCE).unwrap_or_default();
        let running = Self { child, greeting };
        assert!(running.greeting.contains(last_line), "{}", running.greeting);
        running
    }

    pub(crate) fn address_after(&self, label: &str) -> &str {
        self.greeting.split(label).nth(1).unwrap().split_whitespace().next().unwrap()
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        assert!(Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What is answered over HTTP/1, whatever it is, until the connection is closed.
pub(crate) fn answer(stream: &mut TcpStream, path: &str) -> String {
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// What is written, line by line, until the end.
#[cfg(unix)]
pub(crate) fn lines(from: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel();
    thread::spawn(move || BufReader::new(from).lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    lines
}
