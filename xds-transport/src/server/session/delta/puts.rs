//! The names of the resources in one response.

use std::ops::Deref;
use std::sync::Arc;

use smallvec::SmallVec;
use xdstp_uri::ResourceName;

use crate::server::image::Image;
use crate::server::transmit::SPARE;

/// What a response puts.
#[derive(Default)]
pub(crate) struct Puts {
    /// All that an image shows, and nothing else.
    alike: Option<Arc<Image>>,
    /// Most updates put one.
    own: SmallVec<[ResourceName; 1]>,
}

impl Puts {
    #[inline]
    pub(crate) fn push(&mut self, name: ResourceName) {
        self.own().push(name);
    }

    /// The same, where about so many more are to come.
    #[inline]
    pub(crate) fn push_of(&mut self, more: usize, name: ResourceName) {
        let own = self.own();
        if own.len() == own.capacity() {
            make_room(own, more + 1);
        }
        own.push(name);
    }

    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&ResourceName) -> bool) {
        self.own().retain(|name| keeps(name));
    }

    /// It may stay for as long as a slow reader takes: room for many more is given back.
    #[inline]
    pub(crate) fn give_back(&mut self) {
        if self.own.capacity() > self.own.len() + SPARE {
            self.own.shrink_to_fit();
        }
    }

    pub(crate) fn into_names(mut self) -> SmallVec<[ResourceName; 1]> {
        std::mem::take(self.own())
    }

    #[inline]
    fn own(&mut self) -> &mut SmallVec<[ResourceName; 1]> {
        if let Some(image) = self.alike.take() {
            self.own = image.names().into();
        }
        &mut self.own
    }
}

/// Apart from what each update does.
#[cold]
#[inline(never)]
fn make_room(own: &mut SmallVec<[ResourceName; 1]>, more: usize) {
    own.reserve(more);
}

impl From<Arc<Image>> for Puts {
    fn from(image: Arc<Image>) -> Self {
        Self { alike: Some(image), own: SmallVec::new() }
    }
}

impl Deref for Puts {
    type Target = [ResourceName];

    #[inline]
    fn deref(&self) -> &[ResourceName] {
        self.alike.as_ref().map_or(&self.own, |image| image.names())
    }
}
