//! What one thread at a time works with, though no lock is held while it does: what it does may be a program's own code.

use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

use crate::federation::lock;

/// It is there, or lent.
pub(crate) struct Lent<T: Default>(Mutex<Place<T>>);

struct Place<T> {
    there: Option<T>,
    /// How often another took its place.
    replaced: u64,
}

/// It, until this is dropped.
pub(crate) struct Loan<'a, T: Default> {
    of: &'a Lent<T>,
    is: T,
    replaced: u64,
}

impl<T: Default> Default for Lent<T> {
    fn default() -> Self {
        Self(Mutex::new(Place { there: Some(T::default()), replaced: 0 }))
    }
}

impl<T: Default> Lent<T> {
    /// None while it is lent already: be it to this thread.
    pub(crate) fn borrow(&self) -> Option<Loan<'_, T>> {
        let Place { there, replaced } = &mut *lock(&self.0);
        Some(Loan { of: self, is: there.take()?, replaced: *replaced })
    }

    /// Another is there from now on. Whoever works with the one before goes on with that, and it is not given back.
    pub(crate) fn replace(&self, by: T) {
        let before = {
            let place = &mut *lock(&self.0);
            place.replaced += 1;
            place.there.replace(by)
        };
        drop(before);
    }
}

impl<T: Default> Deref for Loan<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.is
    }
}

impl<T: Default> DerefMut for Loan<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.is
    }
}

impl<T: Default> Drop for Loan<'_, T> {
    fn drop(&mut self) {
        let is = std::mem::take(&mut self.is);
        let place = &mut *lock(&self.of.0);
        if place.replaced == self.replaced {
            place.there = Some(is);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_lent_to_one_and_given_back_unless_another_took_its_place() {
        let lent = Lent::<u8>::default();
        let mut loan = lent.borrow().unwrap();
        *loan = 7;
        assert!(lent.borrow().is_none());
        drop(loan);
        let loan = lent.borrow().unwrap();
        assert_eq!(*loan, 7);
        lent.replace(9);
        drop(loan);
        assert_eq!(lent.borrow().as_deref(), Some(&9));
    }
}
