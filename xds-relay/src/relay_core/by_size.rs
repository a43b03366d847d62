//! The largest of many first, where how large they are takes long to find out, and that it is no more than so much does not.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// By how large they are at most, whether that is all that is known, and which came first.
pub(crate) struct BySize<T>(BTreeMap<(usize, bool, Reverse<usize>), T>);

impl<T> BySize<T> {
    /// Of which each is no larger than `at_most` says.
    pub(crate) fn of(all: impl Iterator<Item = T>, at_most: impl Fn(&T) -> usize) -> Self {
        Self(all.enumerate().map(|(at, one)| ((at_most(&one), true, Reverse(at)), one)).collect())
    }

    /// The largest that is left, by what is found out only of those that may be.
    pub(crate) fn pop(&mut self, exactly: impl Fn(&T) -> usize) -> Option<T> {
        loop {
            let ((_, is_bound, at), one) = self.0.pop_last()?;
            if !is_bound {
                return Some(one);
            }
            self.0.insert((exactly(&one), false, at), one);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_largest_is_first_and_of_those_that_cannot_be_nothing_is_found_out() {
        let asked = RefCell::new(Vec::new());
        let exactly = |one: &(usize, usize)| {
            asked.borrow_mut().push(*one);
            one.1
        };
        let mut by_size = BySize::of([(3, 3), (9, 2), (7, 5), (7, 5)].into_iter(), |one| one.0);
        assert_eq!(by_size.pop(exactly), Some((7, 5)));
        assert_eq!(*asked.borrow(), [(9, 2), (7, 5), (7, 5)]);
        assert_eq!([(); 4].map(|()| by_size.pop(exactly)), [Some((7, 5)), Some((3, 3)), Some((9, 2)), None]);
        assert_eq!(asked.borrow().len(), 4, "of each once");
    }
}
