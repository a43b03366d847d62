//! Which entry a place of an arena has: counted where debug assertions are, so that a key that is too old is told from that of
//! the entry that has its place now.

/// How much of a key says for which of a place's entries it is. With so little, one in 256 that are too old is taken for the
/// newest; without debug assertions, each is.
pub(super) const BITS: u32 = if cfg!(debug_assertions) { u8::BITS } else { 0 };

/// Which one has each place, or has it next. It goes on counting where an arena was made smaller.
#[derive(Default)]
pub(super) struct Tenants(#[cfg(debug_assertions)] Vec<u8>);

#[cfg(debug_assertions)]
impl Tenants {
    pub(super) fn of(&self, place: usize) -> u8 {
        self.0.get(place).copied().unwrap_or(0)
    }

    pub(super) fn leave(&mut self, place: usize) {
        let len = self.0.len();
        if place >= len {
            self.0.reserve_exact((place + 1 - len).max(len / 8));
            self.0.resize(place + 1, 0);
        }
        if let Some(tenant) = self.0.get_mut(place) {
            *tenant = tenant.wrapping_add(1);
        }
    }
}

#[cfg(not(debug_assertions))]
impl Tenants {
    #[inline]
    pub(super) fn of(&self, _place: usize) -> u8 {
        0
    }

    #[inline]
    pub(super) fn leave(&mut self, _place: usize) {}
}
