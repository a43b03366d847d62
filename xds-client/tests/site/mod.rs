//! A server of HTTP/1.1 that plays a script: an answer for each connection.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// What comes of a question.
#[derive(Clone)]
pub(crate) enum Play {
    /// These bytes, and the end of the connection.
    Raw(Vec<u8>),
    /// These bytes, and nothing more.
    Hang(&'static [u8]),
    /// The end of the connection.
    HangUp,
}

impl Play {
    pub(crate) fn raw(bytes: &[u8]) -> Self {
        Self::Raw(bytes.to_vec())
    }

    /// An answer with its length.
    pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        // What has not changed has no body.
        let length = match status.starts_with("304") {
            true => String::new(),
            false => format!("content-length: {}\r\n", body.len()),
        };
        Self::Raw([format!("HTTP/1.1 {status}\r\n{lines}{length}\r\n").as_bytes(), body].concat())
    }
}

/// The head of a request.
#[derive(Clone, Debug)]
pub(crate) struct Head(String);

impl Head {
    pub(crate) fn line(&self) -> &str {
        self.0.lines().next().unwrap()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let field = |line: &str| line.split_once(": ").is_some_and(|(field, _)| field.eq_ignore_ascii_case(name));
        self.0.lines().find(|line| field(line)).and_then(|line| line.split_once(": ")).map(|(_, value)| value)
    }
}

/// When the script is over, whoever asks is hung up on.
pub(crate) struct Site {
    address: SocketAddr,
    is_secure: bool,
    asked: Arc<Mutex<Vec<Head>>>,
    task: AbortHandle,
}

impl Site {
    pub(crate) async fn play(plays: impl IntoIterator<Item = Play>) -> Self {
        Self::serve(plays, None).await
    }

    pub(crate) async fn serve(plays: impl IntoIterator<Item = Play>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, asked, is_secure) =
            (listener.local_addr().unwrap(), Arc::<Mutex<Vec<_>>>::default(), tls.is_some());
        let (mut plays, heard) = (plays.into_iter().collect::<VecDeque<_>>(), asked.clone());
        let task = tokio::spawn(async move {
            // Those that are hung on to.
            let mut open = Vec::new();
            while let Ok((io, _)) = listener.accept().await {
                match &tls {
                    None => open.extend(converse(io, &mut plays, &heard).await),
                    Some(tls) => {
                        // Who does not trust us hangs up.
                        if let Ok(io) = tls.accept(io).await {
                            converse(io, &mut plays, &heard).await;
                        }
                    }
                }
            }
        });
        Self { address, is_secure, asked, task: task.abort_handle() }
    }

    /// As locators have it.
    pub(crate) fn address(&self) -> String {
        match self.is_secure {
            true => format!("localhost:{}", self.address.port()),
            false => self.address.to_string(),
        }
    }

    /// As programs name it.
    pub(crate) fn server(&self) -> String {
        format!("{}://{}", if self.is_secure { "https" } else { "http" }, self.address())
    }

    /// What it was asked.
    pub(crate) fn asked(&self) -> Vec<Head> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn converse<I: AsyncRead + AsyncWrite + Unpin>(
    mut io: I,
    plays: &mut VecDeque<Play>,
    asked: &Mutex<Vec<Head>>,
) -> Option<I> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await.ok()?);
    }
    asked.lock().unwrap().push(Head(String::from_utf8(head).unwrap()));
    let bytes = match plays.pop_front().unwrap_or(Play::HangUp) {
        Play::Raw(bytes) => bytes,
        Play::Hang(bytes) => {
            io.write_all(bytes).await.ok()?;
            io.flush().await.ok()?;
            return Some(io);
        }
        Play::HangUp => return None,
    };
    // Who was told enough may be gone.
    _ = io.write_all(&bytes).await;
    _ = io.shutdown().await;
    None
}
