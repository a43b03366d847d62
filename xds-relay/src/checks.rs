//! Asking whether all is well with what is released: `halt.check` of a rollout, by HTTP.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Request, StatusCode, Uri, header};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::causes::with_causes;
use crate::relay_core::{Checked, RelayCore};

/// How often, and how long an answer may take.
const OFTEN: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks over and over of every candidate that is on its way, for as long as it is awaited.
pub(crate) async fn follow(core: &Arc<RelayCore>) {
    loop {
        for (at, release, uri) in core.checks() {
            let checked = match timeout(PATIENCE, ask(&uri)).await {
                Ok(checked) => checked,
                Err(_) => Checked::Nothing(format!("{uri} has said nothing for {PATIENCE:?}")),
            };
            core.is_checked(at, release, checked, Instant::now());
        }
        sleep(OFTEN).await;
    }
}

async fn ask(uri: &Uri) -> Checked {
    match status(uri).await {
        Ok(StatusCode::OK) => Checked::Well,
        Ok(status) => Checked::NotWell(format!("{uri} says {status}")),
        Err(reason) => Checked::Nothing(format!("{uri}: {reason}")),
    }
}

async fn status(uri: &Uri) -> Result<StatusCode, String> {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let io = TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(|error| with_causes(&error))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let request = Request::get(path).header(header::HOST, authority).header(header::CONNECTION, "close");
    let request = request.body(Body::empty()).map_err(|error| error.to_string())?;
    let mut answer = pin!(sender.send_request(request));
    let answer = tokio::select! {
        biased;
        answer = &mut answer => answer,
        // The answer may have come with the end.
        _ = connection => answer.await,
    };
    // What is in it is not read.
    answer.map(|answer| answer.status()).map_err(|error| with_causes(&error))
}
