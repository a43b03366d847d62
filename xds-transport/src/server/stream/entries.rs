//! How many names a request lists, before anything is made of them.

use crate::Protocol;
use crate::server::error::ProtocolError;
use crate::wire::walk::Fields;

/// A request that lists no more is handled at once.
pub(crate) const FEW: usize = 1000;
/// A request of so many bytes lists no more, whatever is in it: a name takes two bytes at the least, and an entry of
/// `initial_resource_versions` more.
const SHORT: usize = 2 * FEW;

/// Which fields list names: of `DeltaDiscoveryRequest` those that are subscribed, left and held, and of both the locators.
fn lists(protocol: Protocol) -> &'static [u32] {
    match protocol {
        Protocol::Delta => &[3, 4, 5, 8, 9],
        Protocol::Sotw => &[3, 7],
    }
}

/// Whether it lists more than a few.
///
/// # Errors
/// When one list has more than `limit`: nothing is made of it then.
pub(crate) fn are_many(protocol: Protocol, message: &[u8], limit: usize) -> Result<bool, ProtocolError> {
    if message.len() <= SHORT.min(2 * limit) {
        return Ok(false);
    }
    let lists = lists(protocol);
    let mut counts = [0_usize; 5];
    // What is no message is for the decoder to tell.
    for field in Fields::of(message).map_while(Result::ok) {
        let at = lists.iter().position(|number| *number == field.number);
        if let Some(count) = at.and_then(|at| counts.get_mut(at)) {
            *count += 1;
        }
    }
    match counts.iter().any(|count| *count > limit) {
        true => Err(ProtocolError::TooMany { what: "names", limit }),
        false => Ok(counts.iter().sum::<usize>() > FEW),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::wire::{DeltaDiscoveryRequest, DiscoveryRequest};

    fn names(count: usize) -> Vec<String> {
        vec!["n".to_owned(); count]
    }

    fn delta(subscribed: usize, left: usize, held: usize) -> Vec<u8> {
        let initial_resource_versions = vec![bytes::Bytes::from_static(b"\x0a\x01n"); held];
        DeltaDiscoveryRequest {
            resource_names_subscribe: names(subscribed),
            resource_names_unsubscribe: names(left),
            initial_resource_versions,
            ..Default::default()
        }
        .encode_to_vec()
    }

    fn sotw(count: usize) -> Vec<u8> {
        DiscoveryRequest { resource_names: names(count), ..Default::default() }.encode_to_vec()
    }

    #[test]
    fn each_list_is_bounded_and_all_of_them_are_many() {
        let many = |request: &[u8]| are_many(Protocol::Delta, request, 3000);
        for [subscribed, left, held] in [[1001, 0, 0], [0, 1001, 0], [0, 0, 1001], [400, 400, 400], [3000, 3000, 3000]]
        {
            assert!(many(&delta(subscribed, left, held)).unwrap(), "{subscribed} {left} {held}");
        }
        for [subscribed, left, held] in [[0, 0, 0], [1000, 0, 0], [300, 300, 400]] {
            assert!(!many(&delta(subscribed, left, held)).unwrap(), "{subscribed} {left} {held}");
        }
        for request in [delta(3001, 0, 0), delta(0, 3001, 0), delta(0, 0, 3001)] {
            assert_eq!(many(&request).unwrap_err().to_string(), "more than 3000 names on one stream");
        }
    }

    #[test]
    fn over_sotw_there_is_one_list() {
        assert!(!are_many(Protocol::Sotw, &sotw(1000), 3000).unwrap());
        assert!(are_many(Protocol::Sotw, &sotw(1001), 3000).unwrap());
        are_many(Protocol::Sotw, &sotw(3001), 3000).unwrap_err();
        // Few are too many where fewer are served.
        are_many(Protocol::Sotw, &sotw(5), 4).unwrap_err();
    }
}
