//! The scopes of authorities that have had resources of others, because an alias is wanted there (rule 105).

use std::sync::{Arc, Mutex, Weak};

use crate::federation::lock::lock;
use crate::federation::scope::Scope;

/// Those of one origin. Of any other scope of an authority it is known, without a look, that it has nothing of the rest: a client
/// may name a thousand.
#[derive(Default)]
pub(crate) struct Mixed(Mutex<Vec<Weak<Scope>>>);

impl Mixed {
    /// A resource comes to a scope. To be called before anybody can see it there.
    pub(crate) fn comes(&self, authority: Option<&str>, to: &Arc<Scope>) {
        if to.key.authority().is_none_or(|own| Some(own) == authority) {
            return;
        }
        let mut scopes = lock(&self.0);
        scopes.retain(|scope| scope.strong_count() > 0);
        if !scopes.iter().any(|scope| std::ptr::eq(scope.as_ptr(), Arc::as_ptr(to))) {
            scopes.push(Arc::downgrade(to));
        }
    }

    pub(crate) fn scopes(&self) -> Vec<Arc<Scope>> {
        lock(&self.0).iter().filter_map(Weak::upgrade).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::federation::scope_key::ScopeKey;

    #[test]
    fn a_scope_is_mixed_once_something_of_another_authority_comes_and_as_long_as_it_is_there() {
        let scope = |key| Arc::new(Scope::authoritative(key, 0, 1));
        let (mixed, a) = (Mixed::default(), scope(ScopeKey::Authority("a".into())));
        mixed.comes(Some("a"), &a);
        mixed.comes(Some("b"), &scope(ScopeKey::Private(1)));
        mixed.comes(None, &scope(ScopeKey::EveryNode));
        assert!(mixed.scopes().is_empty());
        mixed.comes(Some("b"), &a);
        mixed.comes(None, &a);
        assert_eq!(mixed.scopes().len(), 1);
        drop(a);
        assert!(mixed.scopes().is_empty());
    }
}
