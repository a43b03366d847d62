//! Whether the lives of updates are told to a collector, for as long as a relay runs.

#[cfg(feature = "otlp")]
use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::error::Error;
use crate::relay_core::RelayCore;

#[cfg(feature = "otlp")]
mod collector;
#[cfg(feature = "otlp")]
mod spans;
#[cfg(feature = "otlp")]
mod waiting;

/// A collector is told, if the configuration names one.
pub(crate) struct Traces {
    #[cfg(feature = "otlp")]
    spans: Option<Arc<spans::Spans>>,
}

impl Traces {
    /// To be called in a runtime.
    ///
    /// # Errors
    /// An address that there can be no collector at, or a file that is not good.
    #[cfg(feature = "otlp")]
    pub(crate) fn begin(config: &Config, core: &RelayCore) -> Result<Self, Error> {
        let spans = config.traces.as_ref().map(|traces| spans::Spans::new(traces, core.metrics.clone()));
        let spans = spans.transpose()?.map(Arc::new);
        spans.iter().for_each(|spans| core.tell_lives(spans.clone()));
        Ok(Self { spans })
    }

    /// # Errors
    /// There is a collector to be told.
    #[cfg(not(feature = "otlp"))]
    pub(crate) fn begin(config: &Config, _: &RelayCore) -> Result<Self, Error> {
        check(config).map(|()| Self {})
    }

    /// Has what waits told, in so much time at most.
    pub(crate) async fn end(self, within: Duration) {
        #[cfg(feature = "otlp")]
        if let Some(spans) = self.spans {
            // It waits for the collector.
            let _ = tokio::task::spawn_blocking(move || spans.end(within)).await;
        }
        #[cfg(not(feature = "otlp"))]
        let _ = within;
    }
}

/// Whether what the configuration says of it can be done.
///
/// # Errors
/// A file is not good.
#[cfg(feature = "otlp")]
pub(crate) fn check(config: &Config) -> Result<(), Error> {
    config.traces.as_ref().map_or(Ok(()), |traces| collector::tls(traces).map(drop))
}

/// The same: a collector is not told.
///
/// # Errors
/// This program cannot.
#[cfg(not(feature = "otlp"))]
pub(crate) fn check(config: &Config) -> Result<(), Error> {
    match config.traces {
        Some(_) => Err(Error::Field {
            field: "traces".to_owned(),
            reason: "this program was built without the feature `otlp`".to_owned(),
        }),
        None => Ok(()),
    }
}
