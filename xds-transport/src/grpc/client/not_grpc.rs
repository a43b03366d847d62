//! Answers that are no gRPC: a web server's, or those of a proxy that has no origin.

use http::{HeaderMap, Response, StatusCode, header};
use tonic::{Code, Status};

/// How much of what the peer calls its content is told, in characters.
const MAX_TYPE: usize = 80;

/// A stream was answered by somebody who does not speak gRPC. It is the source of the [`Status`] that the stream ends with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is no gRPC: HTTP status {status}, content type {content_type}")]
#[non_exhaustive]
pub struct NotGrpc {
    /// What it was answered with.
    pub status: StatusCode,
    /// What came with it, as text that can be shown; `none` if the answer does not say.
    pub content_type: String,
}

impl NotGrpc {
    /// What is wrong with an answer, if it is no gRPC.
    pub(super) fn of<B>(answer: &Response<B>) -> Option<Self> {
        let headers = answer.headers();
        let is_grpc = answer.status() == StatusCode::OK && has_grpc_content(headers);
        // Who says a status of gRPC speaks it, whatever else is said.
        if is_grpc || headers.contains_key(Status::GRPC_STATUS) {
            return None;
        }
        let said = headers.get(header::CONTENT_TYPE).map(|said| String::from_utf8_lossy(said.as_bytes()));
        let content_type = match said {
            Some(said) => format!("`{}`", said.chars().take(MAX_TYPE).flat_map(char::escape_debug).collect::<String>()),
            None => "none".to_owned(),
        };
        Some(Self { status: answer.status(), content_type })
    }

    pub(super) fn into_status(self) -> Status {
        let mut status = Status::new(self.code(), self.to_string());
        status.set_source(std::sync::Arc::new(self));
        status
    }

    /// gRPC's "HTTP to gRPC Status Code Mapping".
    fn code(&self) -> Code {
        match self.status {
            StatusCode::BAD_REQUEST => Code::Internal,
            StatusCode::UNAUTHORIZED => Code::Unauthenticated,
            StatusCode::FORBIDDEN => Code::PermissionDenied,
            StatusCode::NOT_FOUND => Code::Unimplemented,
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Code::Unavailable,
            _ => Code::Unknown,
        }
    }
}

/// `application/grpc`, with or without a format (`+proto`) and parameters; `application/grpc-web` is something else.
fn has_grpc_content(headers: &HeaderMap) -> bool {
    const GRPC: &str = "application/grpc";
    let said = headers.get(header::CONTENT_TYPE).and_then(|said| said.to_str().ok());
    let Some((start, rest)) = said.and_then(|said| said.split_at_checked(GRPC.len())) else { return false };
    start.eq_ignore_ascii_case(GRPC) && (rest.is_empty() || rest.starts_with(['+', ';', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(status: u16, headers: &[(&str, &str)]) -> Option<Code> {
        let answer = Response::builder().status(status);
        let answer = headers.iter().fold(answer, |answer, (name, value)| answer.header(*name, *value));
        NotGrpc::of(&answer.body(()).unwrap()).map(|wrong| wrong.into_status().code())
    }

    #[test]
    fn an_answer_that_is_no_grpc_has_the_code_that_grpc_gives_its_http_status() {
        for (status, expected) in [
            (400, Code::Internal),
            (401, Code::Unauthenticated),
            (403, Code::PermissionDenied),
            (404, Code::Unimplemented),
            (429, Code::Unavailable),
            (502, Code::Unavailable),
            (503, Code::Unavailable),
            (504, Code::Unavailable),
            (500, Code::Unknown),
            (302, Code::Unknown),
            (204, Code::Unknown),
        ] {
            for content_type in ["application/grpc", "text/html"] {
                assert_eq!(code(status, &[("content-type", content_type)]), Some(expected), "{status}");
            }
            let told = [("content-type", "application/grpc"), ("grpc-status", "16")];
            assert_eq!(code(status, &told), None, "the status of gRPC counts");
        }
    }

    #[test]
    fn grpc_is_known_by_its_content_type() {
        for grpc in
            ["application/grpc", "application/grpc+proto", "Application/gRPC;charset=utf-8", "application/grpc ;a"]
        {
            assert_eq!(code(200, &[("content-type", grpc)]), None, "{grpc}");
        }
        for other in
            ["text/html", "application/grpc-web", "application/grpcx", "application/json", "", "application/grp"]
        {
            assert_eq!(code(200, &[("content-type", other)]), Some(Code::Unknown), "{other}");
        }
        assert_eq!(code(200, &[]), Some(Code::Unknown));
    }

    #[test]
    fn the_words_name_the_status_and_are_safe_to_show() {
        let answer = |content_type: &[u8]| {
            let answer = Response::builder().status(404).header("content-type", content_type).body(()).unwrap();
            NotGrpc::of(&answer).unwrap().to_string()
        };
        let words = "the answer is no gRPC: HTTP status 404 Not Found, content type";
        assert_eq!(answer(b"text/html"), format!("{words} `text/html`"));
        assert_eq!(answer(b"\xff\t"), format!("{words} `\u{fffd}\\t`"));
        assert_eq!(answer(&[b'x'; 1000]), format!("{words} `{}`", "x".repeat(80)));
    }
}
