//! Connections to the API server.

use std::future::Future;
use std::pin::Pin;

use http::Uri;
use xdstp_client::tls::Tls;

pub(super) use crate::dialed::Io;
use crate::dialed::connect;

/// A connection, or why there is none.
pub(super) type Dialing<'a> = Pin<Box<dyn Future<Output = Result<Box<dyn Io>, String>> + Send + 'a>>;

/// Each call makes a connection, or says why there is none.
pub(super) trait Dial: Send + Sync + 'static {
    fn dial(&self) -> Dialing<'_>;
}

/// By TCP, with TLS or without.
pub(super) struct Network {
    pub(super) server: Uri,
    pub(super) tls: Option<Tls>,
}

impl Dial for Network {
    fn dial(&self) -> Dialing<'_> {
        Box::pin(connect(&self.server, self.tls.as_ref(), b"http/1.1"))
    }
}
