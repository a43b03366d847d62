//! Who counts what comes from origins.

use std::any::Any;
use std::time::Instant;

use xdstp_cache::TypeUrl;

/// What a stream knows of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    /// There is a stream to it, and that is all.
    Opened,
    /// It answered last.
    Answered,
    /// A stream ended without an answer, or there was none.
    Failed,
}

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

    /// So many names have two variants for the same parameters, which TP2 forbids: one of them is used.
    fn overlapping(&self, _origin: &str, _type_url: &TypeUrl, _names: u64) {}

    /// A response was rejected, or a part of it.
    fn nacked(&self, _origin: &str, _type_url: &TypeUrl) {}

    /// What a stream knows of its server, when that changes, and what it knew before: nothing before there was one, and once it does not
    /// ask that server any more (gRFC A78).
    fn reached(&self, _server: &str, _was: Option<Reached>, _is: Option<Reached>) {}

    /// So many resources of a response were of use, and so many were not.
    fn judged(&self, _server: &str, _type_url: &TypeUrl, _valid: u64, _invalid: u64) {}

    /// A response was longer than is taken, and ended its stream.
    fn too_long(&self, _origin: &str) {}

    /// So many resources were refused.
    fn refused(&self, _origin: &str, _resources: u64) {}
}

impl Observer for () {}
