//! By what subscribers select among variants: each selector once, however many have it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::arena::Arena;
use crate::keys::SelectorKey;
use crate::variant::{DEFAULT, Selector};

/// The selectors in use, but for the default one, whose key is `None`.
#[derive(Default)]
pub(crate) struct Selectors {
    all: Arena<SelectorKey, (Arc<Selector>, u32)>,
    keys: HashMap<Arc<Selector>, SelectorKey>,
}

impl Selectors {
    /// The key of a selector that one more has.
    pub(crate) fn take(&mut self, selector: &Selector) -> Option<SelectorKey> {
        if selector.is_default() {
            return None;
        }
        if let Some(key) = self.keys.get(selector) {
            self.all[*key].1 += 1;
            return Some(*key);
        }
        let selector = Arc::new(selector.clone());
        let key = self.all.add((selector.clone(), 1));
        self.keys.insert(selector, key);
        Some(key)
    }

    /// One has it no more.
    pub(crate) fn release(&mut self, key: Option<SelectorKey>) {
        let Some(key) = key else { return };
        let (selector, count) = &mut self.all[key];
        *count -= 1;
        if *count == 0 {
            self.keys.remove(&**selector);
            self.all.remove(key);
        }
    }

    pub(crate) fn of(&self, key: Option<SelectorKey>) -> &Selector {
        key.map_or(&DEFAULT, |key| &self.all[key].0)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        assert_eq!(self.all.len(), self.keys.len());
        self.all.len()
    }
}
