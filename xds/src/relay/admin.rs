//! What the admin pages of a relay answer: one request, one connection.

mod address;
mod connection;

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) use self::address::Address;
use self::connection::{Tls, exchange};
use crate::ask::Secure;

/// How a server of TLS answers who speaks clear text: an alert.
const ALERT: &[u8] = &[0x15, 0x03];

#[derive(Clone, Copy, Debug)]
pub(super) struct Admin<'a> {
    pub(super) address: &'a Address,
    pub(super) secure: &'a Secure,
    pub(super) timeout: Duration,
    pub(super) token: Option<&'a Token>,
}

/// What who asks carries: the first line of a file that has something.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token(String);

/// Why nothing is known.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no such thing.
    Absent(String),
    /// What was ordered is not done.
    NotDone(String),
    /// Nobody is asked like this.
    Usage(String),
    /// Nobody answers.
    Unreachable { address: String, error: io::Error },
    /// What answers does not say what it was asked.
    Refused { address: String, words: String },
    /// There is nobody to tell.
    Print(io::Error),
}

/// Of a file.
impl FromStr for Token {
    type Err = String;

    fn from_str(file: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
        let token = text.lines().map(str::trim).find(|line| !line.is_empty()).ok_or("there is no token in it")?;
        let is_token = token.bytes().all(|byte| byte.is_ascii_graphic());
        if is_token { Ok(Self(token.to_owned())) } else { Err("its first line is no token".to_owned()) }
    }
}

/// It is in no message.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(words) | Self::NotDone(words) | Self::Usage(words) => f.write_str(words),
            Self::Unreachable { address, error } => {
                write!(f, "no answer from the relay at {address}: {error}")
            }
            Self::Refused { address, words } => write!(f, "what is at {address} does not answer as a relay: {words}"),
            Self::Print(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Print(error)
    }
}

impl Admin<'_> {
    /// What is at a path, with these as its query.
    pub(super) fn get<T: DeserializeOwned>(self, path: &str, query: &[(&str, Option<&str>)]) -> Result<T, Failure> {
        self.ask(Request { method: "GET", path, query, body: None, mark: None })
    }

    /// What comes of having something done.
    pub(super) fn post<T: DeserializeOwned>(self, path: &str, query: &[(&str, Option<&str>)]) -> Result<T, Failure> {
        self.ask(Request { method: "POST", path, query, body: None, mark: None })
    }

    /// What comes of an order: if nothing was done since a mark, where there is one.
    pub(super) fn order<T: DeserializeOwned>(self, order: &impl Serialize, mark: Option<&str>) -> Result<T, Failure> {
        let body = serde_json::to_string(order).map_err(|error| Failure::NotDone(error.to_string()))?;
        self.ask(Request { method: "POST", path: "orders", query: &[], body: Some(&body), mark })
    }

    fn ask<T: DeserializeOwned>(self, request: Request<'_>) -> Result<T, Failure> {
        let unreachable = |error| Failure::Unreachable { address: self.address.to_string(), error };
        let tls = self.tls()?;
        let answer = exchange(self.address, tls, self.timeout, &request.text(self.token)).map_err(unreachable)?;
        let refused = |words: String| Failure::Refused { address: self.address.to_string(), words };
        let (status, body) = parted(&answer).ok_or_else(|| refused(no_http(&answer).to_owned()))?;
        match status {
            200 => serde_json::from_slice(body).map_err(|error| refused(error.to_string())),
            // A page is no answer to an order.
            400 | 404 | 409 | 412 | 413 | 415 | 422 | 503 if request.body.is_some() && !body.starts_with(b"<") => {
                Err(Failure::NotDone(String::from_utf8_lossy(body).trim_end().to_owned()))
            }
            401 => {
                let (is, flag) =
                    if request.body.is_some() { ("an order", "--orders-token") } else { ("it", "--token") };
                let what = if self.token.is_some() { "another token than that of" } else { "a token" };
                Err(refused(format!("HTTP 401: {is} wants {what} {flag} FILE")))
            }
            status => {
                let words = String::from_utf8_lossy(body.get(..body.len().min(200)).unwrap_or_default());
                Err(refused(format!("HTTP {status}: {}", words.trim_end())))
            }
        }
    }

    /// What it answered, in what it is.
    pub(super) fn read<T: DeserializeOwned>(self, told: serde_json::Value) -> Result<T, Failure> {
        serde_json::from_value(told)
            .map_err(|error| Failure::Refused { address: self.address.to_string(), words: error.to_string() })
    }

    /// The same, where it may be that there is no such thing.
    pub(super) fn find<T: DeserializeOwned>(
        self,
        path: &str,
        query: &[(&str, Option<&str>)],
    ) -> Result<Option<T>, Failure> {
        there(self.get(path, query))
    }

    /// A token that is read on its way lets in whoever read it.
    fn tls(self) -> Result<Option<Tls>, Failure> {
        let tls = Tls::with(self.address, self.secure).map_err(Failure::Usage)?;
        if tls.is_none() && self.token.is_some() && self.address.is_elsewhere() {
            let words = format!(
                "a token is not sent in clear text to another machine, as {} may be: expected https://, a loopback address, \
                 or unix:/path",
                self.address
            );
            return Err(Failure::Usage(words));
        }
        Ok(tls)
    }
}

