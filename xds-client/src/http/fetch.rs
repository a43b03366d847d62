//! One question and its answer: a connection, a request, what comes.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::answer::{self, Expected};
use super::place::Target;
use super::reading::{Answer, Stamp};
use crate::files::Decode;
#[cfg(feature = "rustls-any")]
use crate::tls::Tls;
#[cfg(feature = "rustls-any")]
use crate::upstream::LastWords;
use crate::upstream::chain;

/// A document with more is not configuration.
const MAX_BYTES: usize = 64 << 20;
/// So long may a head be, and so many lines it may have.
const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 100;
const AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
/// What `Decode` may be able to read.
const ACCEPT: &str = "application/x-protobuf, application/json;q=0.9, application/yaml;q=0.9, */*;q=0.1";
#[cfg(feature = "rustls-any")]
const ALPN: &[u8] = b"http/1.1";

/// How servers are asked, and what reads what they say.
#[derive(Clone)]
pub(super) struct Fetch {
    decode: Arc<dyn Decode>,
    /// For an answer, and all that it takes to get it.
    pub(super) patience: Duration,
    #[cfg(feature = "rustls-any")]
    pub(super) tls: Tls,
}

/// What came, whole, and not read yet.
struct Content {
    expected: Expected,
    bytes: Bytes,
}

impl Fetch {
    pub(super) fn by(decode: Arc<dyn Decode>, patience: Duration) -> Self {
        #[cfg(feature = "rustls-any")]
        let tls = Tls::default();
        Self {
            decode,
            patience,
            #[cfg(feature = "rustls-any")]
            tls,
        }
    }

    /// Asks once, for what is not the content that we have.
    pub(super) async fn ask(&self, target: &Target, stamp: &Stamp) -> Answer {
        match tokio::time::timeout(self.patience, self.fetch(target, stamp)).await {
            Ok(Ok(content)) => self.read(target, content).await,
            Ok(Err(answer)) => answer,
            Err(_) => failed(format!("it has not answered within {:?}", self.patience)),
        }
    }

    async fn fetch(&self, target: &Target, stamp: &Stamp) -> Result<Content, Answer> {
        let io = TcpStream::connect((target.host(), target.port())).await.map_err(|error| failed(error.to_string()))?;
        #[cfg(feature = "rustls-any")]
        if target.is_secure {
            let io = self.secured(target, io).await.map_err(failed)?;
            return exchange(LastWords::new(io), target, stamp).await;
        }
        exchange(io, target, stamp).await
    }

    #[cfg(feature = "rustls-any")]
    async fn secured(
        &self,
        target: &Target,
        io: TcpStream,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, String> {
        let (tls, name) = (self.tls.clone(), self.tls.name_of(&target.uri).map_err(|error| error.to_string())?);
        // Files may be on a disk that does not answer.
        let config = tokio::task::spawn_blocking(move || tls.config_for(ALPN)).await;
        let config = config.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let secured = tokio_rustls::TlsConnector::from(config).connect(name, io).await;
        secured.map_err(|error| format!("there is no TLS with it: {error}"))
    }

    /// What is large takes its time, and others are waiting. Who panics is the program.
    async fn read(&self, target: &Target, content: Content) -> Answer {
        let Content { expected: Expected { stamp, ending, .. }, bytes } = content;
        let held = match ending {
            Ok(ending) => {
                let is_named = target.file.rsplit_once('.').is_some_and(|(_, named)| named == ending);
                let file = if is_named { target.file.clone() } else { format!("{}.{ending}", target.file) };
                let decode = self.decode.clone();
                let decoded = tokio::task::spawn_blocking(move || decode.decode(file.as_ref(), &bytes)).await;
                decoded.unwrap_or_else(|_| Err("what reads it failed (it panicked)".to_owned()))
            }
            Err(reason) => Err(reason),
        };
        Answer::Content { held: held.map_err(|reason| format!("{}: {reason}", target.locator)), stamp }
    }
}

/// Asks over a connection, which ends with the answer.
async fn exchange<I>(io: I, target: &Target, stamp: &Stamp) -> Result<Content, Answer>
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let request = request(target, stamp).map_err(failed)?;
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
    let (mut sender, connection) = builder.handshake(TokioIo::new(io)).await.map_err(|error| broken(&error))?;
    let asked = async {
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        whole(response, &target.file).await
    };
    let (mut connection, mut asked) = (pin!(connection), pin!(asked));
    let mut is_over = false;
    poll_fn(|context| {
        // What is wrong with the connection, who asked is told as well.
        is_over = is_over || connection.as_mut().poll(context).is_ready();
        asked.as_mut().poll(context)
    })
    .await
}

fn request(target: &Target, stamp: &Stamp) -> Result<Request<String>, String> {
    let mut request = Request::get(target.path.as_str())
        .header(header::HOST, target.authority.as_str())
        .header(header::USER_AGENT, AGENT)
        .header(header::ACCEPT, ACCEPT)
        .header(header::ACCEPT_ENCODING, "identity")
        .header(header::CONNECTION, "close");
    // With both, the time would not count (RFC 9110, 13.1.3).
    if let Some(etag) = &stamp.etag {
        request = request.header(header::IF_NONE_MATCH, etag);
    } else if let Some(modified) = &stamp.modified {
        request = request.header(header::IF_MODIFIED_SINCE, modified);
    }
    request.body(String::new()).map_err(|error| error.to_string())
}

/// All that there is of an answer.
async fn whole(response: Response<Incoming>, file: &str) -> Result<Content, Answer> {
    let (head, mut body) = response.into_parts();
    let expected = answer::read(&head, file)?;
    let too_long = || failed(format!("it has more than {MAX_BYTES} bytes"));
    if expected.length.is_some_and(|length| length > MAX_BYTES as u64) {
        return Err(too_long());
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| broken(&error))?;
        let Some(data) = frame.data_ref() else { continue };
        if bytes.len() + data.len() > MAX_BYTES {
            return Err(too_long());
        }
        bytes.extend_from_slice(data);
    }
    Ok(Content { expected, bytes: bytes.freeze() })
}

fn broken(error: &hyper::Error) -> Answer {
    failed(format!("it broke off: {}", chain(error)))
}

fn failed(reason: String) -> Answer {
    Answer::Failed { reason, wait: None }
}
