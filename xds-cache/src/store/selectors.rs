//! By what subscribers select among variants: each selector once, however many have it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::arena::Arena;
use crate::keys::SelectorKey;
use crate::variant::{DEFAULT, Selector};

/// The selectors in use, but for the default one, whose key is `None`.
///
/// Most caches have none: there may be one for every node group.
#[derive(Default)]
pub(crate) struct Selectors(Option<Box<InUse>>);

#[derive(Default)]
struct InUse {
    all: Arena<SelectorKey, (Arc<Selector>, u32)>,
    keys: HashMap<Arc<Selector>, SelectorKey>,
}

impl Selectors {
    /// The key of a selector that one more has.
    pub(crate) fn take(&mut self, selector: &Selector) -> Option<SelectorKey> {
        if selector.is_default() {
            return None;
        }
        let InUse { all, keys } = &mut **self.0.get_or_insert_default();
        if let Some(key) = keys.get(selector) {
            all[*key].1 += 1;
            return Some(*key);
        }
        let selector = Arc::new(selector.clone());
        let key = all.add((selector.clone(), 1));
        keys.insert(selector, key);
        Some(key)
    }

    /// One has it no more.
    pub(crate) fn release(&mut self, key: Option<SelectorKey>) {
        let (Some(key), Some(in_use)) = (key, &mut self.0) else { return };
        let InUse { all, keys } = &mut **in_use;
        let (selector, count) = &mut all[key];
        *count -= 1;
        if *count == 0 {
            keys.remove(&**selector);
            all.remove(key);
        }
        if keys.is_empty() {
            self.0 = None;
        }
    }

    pub(crate) fn of(&self, key: Option<SelectorKey>) -> &Selector {
        match (key, &self.0) {
            (Some(key), Some(in_use)) => &in_use.all[key].0,
            _ => &DEFAULT,
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let Some(in_use) = &self.0 else { return 0 };
        assert_eq!(in_use.all.len(), in_use.keys.len());
        in_use.all.len()
    }
}
