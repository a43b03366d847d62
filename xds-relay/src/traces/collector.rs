//! Connections to a collector: by gRPC's own way in clear text, and by the relay's where there is TLS.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::rt::TokioIo;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithTonicConfig as _};
use tonic::transport::Endpoint;
use tower_service::Service;
use xdstp_client::tls::Tls;

use crate::causes::with_causes;
use crate::config;
use crate::dialed::{Io, connect};
use crate::error::Error;
use crate::tls;

/// Tells a collector. Nobody is connected with before there is something to tell.
///
/// # Errors
/// An address that there can be no collector at, or a file that is not good.
pub(super) fn exporter(config: &config::Traces) -> Result<SpanExporter, Error> {
    let refused = |reason: String| Error::Field { field: "traces.otlp".to_owned(), reason };
    let builder = SpanExporter::builder().with_tonic().with_endpoint(&config.otlp);
    let builder = match tls(config)? {
        None => builder,
        Some(tls) => {
            let endpoint = Endpoint::from_shared(config.otlp.clone()).map_err(|error| refused(with_causes(&error)))?;
            builder.with_channel(endpoint.connect_with_connector_lazy(Securely(Arc::new(tls))))
        }
    };
    builder.build().map_err(|error| refused(with_causes(&error)))
}

/// What a collector is connected to with.
///
/// # Errors
/// A file is not good.
pub(super) fn tls(config: &config::Traces) -> Result<Option<Tls>, Error> {
    config.tls.as_ref().map(|files| tls::towards(files, "traces.tls")).transpose()
}

#[derive(Clone)]
struct Securely(Arc<Tls>);

impl Service<Uri> for Securely {
    type Response = TokioIo<Box<dyn Io>>;
    type Error = String;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, String>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), String>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let tls = self.0.clone();
        Box::pin(async move { connect(&uri, Some(&tls), b"h2").await.map(TokioIo::new) })
    }
}
