//! How the scripted API server answers: one request on each connection.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use super::cluster::{Cluster, Fault, Kind, State, expired, status, version};

const BOOKMARKED: Duration = Duration::from_secs(60);

pub(super) fn kind(target: &str) -> Kind {
    match (target.contains("watch=true"), target.contains("continue=")) {
        (true, _) => Kind::Watch,
        (_, true) => Kind::More,
        _ => Kind::List,
    }
}

/// Nobody minds that who asked is gone.
pub(super) async fn serve(cluster: Cluster, io: impl AsyncRead + AsyncWrite + Unpin) {
    let _ = answer(&cluster, io).await;
}

async fn answer<I: AsyncRead + AsyncWrite + Unpin>(cluster: &Cluster, mut io: I) -> std::io::Result<()> {
    let (target, token) = request(&mut io).await?;
    let (kind, target) = (kind(&target), unescaped(&target));
    let fault = {
        let state = &mut *cluster.state();
        state.requests.push((target.clone(), token));
        state.faults.get_mut(&kind).and_then(std::collections::VecDeque::pop_front)
    };
    let mut out = Out { io, left: None, drip: cluster.state().drip };
    let forbidden = cluster.state().forbidden;
    if forbidden == Some(&*place(&target).0) {
        return out.whole(403, "", &status(403, "Forbidden", "it is forbidden")).await;
    }
    match fault {
        Some(Fault::Status(code, text, head)) => return out.whole(code, head, &text).await,
        Some(Fault::Says(text)) => {
            out.begin().await?;
            out.chunk(text.as_bytes()).await?;
            return out.end().await;
        }
        Some(Fault::Silence) => std::future::pending().await,
        Some(Fault::Cut(bytes)) => out.left = Some(bytes),
        Some(Fault::Stall) => {
            out.begin().await?;
            std::future::pending::<()>().await;
        }
        None => {}
    }
    match kind {
        Kind::Watch => watch(cluster, &target, out).await,
        Kind::List | Kind::More => {
            let (code, text) = list(&mut cluster.state(), &target);
            match code {
                200 => {
                    out.begin().await?;
                    out.chunk(text.as_bytes()).await?;
                    out.end().await
                }
                code => out.whole(code, "", &text).await,
            }
        }
    }
}

/// The target, and what is said of who asks.
async fn request(io: &mut (impl AsyncRead + Unpin)) -> std::io::Result<(String, Option<String>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    let token = head.lines().find_map(|line| line.strip_prefix("authorization: ")).map(str::to_owned);
    Ok((head.split(' ').nth(1).unwrap().to_owned(), token))
}

