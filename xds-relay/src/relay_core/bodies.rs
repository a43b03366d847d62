//! Equal bodies of different node groups are one buffer: origins mostly tell nodes the same.

use std::sync::Mutex;

use bytes::Bytes;
use indexmap::IndexMap;
use indexmap::map::Entry;
use xds_transport::Frame;
use xdstp_cache::Resource;

use crate::relay_core::lock;

/// More bodies than this are not shared.
const MAX_BODIES: usize = 1 << 20;
/// How many bodies, and which part of all, one sweep looks at.
const SWEEP: usize = 4096;
const SWEEP_PART: usize = 16;

/// The bodies of resources by the digest of their content, for as long as anybody holds them.
#[derive(Debug, Default)]
pub(crate) struct Bodies(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    bodies: IndexMap<u128, Frame>,
    /// Where the next sweep begins.
    swept: usize,
}

impl Bodies {
    /// Has a resource hold the buffer that others with the same content hold: one of its own, and nothing else of the
    /// message that it came in.
    pub(crate) fn share(&self, resource: &mut Resource<Frame>) {
        let frame = &resource.value;
        // Of an empty body there is no holder to be counted.
        if frame.any().is_empty() || frame.do_not_cache() {
            return;
        }
        let shared = lock(&self.0).bodies.get(&resource.digest).cloned();
        let body = match shared {
            Some(body) if body.any() == frame.any() && body.wrapper() == frame.wrapper() => body,
            // Another content of the same digest.
            Some(_) => return,
            None => {
                let wrapper = Bytes::copy_from_slice(frame.wrapper());
                let own = Frame::new(Bytes::copy_from_slice(frame.any())).with_wrapper(wrapper, None, false);
                let bodies = &mut lock(&self.0).bodies;
                let has_room = bodies.len() < MAX_BODIES;
                if bodies.len() == bodies.capacity() {
                    // An eighth more: of that many, half a table would be too much to have empty.
                    bodies.reserve_exact((bodies.len() / 8).max(SWEEP / SWEEP_PART));
                }
                if let (true, Entry::Vacant(vacant)) = (has_room, bodies.entry(resource.digest)) {
                    vacant.insert(own.clone());
                }
                own
            }
        };
        resource.value.hold_in(body.any().clone(), body.wrapper().clone());
    }

    /// How many bodies are held.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).bodies.len()
    }

    /// Drops some of the bodies that nobody else holds: to be called every second or so.
    pub(crate) fn sweep(&self) {
        let Table { bodies, swept } = &mut *lock(&self.0);
        for _ in 0..SWEEP.max(bodies.len() / SWEEP_PART).min(bodies.len()) {
            match bodies.get_index(*swept) {
                // The last takes its place, and is looked at next.
                Some((_, body)) if body.any().is_unique() => drop(bodies.swap_remove_index(*swept)),
                Some(_) => *swept += 1,
                None => *swept = 0,
            }
        }
        if bodies.len() < bodies.capacity() / 4 {
            bodies.shrink_to(bodies.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(text: &str) -> Resource<Frame> {
        Frame::of_message(&"type.example.com/T".into(), text.as_bytes()).into_resource(None)
    }

    #[test]
    fn equal_bodies_are_one_buffer_and_gone_with_their_last_holder() {
        let bodies = Bodies::default();
        let message = Bytes::from(vec![7; 100_000]);
        let [mut first, mut second] =
            [(); 2].map(|()| Frame::new(message.slice(10..1010)).into_resource(Some("1".into())));
        bodies.share(&mut first);
        bodies.share(&mut second);
        assert_eq!(first.value.any().as_ptr(), second.value.any().as_ptr());
        assert_eq!(first.value.any(), &message[10..1010]);
        assert!(message.is_unique(), "the message that they came in is free");
        bodies.sweep();
        drop(first);
        bodies.sweep();
        assert_eq!(bodies.len(), 1);
        drop(second);
        bodies.sweep();
        assert_eq!(bodies.len(), 0);
    }

    #[test]
    fn what_only_has_the_same_digest_is_not_the_same() {
        let bodies = Bodies::default();
        let (mut one, mut other) = (resource("one"), resource("other"));
        other.digest = one.digest;
        let mut aliased = one.clone();
        aliased.value = aliased.value.with_wrapper(Bytes::from_static(b"\x22\x01a"), None, false);
        bodies.share(&mut one);
        for (different, expected) in [(&mut other, resource("other").value), (&mut aliased.clone(), aliased.value)] {
            bodies.share(different);
            assert_eq!(different.value, expected);
        }
    }

    #[test]
    fn every_body_is_looked_at_within_a_few_sweeps() {
        let bodies = Bodies::default();
        let shared = |index: usize| {
            let mut resource = resource(&index.to_string());
            bodies.share(&mut resource);
            resource
        };
        let kept: Vec<_> = (0..3 * SWEEP).map(shared).step_by(2).collect();
        (0..5).for_each(|_| bodies.sweep());
        assert_eq!(bodies.len(), kept.len());
        drop(kept);
        (0..5).for_each(|_| bodies.sweep());
        let table = lock(&bodies.0);
        assert!(table.bodies.is_empty() && table.bodies.capacity() < SWEEP, "{}", table.bodies.capacity());
    }

    #[test]
    fn what_must_not_be_cached_is_not_kept_here() {
        let bodies = Bodies::default();
        let mut resource = resource("secret");
        resource.value = resource.value.with_wrapper(Bytes::new(), None, true);
        bodies.share(&mut resource);
        assert!(lock(&bodies.0).bodies.is_empty());
    }
}
