//! What the head of an answer says.

use std::time::Duration;

use hyper::header::{
    CONTENT_ENCODING, CONTENT_TYPE, DATE, ETAG, HeaderMap, HeaderName, LAST_MODIFIED, LOCATION, RETRY_AFTER,
};
use hyper::http::response::Parts;
use hyper::{StatusCode, header};

use super::reading::{Answer, Stamp};

/// No server is left alone for longer because it says so.
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// So much of a server's words is told.
const WORDS: usize = 200;

/// What there is to be read behind a head.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) stamp: Stamp,
    /// Its length, unless it comes in chunks.
    pub(super) length: Option<u64>,
    /// Of what kind it is, as names of files end.
    pub(super) ending: Result<&'static str, String>,
}

/// What is expected behind a head for a document whose id ends so.
///
/// # Errors
/// It is an answer without a document.
pub(super) fn read(head: &Parts, file: &str) -> Result<Expected, Answer> {
    let (status, headers) = (head.status, &head.headers);
    let failed = |reason: String| Answer::Failed { reason, wait: wait(headers) };
    match status {
        StatusCode::OK => {}
        StatusCode::NOT_MODIFIED => return Err(Answer::Unchanged),
        StatusCode::NOT_FOUND | StatusCode::GONE => return Err(Answer::Gone),
        _ if status.is_redirection() => {
            let to = text(headers, &LOCATION).unwrap_or("nowhere");
            let to: String = to.chars().take(WORDS).collect();
            return Err(failed(format!(
                "it answered {status}, which leads to {to}: redirects of HTTP are not followed, since whom to ask is not for a \
                 server to say"
            )));
        }
        _ => return Err(failed(format!("it answered {status}"))),
    }
    if let Some(encoding) =
        text(headers, &CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
    {
        let encoding: String = encoding.chars().take(WORDS).collect();
        return Err(failed(format!("it answered with what is packed by {encoding}, unasked")));
    }
    let length = text(headers, &header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
    if length.is_none() && !headers.contains_key(header::TRANSFER_ENCODING) {
        return Err(failed(
            "it does not say how long its answer is, so that nobody knows whether that is all".to_owned(),
        ));
    }
    let stamp = Stamp { etag: headers.get(ETAG).cloned(), modified: headers.get(LAST_MODIFIED).cloned() };
    Ok(Expected { stamp, length, ending: ending(text(headers, &CONTENT_TYPE), file) })
}

/// How the name of a file of this type would end.
fn ending(content_type: Option<&str>, file: &str) -> Result<&'static str, String> {
    let essence = content_type.and_then(|of| of.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
    let named = file
        .rsplit_once('.')
        .and_then(|(_, ending)| ["pb", "json", "yaml", "yml"].into_iter().find(|known| *known == ending));
    match (essence.as_str(), named) {
        ("application/x-protobuf" | "application/protobuf" | "application/vnd.google.protobuf", _) => Ok("pb"),
        ("application/json", _) => Ok("json"),
        ("application/yaml" | "application/x-yaml" | "text/yaml" | "text/x-yaml", _) => Ok("yaml"),
        // They say nothing.
        ("" | "application/octet-stream" | "text/plain", Some(named)) => Ok(named),
        ("application/octet-stream", None) => Ok("pb"),
        ("text/plain", None) => Ok("yaml"),
        ("", None) => Err("nothing says of what type it is; expected a Content-Type".to_owned()),
        (other, _) if other.ends_with("+json") => Ok("json"),
        (other, _) if other.ends_with("+yaml") => Ok("yaml"),
        (other, _) => {
            let other: String = other.chars().take(WORDS).collect();
            Err(format!("it is {other}; expected protobuf, JSON or YAML"))
        }
    }
}

/// How long a server wants to be left alone. That a time of its clock is over is known by its clock, and by no other.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let after = text(headers, &RETRY_AFTER)?.trim();
    let wait = match after.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = |text| httpdate::parse_http_date(text).ok();
            date(after)?.duration_since(date(text(headers, &DATE)?)?).unwrap_or_default()
        }
    };
    Some(wait.min(LONGEST))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use hyper::Response;

    use super::*;

    fn answer(status: u16, headers: &[(&str, &str)]) -> Result<Expected, Answer> {
        let head =
            headers.iter().fold(Response::builder().status(status), |head, (name, value)| head.header(*name, *value));
        read(&head.body(()).unwrap().into_parts().0, "x.yaml")
    }

    fn waits(headers: &[(&str, &str)]) -> Option<u64> {
        match answer(503, headers) {
            Err(Answer::Failed { wait, .. }) => wait.map(|wait| wait.as_secs()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_server_is_left_alone_for_as_long_as_it_says_and_an_hour_at_most() {
        assert_eq!(waits(&[]), None);
        assert_eq!(waits(&[("retry-after", "120")]), Some(120));
        assert_eq!(waits(&[("retry-after", "99999999999")]), Some(3600));
        assert_eq!(waits(&[("retry-after", "-1")]), None);
        let at = |minute: u8| format!("Fri, 27 Nov 2026 10:{minute:02}:00 GMT");
        assert_eq!(waits(&[("retry-after", &at(2))]), None, "nobody knows what time it is there");
        assert_eq!(waits(&[("retry-after", &at(2)), ("date", &at(1))]), Some(60));
        assert_eq!(waits(&[("retry-after", &at(1)), ("date", &at(2))]), Some(0));
    }

    #[test]
    fn what_is_there_is_told_from_what_is_gone_and_both_from_errors() {
        assert!(matches!(answer(304, &[]), Err(Answer::Unchanged)));
        for gone in [404, 410] {
            assert!(matches!(answer(gone, &[]), Err(Answer::Gone)), "{gone}");
        }
        for error in [204, 206, 301, 302, 307, 400, 401, 403, 429, 500, 503] {
            assert!(matches!(answer(error, &[("content-length", "0")]), Err(Answer::Failed { .. })), "{error}");
        }
        assert!(answer(200, &[("content-length", "0")]).is_ok());
        assert!(answer(200, &[("transfer-encoding", "chunked")]).is_ok());
        assert!(matches!(answer(200, &[]), Err(Answer::Failed { reason, .. }) if reason.contains("how long")));
        let packed = [("content-length", "1"), ("content-encoding", "gzip")];
        assert!(matches!(answer(200, &packed), Err(Answer::Failed { reason, .. }) if reason.contains("gzip")));
    }

    #[test]
    fn the_type_says_how_it_is_read_and_the_name_where_that_is_of_none() {
        let of = |content_type: &str, file: &str| ending(Some(content_type).filter(|of| !of.is_empty()), file);
        assert_eq!(of("Application/JSON; charset=utf-8", "x.pb").as_deref(), Ok("json"));
        assert_eq!(of("application/x-protobuf", "x.yaml").as_deref(), Ok("pb"));
        assert_eq!(of("text/plain", "x.json").as_deref(), Ok("json"));
        assert_eq!(of("application/octet-stream", "x").as_deref(), Ok("pb"));
        assert_eq!(of("", "x.yml").as_deref(), Ok("yml"));
        assert!(of("", "x").unwrap_err().contains("Content-Type"));
        assert!(of("text/html", "x.yaml").unwrap_err().contains("text/html"));
    }
}
