//! What is known of one name of one type.

use std::hash::{Hash, Hasher};
use std::ops::{Index, IndexMut};

use xdstp_uri::ResourceName;

use crate::index::Keyed;
use crate::keys::{ListKey, SlotKey, TypeKey};
use crate::moments::{Moment, Seq};
use crate::resource::Resource;
use crate::store::varied::Varied;
use crate::watchers::Watchers;

/// One name of one type.
pub(crate) struct Slot<V> {
    pub(crate) name: ResourceName,
    pub(crate) type_key: TypeKey,
    pub(crate) state: State<V>,
    /// When it last changed; 0 while unknown.
    pub(crate) seq: Seq,
    /// When what is there came.
    pub(crate) born: Seq,
    /// When its content last changed, by the caller's clock.
    pub(crate) changed_at: Option<Moment>,
    /// Who asked for this name.
    pub(crate) watchers: Watchers,
    /// Where it is in its lists.
    pub(crate) places: Places,
}

impl<V> Slot<V> {
    /// The lists that it is a member of.
    pub(crate) fn lists(&self) -> impl Iterator<Item = ListKey> + use<V> {
        let Places { wildcard, directory } = self.places;
        [wildcard, directory].into_iter().filter_map(|place| place.list)
    }

    /// Where it is in the list of a glob, if its resource is there.
    pub(crate) fn directory(&self) -> Option<ListKey> {
        self.places.directory.list
    }
}

/// The canonical form of a name, which says which one it is: hashed in one piece, as there is nothing else in a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.0.as_bytes());
    }
}

impl<V> Keyed for Slot<V> {
    type By<'a>
        = Text<'a>
    where
        V: 'a;

    fn by(&self) -> Text<'_> {
        Text(self.name.as_str())
    }
}

pub(crate) enum State<V> {
    /// Asked for, not answered yet.
    Unknown,
    /// Known not to exist.
    Absent,
    Present(Resource<V>),
    /// There are variants of it.
    Varied(Box<Varied<V>>),
}

impl<V> State<V> {
    pub(crate) fn is_present(&self) -> bool {
        matches!(self, Self::Present(_) | Self::Varied(_))
    }

    /// Whether it has no variants, or had none when it got them.
    pub(crate) fn was_plain(&self) -> bool {
        match self {
            Self::Unknown | Self::Absent => false,
            Self::Present(_) => true,
            Self::Varied(varied) => varied.was_plain,
        }
    }

    /// How many resources there are.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Unknown | Self::Absent => 0,
            Self::Present(_) => 1,
            Self::Varied(varied) => varied.len(),
        }
    }

    pub(crate) fn varied(&self) -> Option<&Varied<V>> {
        if let Self::Varied(varied) = self { Some(varied) } else { None }
    }

    pub(crate) fn varied_mut(&mut self) -> Option<&mut Varied<V>> {
        if let Self::Varied(varied) = self { Some(varied) } else { None }
    }

    /// The resource, if it has no variants.
    pub(crate) fn resource(&self) -> Option<&Resource<V>> {
        match self {
            Self::Present(resource) => Some(resource),
            Self::Unknown | Self::Absent | Self::Varied(_) => None,
        }
    }

    pub(crate) fn resource_mut(&mut self) -> Option<&mut Resource<V>> {
        match self {
            Self::Present(resource) => Some(resource),
            Self::Unknown | Self::Absent | Self::Varied(_) => None,
        }
    }
}

/// Which of its two lists: that of its type, or that of its directory, which a glob is of.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    Wildcard,
    Directory,
}

/// The places of a slot in its two lists.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    pub(crate) wildcard: Place,
    pub(crate) directory: Place,
}

impl Places {
    pub(crate) const NOWHERE: Self = Self { wildcard: Place::NOWHERE, directory: Place::NOWHERE };
}

impl Index<Side> for Places {
    type Output = Place;

    #[inline]
    fn index(&self, side: Side) -> &Place {
        match side {
            Side::Wildcard => &self.wildcard,
            Side::Directory => &self.directory,
        }
    }
}

impl IndexMut<Side> for Places {
    #[inline]
    fn index_mut(&mut self, side: Side) -> &mut Place {
        match side {
            Side::Wildcard => &mut self.wildcard,
            Side::Directory => &mut self.directory,
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) list: Option<ListKey>,
    pub(super) older: Option<SlotKey>,
    pub(super) newer: Option<SlotKey>,
}

impl Place {
    pub(crate) const NOWHERE: Self = Self { list: None, older: None, newer: None };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_of_what_is_held_by_a_pointer_is_128_bytes() {
        assert_eq!(size_of::<Slot<std::sync::Arc<()>>>(), 128);
    }
}
