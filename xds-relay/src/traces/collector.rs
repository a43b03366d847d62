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
            let uri: Uri = config.otlp.parse().map_err(|error| refused(with_causes(&error)))?;
            let endpoint = endpoint(&uri).map_err(|error| refused(with_causes(&error)))?;
            builder.with_channel(endpoint.connect_with_connector_lazy(Securely { uri, tls: Arc::new(tls) }))
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

/// What gRPC goes by for a collector at `https`. A program may have TLS compiled into gRPC, which refuses to connect there by any other: it is
/// told of no TLS, and says in its requests where they go.
fn endpoint(collector: &Uri) -> Result<Endpoint, http::Error> {
    let authority = collector.authority().map_or("", |authority| authority.as_str());
    let in_clear = Uri::builder().scheme("http").authority(authority).path_and_query("/").build()?;
    Ok(Endpoint::from(in_clear).origin(collector.clone()))
}

/// Connects to a collector, whatever it is told.
#[derive(Clone)]
struct Securely {
    uri: Uri,
    tls: Arc<Tls>,
}

impl Service<Uri> for Securely {
    type Response = TokioIo<Box<dyn Io>>;
    type Error = String;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, String>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), String>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { uri, tls } = self.clone();
        Box::pin(async move { connect(&uri, Some(&tls), b"h2").await.map(TokioIo::new) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_is_told_of_no_tls_that_is_not_its_own() {
        for collector in ["https://collector.example", "https://[::1]:4317"] {
            let endpoint = endpoint(&collector.parse().unwrap()).unwrap();
            let authority = collector.trim_start_matches("https://");
            assert_eq!(endpoint.uri().to_string(), format!("http://{authority}/"));
        }
    }
}
