//! Questions to the API server, by HTTP/1.1.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderValue, Request, StatusCode, header};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::time::timeout;

use super::answer::Answer;
use super::dial::Dial;
use super::failure::Failure;
use crate::causes::with_causes;
use crate::keyed_origin::shown;
use crate::text_file;

/// How long it may take until an answer begins.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much is read of why there is none.
const REASON: usize = 64 << 10;

/// An API server, and who the relay is to it.
pub(super) struct Api {
    dial: Arc<dyn Dial>,
    /// As it is called in requests.
    host: String,
    /// A file with nothing but a token, which is read for each request: it is replaced from time to time.
    token: Option<PathBuf>,
}

/// What Kubernetes says in place of what was asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    message: String,
    pub(super) reason: String,
    code: u16,
    details: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u64>,
}

impl Api {
    pub(super) fn new(dial: Arc<dyn Dial>, host: String, token: Option<PathBuf>) -> Self {
        Self { dial, host, token }
    }

    /// The answer to a GET, if it is the one that was asked for.
    pub(super) async fn ask(&self, path: &str) -> Result<Answer, Failure> {
        let answered = timeout(PATIENCE, self.answer(path)).await;
        answered.map_err(|_| Failure::Silent(PATIENCE))?
    }

    async fn answer(&self, path: &str) -> Result<Answer, Failure> {
        let request = self.request(path)?;
        let io = self.dial.dial().await.map_err(Failure::Unreached)?;
        let unreached = |error: hyper::Error| Failure::Unreached(with_causes(&error));
        let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(unreached)?;
        let connection = tokio::spawn(async move { drop(connection.await) });
        // It ends with the answer.
        let connection = super::answer::Connection(connection);
        let answer = sender.send_request(request).await.map_err(unreached)?;
        let (head, body) = answer.into_parts();
        let answer = Answer::new(body, connection);
        if head.status == StatusCode::OK {
            return Ok(answer);
        }
        let said = head.headers.get(header::RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
        let words = answer.whole(REASON).await.unwrap_or_default();
        Err(refusal(head.status, &words, said.map(Duration::from_secs)))
    }

    fn request(&self, path: &str) -> Result<Request<Body>, Failure> {
        let request = Request::get(path).header(header::HOST, &self.host).header(header::CONNECTION, "close");
        let request = request.header(header::ACCEPT, "application/json");
        let request = match &self.token {
            Some(file) => request.header(header::AUTHORIZATION, bearer(file)?),
            None => request,
        };
        request.body(Body::empty()).map_err(|error| Failure::Unreached(error.to_string()))
    }
}

impl Status {
    /// The same, where it comes in place of an event.
    pub(super) fn failure(self) -> Failure {
        let status = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.of(status, None)
    }

    fn of(self, status: StatusCode, after: Option<Duration>) -> Failure {
        if status == StatusCode::GONE || matches!(self.reason.as_str(), "Expired" | "Gone") {
            return Failure::Gone;
        }
        let after = after.or(self.details.retry_after_seconds.map(Duration::from_secs));
        Failure::Refused { status, message: shown(&self.message), after }
    }
}

fn refusal(status: StatusCode, words: &[u8], after: Option<Duration>) -> Failure {
    let said = serde_json::from_slice::<Status>(words).ok().filter(|status| !status.message.is_empty());
    let said = said
        .unwrap_or_else(|| Status { message: String::from_utf8_lossy(words).trim().to_owned(), ..Status::default() });
    said.of(status, after)
}

/// What is wrong says nothing of what is in the file.
fn bearer(file: &Path) -> Result<HeaderValue, Failure> {
    let unread = |reason: &str| Failure::Unreached(format!("{}: {reason}", file.display()));
    let bytes = text_file::bytes(file).map_err(|error| unread(&error.to_string()))?;
    let token = bytes.trim_ascii();
    let value = HeaderValue::from_bytes(&[b"Bearer ", token].concat());
    match value {
        Ok(mut value) if !token.is_empty() => {
            value.set_sensitive(true);
            Ok(value)
        }
        _ => Err(unread("no token; expected one, and nothing else")),
    }
}
