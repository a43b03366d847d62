//! Several of what somebody looks for: only what may have news is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Parts by their keys.
pub(super) struct Parts<K, P> {
    parts: BTreeMap<K, (P, Waker)>,
    /// Who had news last: the others have their turn before it has another.
    last: Option<K>,
    ready: Arc<Ready<K>>,
}

/// Those that may have news, and whom to tell.
struct Ready<K>(Mutex<(BTreeSet<K>, Option<Waker>)>);

struct Wakes<K> {
    key: K,
    ready: Arc<Ready<K>>,
}

impl<K: Ord + Clone + Send + Sync + 'static, P> Parts<K, P> {
    pub(super) fn new() -> Self {
        Self { parts: BTreeMap::new(), last: None, ready: Arc::new(Ready(Mutex::new((BTreeSet::new(), None)))) }
    }

    pub(super) fn insert(&mut self, key: K, part: P) {
        let waker = Waker::from(Arc::new(Wakes { key: key.clone(), ready: self.ready.clone() }));
        self.ready.lock().0.insert(key.clone());
        self.parts.insert(key, (part, waker));
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<P> {
        self.parts.remove(key).map(|(part, _)| part)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &P> {
        self.parts.values().map(|(part, _)| part)
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut P> {
        self.parts.values_mut().map(|(part, _)| part)
    }

    /// What one of them says, if any does; otherwise the waker is told when one may.
    pub(super) fn next<T>(
        &mut self,
        waker: &Waker,
        mut ask: impl FnMut(&mut P, &Waker) -> Option<T>,
    ) -> Option<(K, T)> {
        loop {
            let key = self.ready.take_after(self.last.as_ref(), waker)?;
            let Some((part, own)) = self.parts.get_mut(&key) else { continue };
            if let Some(said) = ask(part, own) {
                // It may have more to say.
                self.ready.lock().0.insert(key.clone());
                self.last = Some(key.clone());
                return Some((key, said));
            }
        }
    }
}

impl<K: Ord + Clone> Ready<K> {
    fn lock(&self) -> MutexGuard<'_, (BTreeSet<K>, Option<Waker>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_after(&self, last: Option<&K>, waker: &Waker) -> Option<K> {
        let mut state = self.lock();
        let (ready, known) = &mut *state;
        let after = last.and_then(|last| ready.range((Bound::Excluded(last), Bound::Unbounded)).next());
        let next = after.or_else(|| ready.first()).cloned();
        match &next {
            Some(next) => _ = ready.remove(next),
            None if known.as_ref().is_some_and(|known| known.will_wake(waker)) => {}
            None => *known = Some(waker.clone()),
        }
        next
    }
}

impl<K: Ord + Clone + Send + Sync + 'static> Wake for Wakes<K> {
    fn wake(self: Arc<Self>) {
        let waker = {
            let mut state = self.ready.lock();
            state.0.insert(self.key.clone());
            state.1.take()
        };
        // Not under the lock: whoever is woken may look at once.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_who_was_woken_is_asked_and_whoever_waits_is_told_once() {
        let (count, mut asked) = (Arc::new(Count(AtomicUsize::new(0))), Vec::new());
        let waker = Waker::from(count.clone());
        let mut parts = Parts::new();
        (0..3).for_each(|key| parts.insert(key, None::<Waker>));
        let mut ask = |parts: &mut Parts<i32, Option<Waker>>| {
            asked.clear();
            let said = parts.next(&waker, |part, own| {
                asked.push(part.is_some());
                *part = Some(own.clone());
                None::<()>
            });
            assert!(said.is_none());
            asked.len()
        };
        assert_eq!((ask(&mut parts), ask(&mut parts)), (3, 0));
        let wake = |parts: &Parts<i32, Option<Waker>>, key| parts.parts[&key].0.clone().unwrap().wake();
        wake(&parts, 1);
        wake(&parts, 1);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!((ask(&mut parts), ask(&mut parts)), (1, 0));
        wake(&parts, 2);
        parts.remove(&2);
        assert_eq!((count.0.load(Ordering::Relaxed), ask(&mut parts)), (2, 0));
    }

    #[test]
    fn who_always_has_news_does_not_keep_others_from_theirs() {
        let mut parts = Parts::new();
        (0..3).for_each(|key| parts.insert(key, ()));
        let told: Vec<_> =
            (0..6).filter_map(|_| parts.next(Waker::noop(), |(), _| Some(()))).map(|(key, ())| key).collect();
        assert_eq!(told, [0, 1, 2, 0, 1, 2]);
    }
}
