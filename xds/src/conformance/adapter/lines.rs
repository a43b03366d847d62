//! A process, or whoever listens, that is told what to change: a line of JSON for each change, and one for each answer.

use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::{Change, Failure, answer};
use crate::conformance::resources::Item;

pub(crate) struct Lines {
    to: Box<dyn AsyncWrite + Unpin>,
    from: BufReader<Box<dyn AsyncRead + Unpin>>,
    /// Why nothing more can be asked of it.
    broken: Option<String>,
    /// It ends when its input does; or with us.
    _child: Option<Child>,
}

/// What an answer may measure.
const MAX_ANSWER: u64 = 64 << 10;

impl Lines {
    /// Starts a program, with arguments between spaces.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn run(command: &str) -> Result<Self, String> {
        let mut words = command.split_whitespace();
        let program = words.next().unwrap_or_default();
        let child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let mut child = child;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{program}: it has no standard input and output"));
        };
        Ok(Self::new(Box::new(to), Box::new(from), Some(child)))
    }

    /// # Errors
    /// Nobody listens.
    pub(crate) async fn connect(address: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(address).await.map_err(|error| format!("{address}: {error}"))?;
        let _ = stream.set_nodelay(true);
        let (from, to) = stream.into_split();
        Ok(Self::new(Box::new(to), Box::new(from), None))
    }

    fn new(to: Box<dyn AsyncWrite + Unpin>, from: Box<dyn AsyncRead + Unpin>, child: Option<Child>) -> Self {
        Self { to, from: BufReader::new(from), broken: None, _child: child }
    }

    pub(crate) async fn change(&mut self, change: &Change, timeout: Duration) -> Result<(), Failure> {
        if let Some(why) = &self.broken {
            return Err(Failure::Broken(why.clone()));
        }
        let line = line(change);
        let answer = match tokio::time::timeout(timeout, self.exchange(&line)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer for {timeout:?}")),
        };
        // After what is no answer, what comes later would be taken for the answer to something else.
        answer.unwrap_or_else(|why| Err(Failure::Broken(self.broken.insert(why).clone())))
    }

    async fn exchange(&mut self, line: &str) -> Result<Result<(), Failure>, String> {
        let written = async {
            self.to.write_all(line.as_bytes()).await?;
            self.to.flush().await
        };
        written.await.map_err(|error| format!("it does not read: {error}"))?;
        let mut answer = Vec::new();
        let mut limited = (&mut self.from).take(MAX_ANSWER);
        limited.read_until(b'\n', &mut answer).await.map_err(|error| error.to_string())?;
        if answer.last() != Some(&b'\n') {
            return Err("it ended, or its answer is too long".into());
        }
        answer::of_line(&answer)
    }
}

/// A change as adapters read it.
fn line(change: &Change) -> String {
    let put = |item: &Item| -> Value {
        let mut put = json!({
            "type": item.of.type_url(), "name": item.name, "value": STANDARD.encode(item.encode()),
        });
        let Some(fields) = put.as_object_mut() else { return put };
        if let Some(resource) = item.json() {
            fields.insert("resource".into(), resource);
        }
        if let Some(ttl) = item.ttl {
            fields.insert("ttl".into(), format!("{ttl}s").into());
        }
        if let Some(constraints) = &item.constraints {
            fields.insert("constraints".into(), constraints.as_str().into());
        }
        if let Some(parameters) = item.parameters {
            let all = parameters.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value)));
            fields.insert("parameters".into(), Value::Object(all.collect()));
        }
        put
    };
    let put: Vec<_> = change.put.iter().map(put).collect();
    let remove: Vec<_> = change.remove.iter().map(|(of, name)| json!({"type": of.type_url(), "name": name})).collect();
    format!("{}\n", json!({"put": put, "remove": remove}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::resources::Of;

    const LONG: Duration = Duration::from_secs(60);

    fn change() -> Change {
        let parameters = Some(&[("env", "prod"), ("v", "1")][..]);
        let put = vec![Item { constraints: Some("env=prod".into()), parameters, ..Item::new(Of::Endpoints, "a", 2) }];
        Change { put, remove: vec![(Of::Cluster, "b".into())] }
    }

    #[test]
    fn a_change_is_a_line() {
        let expected = json!({
            "put": [{
                "type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
                "name": "a",
                "resource": {
                    "@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
                    "cluster_name": "a",
                    "policy": {"overprovisioning_factor": 2},
                },
                "value": "CgFhIgQaAggC",
                "constraints": "env=prod",
                "parameters": {"env": "prod", "v": "1"},
            }],
            "remove": [{"type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "b"}],
        });
        let line = line(&change());
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);
        assert_eq!(line.find('\n'), Some(line.len() - 1));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn what_a_process_answers_is_what_became_of_the_change() {
        let script = tempfile::NamedTempFile::new().unwrap();
        let answers = [
            r#"{"ok":true}"#,
            r#"{"unsupported":"no"}"#,
            r#"{"error":"lost"}"#,
            "{}",
            "[true,null,null]",
            r#"{"ok":true}"#,
        ];
        let text: String = answers.iter().map(|answer| format!("read line; echo '{answer}'\n")).collect();
        std::fs::write(script.path(), text).unwrap();
        let mut lines = Lines::run(&format!("sh {}", script.path().display())).unwrap();
        let mut seen = Vec::new();
        for _ in answers {
            seen.push(lines.change(&change(), LONG).await);
        }
        let broken = |why: &str| Err(Failure::Broken(why.into()));
        assert_eq!(seen[..3], [Ok(()), Err(Failure::Unsupported("no".into())), broken("lost")]);
        assert_eq!(seen[3], broken("it answered neither ok nor why not"));
        assert!(matches!(&seen[4], Err(Failure::Broken(why)) if why.contains("not to be understood")), "{seen:?}");
        assert_eq!(seen[5], seen[4], "nobody knows what further answers are for");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_process_that_is_gone_is_said_to_be() {
        let mut lines = Lines::run("true").unwrap();
        assert!(matches!(lines.change(&change(), LONG).await, Err(Failure::Broken(_))));
        assert!(Lines::run("/no/such/program").is_err());
    }
}
