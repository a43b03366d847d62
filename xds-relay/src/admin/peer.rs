//! Who is at the other end of a connection, as far as it shows: that is noted beside whom they say they are.

use std::fmt::Display;
use std::sync::{Arc, OnceLock};

use xds_transport::grpc::server::ClientCertificate;

use crate::socket::Io;

/// What shows. That of TLS does once the connection is secured, which is before the first request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    who: Arc<OnceLock<String>>,
    /// From where.
    from: Option<Arc<str>>,
}

impl Shown {
    /// No more than from where.
    pub(super) fn from(from: &impl Display) -> Self {
        Self { who: Arc::default(), from: Some(from.to_string().into()) }
    }

    /// From where alone: TLS shows who it is.
    pub(super) fn place(&self) -> Self {
        Self { who: Arc::default(), from: self.from.clone() }
    }

    /// The user of a process on this machine.
    #[cfg(unix)]
    fn of_user(user: u32) -> Self {
        let shown = Self::default();
        shown.is(format!("uid {user}"));
        shown
    }

    /// The certificate that was shown.
    pub(crate) fn certificate(&self, chain: &[impl AsRef<[u8]>]) {
        let certificate = ClientCertificate::new(chain.iter().map(|certificate| certificate.as_ref().to_vec()));
        let Some(certificate) = certificate else { return };
        let names = [certificate.uri_names(), certificate.dns_names()];
        let name = names.into_iter().flatten().next().map_or_else(|| certificate.subject(), String::as_str);
        // Who vouches for somebody need not mind what a line of a log is.
        let name: String = name.escape_debug().collect();
        self.is(if name.is_empty() { "a certificate without a name".to_owned() } else { name });
    }

    fn is(&self, who: String) {
        let _ = self.who.set(who);
    }

    /// From where it is, and who, for a line of the log.
    pub(super) fn peer(&self) -> String {
        let parts = [self.from.as_deref(), self.who.get().map(String::as_str)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Who, in words.
    pub(crate) fn words(&self) -> &str {
        self.who.get().map_or("by a token", String::as_str)
    }
}

/// A connection that shows who is at its other end.
pub(crate) trait Peer {
    /// Who.
    fn peer(&self) -> Shown;
}

impl Peer for Io {
    fn peer(&self) -> Shown {
        match self {
            Self::Tcp(io) => io.peer_addr().map(|address| Shown::from(&address)).unwrap_or_default(),
            #[cfg(unix)]
            Self::Unix(io) => io.peer_cred().map(|process| Shown::of_user(process.uid())).unwrap_or_default(),
        }
    }
}
