//! Why an origin does not send what is subscribed: TP3.

use xdstp_cache::{Interest, ResourceError, TypeUrl};
use xdstp_uri::ResourceName;

use crate::types;
use crate::wire;

/// `google.rpc.Code.RESOURCE_EXHAUSTED`.
const RESOURCE_EXHAUSTED: i32 = 8;

/// What they are of, as far as they name anything. TP3 says nothing of `*`, which no other server names: a relay refuses a wildcard
/// by it.
pub(crate) fn read_all(errors: Vec<wire::ResourceError>) -> Vec<(ResourceName, ResourceError)> {
    errors.into_iter().filter_map(read).collect()
}

/// The wildcard or the glob that an error withholds. A glob that does not exist is empty; of no other error anything follows for
/// what is held.
pub(crate) fn withheld(name: &ResourceName, error: &ResourceError) -> Option<Interest> {
    let collection = Interest::from(name.clone());
    let is_empty = collection != Interest::Wildcard && error.code == ResourceError::NOT_FOUND;
    (collection.is_collection() && !is_empty).then_some(collection)
}

/// The error of a response, and what it is of, if it has a name.
fn read(error: wire::ResourceError) -> Option<(ResourceName, ResourceError)> {
    let name = ResourceName::parse(&error.resource_name?.name).ok()?;
    let status = error.error_detail.unwrap_or_default();
    Some((name, ResourceError::new(status.code, status.message)))
}

/// Why nothing of a type is sent.
pub(crate) fn of(interest: &Interest, error: ResourceError) -> Option<(ResourceName, ResourceError)> {
    Some((ResourceName::parse(interest.as_str()).ok()?, error))
}

/// That the type is delta only, and the origin is asked over SotW.
pub(crate) fn without_sotw(type_url: &TypeUrl, interest: &Interest) -> Option<(ResourceName, ResourceError)> {
    of(interest, types::no_sotw(type_url))
}

/// That one request cannot name this too: over SotW every request names all that is wanted of a type, so that what one
/// cannot hold cannot be asked for.
pub(crate) fn without_room(
    type_url: &TypeUrl,
    interest: &Interest,
    max_request_size: usize,
) -> Option<(ResourceName, ResourceError)> {
    let message = format!("one request for {type_url}, of at most {max_request_size} bytes, cannot name this too");
    Some((ResourceName::parse(interest.as_str()).ok()?, ResourceError::new(RESOURCE_EXHAUSTED, message)))
}
