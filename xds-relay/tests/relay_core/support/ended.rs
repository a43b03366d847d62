//! A stream that can be ended from outside.

use std::sync::Mutex;

use xds_relay::relay_core::ServedStream;
use xds_transport::server::Stream;

/// What a driver shows of a stream, and why it was ended.
#[derive(Default)]
pub(crate) struct Ended(pub(crate) Mutex<Option<String>>);

impl ServedStream for Ended {
    fn peer(&self) -> &str {
        "somewhere"
    }

    fn inspect(&self, _: &mut dyn FnMut(&Stream)) {}

    fn end(&self, reason: &str) {
        *self.0.lock().unwrap() = Some(reason.to_owned());
    }
}
