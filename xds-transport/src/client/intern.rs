//! Streams that are told alike, and hold it once.

use std::fmt;

use xdstp_cache::Resource;
use xdstp_uri::ResourceName;

use crate::frame::Frame;

/// Where equal things are one: what many streams are sent alike would be in memory as often, and most of it is for a
/// relay whose nodes may not share.
pub trait Intern: fmt::Debug + Send + Sync {
    /// May replace any part of a resource that came by an equal one that lives already.
    fn intern(&self, name: &mut ResourceName, resource: &mut Resource<Frame>);
}
