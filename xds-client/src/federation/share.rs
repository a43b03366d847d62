//! What all subscribers together may cost: so much of a thing, and no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// There would be more of something than there may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {most} {what}")]
pub struct OverLimit {
    /// Which limit it is, as a configuration calls it.
    pub key: &'static str,
    /// Of what there would be too much.
    pub what: &'static str,
    /// How much there may be.
    pub most: usize,
}

/// Something that there may be so much of.
#[derive(Debug)]
pub struct Quota {
    key: &'static str,
    what: &'static str,
    most: AtomicUsize,
    used: AtomicUsize,
}

/// Some of it, which is given back when this is dropped.
#[derive(Debug)]
pub struct Share {
    quota: Arc<Quota>,
    used: usize,
}

impl Quota {
    /// So much of something, of which nothing is used: `key` is what a configuration calls it, `what` is for people.
    pub fn new(key: &'static str, what: &'static str, most: usize) -> Arc<Self> {
        Arc::new(Self { key, what, most: AtomicUsize::new(most), used: AtomicUsize::new(0) })
    }

    /// There may be so much of it from now on. What is used stays so, though it be more.
    pub fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// What a configuration calls it.
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// How much of it is used.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// How much of it there may be.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// One of it.
    pub fn take(self: &Arc<Self>) -> Result<Share, OverLimit> {
        let mut share = self.none();
        share.grow(1).map(|()| share)
    }

    /// None of it yet.
    pub fn none(self: &Arc<Self>) -> Share {
        Share { quota: self.clone(), used: 0 }
    }
}

impl Share {
    /// So many more.
    pub fn grow(&mut self, by: usize) -> Result<(), OverLimit> {
        let Quota { key, what, ref most, ref used } = *self.quota;
        let most = most.load(Ordering::Relaxed);
        let more = |used: usize| used.checked_add(by).filter(|used| *used <= most);
        match used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => self.used += by,
            Err(_) => return Err(OverLimit { key, what, most }),
        }
        Ok(())
    }

    /// Whether there is room for so many more now.
    pub fn may_grow(&self, by: usize) -> Result<(), OverLimit> {
        let Quota { key, what, .. } = *self.quota;
        let (used, most) = (self.quota.used(), self.quota.most());
        if used.saturating_add(by) <= most { Ok(()) } else { Err(OverLimit { key, what, most }) }
    }

    /// How much of it this is.
    pub fn used(&self) -> usize {
        self.used
    }

    /// So many fewer.
    pub fn shrink(&mut self, by: usize) {
        let by = by.min(self.used);
        self.used -= by;
        self.quota.used.fetch_sub(by, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(self.used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let quota = Quota::new("streams", "streams", 2);
        let (one, mut other) = (quota.take().unwrap(), quota.none());
        other.grow(1).unwrap();
        let error = other.grow(1).unwrap_err();
        assert_eq!((other.may_grow(1), other.may_grow(0)), (Err(error.clone()), Ok(())));
        assert_eq!((error.key, error.to_string().as_str()), ("streams", "more than 2 streams"));
        assert!(quota.take().is_err());
        drop(one);
        assert!(other.grow(2).is_err());
        other.grow(1).unwrap();
        other.shrink(5);
        assert_eq!(quota.used.load(Ordering::Relaxed), 0);
        drop(other);
        assert_eq!([(); 3].map(|()| quota.take().is_ok()), [true; 3], "each is given back at once");
    }

    #[test]
    fn what_is_used_stays_where_there_may_be_less() {
        let quota = Quota::new("streams", "streams", 2);
        let shares = [quota.take().unwrap(), quota.take().unwrap()];
        quota.set_most(1);
        assert_eq!(quota.take().unwrap_err().most, 1);
        let [one, other] = shares;
        drop(one);
        assert!(quota.take().is_err(), "the other is all there may be");
        drop(other);
        let one = quota.take().unwrap();
        assert!(quota.take().is_err());
        quota.set_most(2);
        assert!(quota.take().is_ok());
        drop(one);
    }
}
