//! Who counts what comes from origins.

use std::any::Any;
use std::time::Instant;

use xdstp_cache::TypeUrl;

/// Is told what happens on the streams to origins, as it happens, by whoever receives: it returns soon. No lock of the core is held
/// meanwhile. Whoever counts nothing is `()`.
pub trait Observer: Send + Sync + 'static {
    /// A stream was answered; what is returned is dropped once it is over.
    fn connected(&self, _origin: &str) -> Box<dyn Any + Send + Sync> {
        Box::new(())
    }

    /// A stream was ended because of the relays that it leads to (rule 159).
    fn looped(&self, _origin: &str) {}

    /// What is fed comes from another server of an origin than before.
    fn switched(&self, _origin: &str, _server: &str) {}

    /// Resources came in so many responses: in none where it is concluded from silence that something is gone.
    fn received(&self, _origin: &str, _type_url: &TypeUrl, _responses: u64, _resources: u64) {}

    /// Something of a response came, whatever it is.
    fn spoke(&self, _origin: &str, _at: Instant) {}

    /// The content of so many resources changed though their versions did not, which a version is to tell (TP1): they are passed on.
    fn restated(&self, _origin: &str, _type_url: &TypeUrl, _resources: u64) {}

    /// A response was rejected, or a part of it.
    fn nacked(&self, _origin: &str, _type_url: &TypeUrl) {}

    /// Whether a server can be reached, when that changes: from when there is a stream, until one ends without an answer; after
    /// that when it answers (gRFC A78). Each stream to it says so for itself, and what it said before; `None`: it does not ask it any
    /// more, or had not.
    fn reachable(&self, _server: &str, _was: Option<bool>, _is: Option<bool>) {}

    /// So many resources of a response were of use, and so many were not.
    fn judged(&self, _server: &str, _type_url: &TypeUrl, _valid: u64, _invalid: u64) {}

    /// So many resources were refused.
    fn refused(&self, _origin: &str, _resources: u64) {}
}

impl Observer for () {}
