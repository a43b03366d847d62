//! Looking up names, and the globs they are members of, in a map of names.

use core::{borrow::Borrow, hash};

use crate::ResourceName;

/// Something that a map of [`ResourceName`]s can be asked for: a name, or the glob parent of one.
///
/// See [`ResourceName::glob_parent_key`]. The trait is sealed.
pub trait NameKey: sealed::Parts {}

impl NameKey for ResourceName {}

impl NameKey for GlobParent<'_> {}

impl<'a> Borrow<dyn NameKey + 'a> for ResourceName {
    fn borrow(&self) -> &(dyn NameKey + 'a) {
        self
    }
}

impl PartialEq for dyn NameKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn NameKey + '_ {}

impl hash::Hash for dyn NameKey + '_ {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// The glob collection that a name is a member of, borrowed from the name. See [`ResourceName::glob_parent_key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobParent<'a>(pub(crate) NameParts<'a>);

/// A canonical name cut where its glob parent differs from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameParts<'a> {
    /// Up to the last `/` of the path, with it; all of an opaque name.
    pub(crate) directory: &'a str,
    pub(crate) leaf: &'a str,
    /// With the `?`.
    pub(crate) params: &'a str,
}

/// One end for all of it: where the parts meet, the text itself says.
impl hash::Hash for NameParts<'_> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        for part in [self.directory, self.leaf, self.params] {
            state.write(part.as_bytes());
        }
        state.write_u8(0xff);
    }
}

mod sealed {
    use super::{GlobParent, NameParts, ResourceName};

    pub trait Parts {
        fn parts(&self) -> NameParts<'_>;
    }

    impl Parts for ResourceName {
        fn parts(&self) -> NameParts<'_> {
            self.parts()
        }
    }

    impl Parts for GlobParent<'_> {
        fn parts(&self) -> NameParts<'_> {
            self.0
        }
    }
}