/// What is asked.
struct Request<'a> {
    method: &'a str,
    path: &'a str,
    query: &'a [(&'a str, Option<&'a str>)],
    /// JSON.
    body: Option<&'a str>,
    mark: Option<&'a str>,
}

impl Request<'_> {
    fn text(&self, token: Option<&Token>) -> String {
        let Self { method, path, query, body, mark } = self;
        let token = token.map_or(String::new(), |Token(token)| format!("authorization: Bearer {token}\r\n"));
        let mark = mark.map_or(String::new(), |mark| format!("if-match: \"{mark}\"\r\n"));
        let of_body = body.map_or(String::new(), |body| {
            format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len())
        });
        let head = format!("{method} /api/v1/{path}{} HTTP/1.0", xds_relay::api::query(query));
        format!("{head}\r\naccept: application/json\r\n{token}{mark}{of_body}\r\n{}", body.unwrap_or_default())
    }
}

/// What was asked for, if there is such a thing.
pub(super) fn there<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Err(Failure::Refused { words, .. }) if words.starts_with("HTTP 404: it is not there") => Ok(None),
        found => found.map(Some),
    }
}

/// The same of releases, in the relay's own words for it.
pub(super) fn of_releases<T>(found: Result<T, Failure>) -> Result<T, Failure> {
    found.map_err(|failure| match &failure {
        Failure::Refused { words, .. } => match words.strip_prefix("HTTP 404: ") {
            // A relay that has no such page says so with markup.
            Some(why) if why.starts_with("there ") || why.starts_with("release ") => Failure::Absent(why.to_owned()),
            _ => failure,
        },
        _ => failure,
    })
}

/// The same of an origin that is to be asked.
pub(super) fn of_origin<T>(found: Result<T, Failure>) -> Result<T, Failure> {
    found.map_err(|failure| {
        let Failure::Refused { words, .. } = &failure else { return failure };
        let why = ["HTTP 404: it is not there: ", "HTTP 409: "].iter().find_map(|before| words.strip_prefix(before));
        why.map(str::to_owned).map_or(failure, Failure::Absent)
    })
}

/// What it is that is no HTTP.
fn no_http(answer: &[u8]) -> &'static str {
    if answer.starts_with(ALERT) {
        "it speaks TLS, and was spoken to in clear text: expected https://"
    } else {
        "that is no HTTP"
    }
}

/// Status and body.
fn parted(answer: &[u8]) -> Option<(u16, &[u8])> {
    const END: &[u8] = b"\r\n\r\n";
    let end = answer.windows(END.len()).position(|window| window == END)?;
    let head = std::str::from_utf8(answer.get(..end)?).ok()?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer.get(end + END.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_first_line_of_a_file_and_said_if_there_is_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "\n one \ntwo\n").unwrap();
        let token: Token = file.to_str().unwrap().parse().unwrap();
        std::fs::write(&file, "o ne").unwrap();
        assert!(file.to_str().unwrap().parse::<Token>().is_err());
        assert_eq!(format!("{token:?}"), "a token");
        let plain = Request { method: "GET", path: "x", query: &[], body: None, mark: None };
        for (token, header) in [(Some(&token), "authorization: Bearer one\r\n"), (None, "")] {
            let head = format!("GET /api/v1/x HTTP/1.0\r\naccept: application/json\r\n{header}\r\n");
            assert_eq!(plain.text(token), head);
        }
        let order = Request { method: "POST", body: Some("{}"), mark: Some("7"), ..plain };
        let text = "POST /api/v1/x HTTP/1.0\r\naccept: application/json\r\nif-match: \"7\"\r\n\
                    content-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(order.text(None), text);
    }

    #[test]
    fn an_answer_is_a_status_and_what_is_behind_its_head() {
        assert_eq!(parted(b"HTTP/1.0 404 Not Found\r\na: b\r\n\r\nx\r\n\r\n"), Some((404, &b"x\r\n\r\n"[..])));
        for text in ["", "HTTP/1.1 200 OK\r\n", "SSH-2.0-x\r\n\r\n", "HTTP/1.1 OK\r\n\r\n"] {
            assert_eq!(parted(text.as_bytes()), None, "{text}");
        }
    }
}
