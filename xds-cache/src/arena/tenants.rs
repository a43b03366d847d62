//! Which entry a place of an arena has: counted where debug assertions are, and nothing elsewhere.

/// Which of the entries that had one place after each other: nothing, without debug assertions.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Tenant(#[cfg(debug_assertions)] u32);

impl Tenant {
    pub(crate) const FIRST: Self = Self(
        #[cfg(debug_assertions)]
        0,
    );
}

/// Who has each place now, or has it next. It goes on counting where an arena was made smaller.
#[derive(Default)]
pub(super) struct Tenants(#[cfg(debug_assertions)] Vec<u32>);

#[cfg(debug_assertions)]
impl Tenants {
    pub(super) fn of(&self, at: usize) -> Tenant {
        Tenant(self.0.get(at).copied().unwrap_or(0))
    }

    pub(super) fn leave(&mut self, at: usize) {
        self.0.resize(self.0.len().max(at + 1), 0);
        if let Some(tenant) = self.0.get_mut(at) {
            *tenant = tenant.wrapping_add(1);
        }
    }
}

#[cfg(not(debug_assertions))]
impl Tenants {
    #[inline]
    pub(super) fn of(&self, _at: usize) -> Tenant {
        Tenant()
    }

    #[inline]
    pub(super) fn leave(&mut self, _at: usize) {}
}
