//! What names have in the version of a type, which for all clients is the same.

use std::cell::RefCell;

use xdstp_cache::Version;
use xdstp_uri::ResourceName;

use crate::frame::digest;

/// So many are known to a thread: of more, some are computed again.
const MOST: usize = 4096;

/// What has more bytes is not kept: nobody is asked for the room.
const LONGEST: usize = 512;

/// The first 128 bits of SHA-256 over a canonical name and a version. Without the processor's help that takes thousands of
/// instructions, and each client that is told of a resource needs it: once to add it, and once to take it away.
pub(crate) fn share(name: &ResourceName, version: &Version) -> u128 {
    thread_local! {
        static SHARES: RefCell<Shares> = const { RefCell::new(Shares(Vec::new())) };
    }
    // A thread that is about to end has none any more.
    SHARES.try_with(|shares| shares.borrow_mut().of(name, version)).unwrap_or_else(|_| compute(name, version))
}

fn compute(name: &ResourceName, version: &Version) -> u128 {
    digest(&[name.as_str().as_bytes(), version.as_str().as_bytes()])
}

/// Each has a place of its own, where it takes that of what was there. No memory is needed where nobody asks.
struct Shares(Vec<Option<Share>>);

/// It keeps both texts, so that no others come to be where they are in memory.
struct Share {
    name: ResourceName,
    version: Version,
    /// In two parts, or it would take eight bytes more.
    value: [u64; 2],
}

impl Shares {
    fn of(&mut self, name: &ResourceName, version: &Version) -> u128 {
        if name.as_str().len() + version.as_str().len() > LONGEST {
            return compute(name, version);
        }
        if self.0.is_empty() {
            self.0.resize_with(MOST, || None);
        }
        let Some(place) = self.0.get_mut(place(name, version)) else { return compute(name, version) };
        let is_it = |share: &&Share| {
            std::ptr::eq(share.name.as_str(), name.as_str()) && std::ptr::eq(share.version.as_str(), version.as_str())
        };
        if let Some(Share { value: [high, low], .. }) = place.as_ref().filter(is_it) {
            return u128::from(*high) << 64 | u128::from(*low);
        }
        let share = compute(name, version);
        let value = [(share >> 64) as u64, share as u64];
        *place = Some(Share { name: name.clone(), version: version.clone(), value });
        share
    }
}

/// By where the texts are: who has them has them of one cache, mostly.
fn place(name: &ResourceName, version: &Version) -> usize {
    let [name, version] = [name.as_str(), version.as_str()].map(|text| text.as_ptr().addr() as u64);
    let mixed = (name ^ version.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - MOST.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_that_of_its_name_and_version_whatever_was_where_they_are() {
        let mut shares = Shares(Vec::new());
        for round in 0..3 {
            // Of each round the memory is used again in the next.
            let texts: Vec<(ResourceName, Version)> =
                (0..3000).map(|at| (format!("{at:04}").parse().unwrap(), format!("{round}").as_str().into())).collect();
            for (name, version) in texts.iter().chain(&texts) {
                assert_eq!(shares.of(name, version), compute(name, version));
            }
        }
        assert_eq!(shares.0.len(), MOST);
    }

    #[test]
    fn what_is_long_is_not_kept() {
        let mut shares = Shares(Vec::new());
        for (name, version) in [(LONGEST, 1), (1, LONGEST)] {
            let (name, version) = ("n".repeat(name).parse().unwrap(), Version::from("v".repeat(version).as_str()));
            assert_eq!(shares.of(&name, &version), compute(&name, &version));
        }
        assert!(shares.0.is_empty());
    }

    #[test]
    fn what_was_computed_is_not_computed_again_and_is_kept_in_56_bytes() {
        let mut shares = Shares(Vec::new());
        let (name, version) = ("a".parse().unwrap(), Version::from("1"));
        let share = shares.of(&name, &version);
        let known = shares.0.get_mut(place(&name, &version)).and_then(Option::as_mut).unwrap();
        assert_eq!(known.value, [(share >> 64) as u64, share as u64]);
        known.value = [0, 7];
        assert_eq!(shares.of(&name.clone(), &version.clone()), 7);
        // The same text elsewhere.
        assert_eq!(shares.of(&"a".parse().unwrap(), &version), share);
        assert_eq!(size_of::<Option<Share>>(), 56);
    }
}
