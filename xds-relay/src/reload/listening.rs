//! Clients that are served at another address: who comes from then on is accepted there, and streams that are open go on.

use tokio::runtime::Handle;

use crate::config::{Address, Config};
use crate::error::Error;
use crate::incoming::Next;
use crate::socket::Listener;

/// Where clients are served.
pub(crate) struct Listening {
    next: Next,
    /// That of the relay: who reloads may be outside of it.
    runtime: Handle,
}

/// Another address, at which nobody is accepted yet.
pub(super) struct Bound<'a> {
    listening: &'a Listening,
    listener: Listener,
    address: &'a Address,
}

impl Listening {
    /// # Panics
    /// Outside of a tokio runtime.
    pub(crate) fn new(next: Next) -> Self {
        Self { next, runtime: Handle::current() }
    }

    /// Takes the address of a configuration, if it is another one that can be taken beside the one that there is.
    ///
    /// # Errors
    /// Somebody has it, or it is not of this machine.
    pub(super) fn bind<'a>(&'a self, running: &Config, config: &'a Config) -> Result<Option<Bound<'a>>, Error> {
        let (before, address) = (&running.listen, &config.listen);
        if before == address || overlap(before, address) {
            return Ok(None);
        }
        let _inside = self.runtime.enter();
        Ok(Some(Bound { listening: self, listener: Listener::listen(address, "listen")?, address }))
    }
}

impl Bound<'_> {
    /// Clients are accepted here from now on, and where they were no more.
    pub(super) fn accept(self) {
        tracing::info!("clients are served at {} from now on", self.address);
        self.listening.next.set(self.listener);
    }
}

/// Whether the system takes one for a part of the other.
fn overlap(one: &Address, other: &Address) -> bool {
    match (one.tcp(), other.tcp()) {
        (Some(one), Some(other)) => {
            one.port() == other.port() && (one.ip().is_unspecified() || other.ip().is_unspecified())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_is_one_with_every_other_of_its_port() {
        let overlaps = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| text.parse::<Address>().unwrap());
            assert_eq!(overlap(&one, &other), overlap(&other, &one));
            overlap(&one, &other)
        };
        assert!(overlaps("127.0.0.1:1", "0.0.0.0:1") && overlaps("10.0.0.1:1", "[::]:1"));
        for (one, other) in [("127.0.0.1:1", "127.0.0.1:2"), ("0.0.0.0:1", "0.0.0.0:2"), ("127.0.0.1:1", "[::1]:1")] {
            assert!(!overlaps(one, other), "{one} {other}");
        }
        assert!(!overlaps("unix:/a", "0.0.0.0:1") && !overlaps("unix:/a", "unix:/b"));
    }
}
