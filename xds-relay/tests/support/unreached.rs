//! A stream of a client whom nobody can reach.

use super::{ClientUse, ServedStream, Stream};

pub(crate) struct Unreached(pub(crate) ClientUse);

impl ServedStream for Unreached {
    fn peer(&self) -> &str {
        "somebody"
    }

    fn client_use(&self) -> Option<&ClientUse> {
        Some(&self.0)
    }

    fn inspect(&self, _: &mut dyn FnMut(&Stream)) {}

    fn end(&self, _: &str) {}
}
