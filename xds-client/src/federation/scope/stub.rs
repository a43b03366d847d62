//! What stands in a shared scope for a resource that must not be shared (rule 121).

use bytes::Bytes;
use prost::Message as _;
use xds_transport::{Frame, wire};
use xdstp_cache::{Resource, Version};

/// What a shared scope keeps of a resource that must not be shared: that there is one, when it changes, and whether it was
/// `once_shared`; and its aliases, by which a client may have asked for what it may not have. No client holds it at this version, so whoever comes back is sent to the origin too (rule 121).
pub(crate) fn stub(resource: &Resource<Frame>, once_shared: bool) -> Resource<Frame> {
    let version = Version::from(format!("do_not_cache {}", resource.version));
    let body = Bytes::from_static(if once_shared { ONCE_SHARED } else { b"" });
    let aliases = resource.value.aliases().map(|alias| alias.to_string()).collect();
    let wrapper = wire::Resource { aliases, ..wire::Resource::default() }.encode_to_vec();
    let frame = Frame::new(body).with_wrapper(wrapper.into(), None, true);
    Resource::new(version, resource.digest(), frame)
}

/// The body of a stub for what clients may hold from before.
const ONCE_SHARED: &[u8] = b"once shared";

/// Whether clients may hold what was shared under the name of what is here.
pub(crate) fn may_be_held(here: &Resource<Frame>) -> bool {
    !here.value.do_not_cache() || here.value.any() == ONCE_SHARED
}