fn unescaped(target: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = target.bytes();
    while let Some(byte) = rest.next() {
        let hex = |rest: &mut std::str::Bytes<'_>| Some([rest.next()?, rest.next()?]);
        match byte {
            b'%' => bytes.push(u8::from_str_radix(std::str::from_utf8(&hex(&mut rest).unwrap()).unwrap(), 16).unwrap()),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn parameter<'a>(target: &'a str, name: &str) -> Option<&'a str> {
    let query = target.split_once('?').unwrap().1;
    // A version has the characters of a query, and stands in one.
    let (_, value) = query.split_once(&format!("{name}="))?;
    value.split('&').next()
}

/// Which objects are asked for: their plural, and their namespace.
fn place(target: &str) -> (String, Option<String>) {
    let parts: Vec<_> = target.split('?').next().unwrap().split('/').collect();
    let namespace = parts.iter().position(|part| *part == "namespaces").map(|at| parts[at + 1].to_owned());
    ((*parts.last().unwrap()).to_owned(), namespace)
}

fn list(state: &mut State, target: &str) -> (u16, String) {
    let (plural, namespace) = place(target);
    let named = if plural == "configmaps" { "ConfigMapList" } else { "XdsResourceList" };
    let asked = parameter(target, "limit").unwrap().parse::<usize>().unwrap();
    let limit = state.page.unwrap_or(asked).min(asked);
    let (at, from) = match parameter(target, "continue") {
        None => (version(state.events.len()), 0),
        Some(more) => {
            let (at, from) = more.rsplit_once('@').unwrap();
            (at.to_owned(), from.parse().unwrap())
        }
    };
    if from == 0 {
        let is_asked =
            |key: &(String, String, String)| key.0 == plural && namespace.as_ref().is_none_or(|own| *own == key.1);
        let objects = state.objects.iter().filter(|(key, _)| is_asked(key)).map(|(_, object)| object.clone());
        let all = objects.collect();
        state.lists.insert(format!("{at}{plural}"), (state.events.len(), all));
    }
    let Some((_, all)) = state.lists.get(&format!("{at}{plural}")) else {
        return (410, status(410, "Expired", "The provided continue parameter is too old"));
    };
    let items: Vec<_> = all.iter().skip(from).take(limit).cloned().collect();
    let to = from + items.len();
    let more = if to < all.len() { format!("{at}@{to}") } else { String::new() };
    let metadata = json!({ "resourceVersion": at, "continue": more });
    (200, json!({ "kind": named, "apiVersion": "v1", "metadata": metadata, "items": items }).to_string())
}

async fn watch<I: AsyncWrite + Unpin>(cluster: &Cluster, target: &str, mut out: Out<I>) -> std::io::Result<()> {
    let (plural, namespace) = place(target);
    let since = parameter(target, "resourceVersion").unwrap().to_owned();
    let until = Instant::now() + Duration::from_secs(parameter(target, "timeoutSeconds").unwrap().parse().unwrap());
    let (mut at, cuts) = {
        let state = cluster.state();
        let known = (state.compacted..=state.events.len()).find(|at| version(*at) == since);
        (known, state.cuts)
    };
    out.begin().await?;
    if at.is_none() {
        out.chunk(expired().as_bytes()).await?;
        return out.end().await;
    }
    let mut bookmark = Instant::now() + BOOKMARKED;
    while Instant::now() < until {
        let changed = cluster.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let (lines, cut) = news(&cluster.state(), &mut at, (&plural, namespace.as_deref()), cuts);
        if cut {
            // Within a line.
            let half = lines.len() / 2;
            return out.part(&lines.as_bytes()[..half]).await;
        }
        if !lines.is_empty() {
            out.chunk(lines.as_bytes()).await?;
        }
        if timeout_at(bookmark.min(until), changed).await.is_err() && Instant::now() < until {
            let metadata = json!({ "resourceVersion": version(at.unwrap()), "creationTimestamp": null });
            let object = json!({ "kind": if plural == "configmaps" { "ConfigMap" } else { "XdsResource" }, "metadata": metadata });
            out.chunk(format!("{}\n", json!({ "type": "BOOKMARK", "object": object })).as_bytes()).await?;
            bookmark = Instant::now() + BOOKMARKED;
        }
    }
    out.end().await
}

/// The lines of what was done since, and whether the connection is cut.
fn news(
    state: &State,
    at: &mut Option<usize>,
    (plural, namespace): (&str, Option<&str>),
    cuts: usize,
) -> (String, bool) {
    let from = at.unwrap();
    let is_asked = |object: &Value| namespace.is_none_or(|own| object["object"]["metadata"]["namespace"] == own);
    let events = state.events[from..].iter().filter(|(of, event)| of == plural && is_asked(event));
    *at = Some(state.events.len());
    (events.map(|(_, event)| format!("{event}\n")).collect(), state.cuts > cuts)
}

/// An answer in chunks.
struct Out<I> {
    io: I,
    /// How many bytes of it there are.
    left: Option<usize>,
    drip: Option<usize>,
}

impl<I: AsyncWrite + Unpin> Out<I> {
    async fn whole(&mut self, code: u16, head: &str, text: &str) -> std::io::Result<()> {
        let length = text.len();
        let answer = format!("HTTP/1.1 {code} Said\r\n{head}Content-Length: {length}\r\n\r\n{text}");
        self.io.write_all(answer.as_bytes()).await
    }

    async fn begin(&mut self) -> std::io::Result<()> {
        self.io
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            .await
    }

    async fn chunk(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let taken = self.left.unwrap_or(bytes.len()).min(bytes.len());
        for part in bytes[..taken].chunks(self.drip.unwrap_or(bytes.len()).max(1)) {
            self.part(part).await?;
        }
        match &mut self.left {
            Some(left) if *left <= bytes.len() => Err(std::io::ErrorKind::ConnectionReset.into()),
            Some(left) => {
                *left -= bytes.len();
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn part(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.io.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
        self.io.write_all(bytes).await?;
        self.io.write_all(b"\r\n").await
    }

    async fn end(&mut self) -> std::io::Result<()> {
        self.io.write_all(b"0\r\n\r\n").await
    }
}
