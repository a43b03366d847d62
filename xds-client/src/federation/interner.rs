//! What is equal in different node groups is one: origins mostly tell nodes the same.

use bytes::Bytes;
use xds_transport::Frame;
use xds_transport::client::Intern;
use xdstp_cache::{Resource, Version};
use xdstp_uri::ResourceName;

use crate::federation::weak_table::WeakTable;

/// The parts of resources, for as long as anybody holds them.
#[derive(Debug, Default)]
pub struct Interner {
    names: WeakTable<ResourceName, ()>,
    versions: WeakTable<Version, ()>,
    /// By the digest of their content.
    bodies: WeakTable<[u8; 16], Frame>,
}

impl Interner {
    /// How many bodies are held.
    pub(crate) fn bodies(&self) -> usize {
        self.bodies.len()
    }

    /// Drops some of what nobody else holds: to be called every second or so.
    pub(crate) fn sweep(&self) {
        self.names.sweep(|name, ()| name.is_shared());
        self.versions.sweep(|version, ()| version.is_shared());
        self.bodies.sweep(|_, body| body.is_shared());
    }

    fn intern_body(&self, resource: &mut Resource<Frame>) {
        // Of an empty body there is no holder to be counted.
        if resource.value.any().is_empty() {
            return;
        }
        let digest = resource.digest().to_ne_bytes();
        let frame = &mut resource.value;
        let body = self.bodies.find(&digest, |_, body| body.clone()).unwrap_or_else(|| {
            // Nothing else of the message that it came in.
            let wrapper = Bytes::copy_from_slice(frame.wrapper());
            let own = Frame::new(Bytes::copy_from_slice(frame.any())).with_wrapper(wrapper, None, false);
            self.bodies.insert(digest, own.clone());
            own
        });
        // It does not if another content has the same digest.
        frame.hold_with(&body);
    }
}

impl Intern for Interner {
    /// Of what must not be shared, nothing is.
    fn intern(&self, name: &mut ResourceName, resource: &mut Resource<Frame>) {
        if resource.value.do_not_cache() {
            return;
        }
        intern(&self.names, name);
        intern(&self.versions, &mut resource.version);
        self.intern_body(resource);
    }
}

fn intern<T: Clone + std::hash::Hash + Eq>(table: &WeakTable<T, ()>, value: &mut T) {
    match table.find(value, |known, ()| known.clone()) {
        Some(known) => *value = known,
        None => table.insert(value.clone(), ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> ResourceName {
        ResourceName::parse("cluster").unwrap()
    }

    fn resource(text: &str) -> Resource<Frame> {
        Frame::of_message(&"type.example.com/T".into(), text.as_bytes()).into_resource(None)
    }

    #[test]
    fn equal_bodies_are_one_buffer_and_gone_with_their_last_holder() {
        let interner = Interner::default();
        let message = Bytes::from(vec![7; 100_000]);
        let [mut first, mut second] =
            [(); 2].map(|()| Frame::new(message.slice(10..1010)).into_resource(Some("1".into())));
        interner.intern_body(&mut first);
        interner.intern_body(&mut second);
        assert_eq!(first.value.any().as_ptr(), second.value.any().as_ptr());
        assert_eq!(first.value.any(), &message[10..1010]);
        assert!(message.is_unique(), "the message that they came in is free");
        interner.sweep();
        drop(first);
        interner.sweep();
        assert_eq!(interner.bodies(), 1);
        drop(second);
        interner.sweep();
        assert_eq!(interner.bodies(), 0);
    }

    #[test]
    fn what_only_has_the_same_digest_is_not_the_same() {
        let interner = Interner::default();
        let (mut one, mut other) = (resource("one"), resource("other"));
        other = Resource::new(other.version, one.digest(), other.value);
        let mut aliased = one.clone();
        aliased.value = aliased.value.with_wrapper(Bytes::from_static(b"\x22\x01a"), None, false);
        interner.intern_body(&mut one);
        for (different, expected) in [(&mut other, resource("other").value), (&mut aliased.clone(), aliased.value)] {
            interner.intern_body(different);
            assert_eq!(different.value, expected);
        }
    }

    #[test]
    fn what_must_not_be_cached_is_not_kept_here() {
        let interner = Interner::default();
        let mut resource = resource("secret");
        resource.value = resource.value.with_wrapper(Bytes::new(), None, true);
        interner.intern(&mut name(), &mut resource);
        let Interner { names, versions, bodies } = &interner;
        assert_eq!([names.len(), versions.len(), bodies.len()], [0; 3]);
    }

    #[test]
    fn equal_names_and_versions_are_one_and_gone_with_their_last_holder() {
        let interner = Interner::default();
        let [mut first, mut second] = ["one", "other"].map(|text| {
            let frame = Frame::of_message(&"type.example.com/T".into(), text.as_bytes());
            (name(), frame.into_resource(Some("1".into())))
        });
        for (name, resource) in [&mut first, &mut second] {
            interner.intern(name, resource);
        }
        assert_eq!(first.0.as_str().as_ptr(), second.0.as_str().as_ptr());
        assert_eq!(first.1.version.as_str().as_ptr(), second.1.version.as_str().as_ptr());
        let kept = || {
            // The first may only come to the end.
            (0..2).for_each(|_| interner.sweep());
            [interner.names.len(), interner.versions.len(), interner.bodies()]
        };
        assert_eq!(kept(), [1, 1, 2]);
        drop(first);
        assert_eq!(kept(), [1, 1, 1]);
        drop(second);
        assert_eq!(kept(), [0, 0, 0]);
    }
}
