//! Who selects among variants by what.

use crate::arena::Key;
use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{SelectorKey, Target};
use crate::text::TypeUrl;
use crate::variant::Selector;

impl<V> Cache<V> {
    /// A new subscriber, as [`open`](Self::open) makes one, that selects among variants by this (TP2): whatever it is interested
    /// in, by name, glob or wildcard, it gets of each name the variant that is for it, and of a name of which none is, it is
    /// told as of one that does not exist.
    ///
    /// A client may send other parameters for other names: a subscriber for each set of parameters has what is asked for with
    /// that, as a stream has a subscriber for each type.
    pub fn open_selecting(&mut self, type_url: &TypeUrl, selector: &Selector) -> SubscriberId {
        let key = self.store.selectors.take(selector);
        self.open_as(type_url, key)
    }

    /// By what a subscriber selects.
    pub fn selector(&self, id: SubscriberId) -> Option<&Selector> {
        self.is_open(id).then(|| self.store.selectors.of(self.subscribers[id].selector))
    }

    /// By what those select who want this: each once, however many they are. With the name of the interest these are the
    /// selections that a relay has to ask its origin for.
    ///
    /// A variant that is here says nothing of the others that there may be upstream: by the draft, a larger one may be
    /// preferred. So what is wanted is to be asked for whatever is here.
    ///
    /// ```
    /// use xds_matcher::DynamicParameters;
    /// use xdstp_cache::{Cache, Interest, Options, Selector};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let cart = Interest::Name("cart".parse()?);
    /// let mut cache = Cache::<()>::new(Options::default());
    /// let canary = Selector::Parameters(DynamicParameters::from_iter([("env", "canary")]));
    /// for selector in [&Selector::default(), &canary, &canary] {
    ///     let subscriber = cache.open_selecting(&clusters, selector);
    ///     cache.subscribe(subscriber, &cart);
    /// }
    /// assert_eq!(cache.selections(&clusters, &cart), [&Selector::default(), &canary]);
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn selections(&self, type_url: &TypeUrl, interest: &Interest) -> Vec<&Selector> {
        let type_key = self.store.type_keys.get(type_url);
        let target = type_key.and_then(|type_key| self.store.existing_target(*type_key, interest));
        let Some(target) = target else { return Vec::new() };
        let selecting = &self.subscribers.selecting;
        let others = selecting.range((target, SelectorKey::FIRST)..).take_while(|((of, _), _)| *of == target);
        let mut keys: Vec<_> = others.map(|((_, key), count)| (Some(*key), *count)).collect();
        let by_default = self.watchers(target) - keys.iter().map(|(_, count)| count).sum::<u32>();
        keys.extend((by_default > 0).then_some((None, by_default)));
        keys.sort_unstable();
        keys.into_iter().map(|(key, _)| self.store.selectors.of(key)).collect()
    }

    /// Whether nobody else of those who want a target selects by what a subscriber does.
    pub(crate) fn selects_alone(&self, id: SubscriberId, target: Target) -> bool {
        let selecting = &self.subscribers.selecting;
        if selecting.is_empty() {
            return false;
        }
        match self.subscribers[id].selector {
            Some(key) => selecting.get(&(target, key)) == Some(&1),
            None => {
                let others = selecting.range((target, SelectorKey::FIRST)..).take_while(|((of, _), _)| *of == target);
                self.watchers(target) - others.map(|(_, count)| count).sum::<u32>() == 1
            }
        }
    }

    pub(crate) fn watchers(&self, target: Target) -> u32 {
        match target {
            Target::Slot(at) => self.store[at].watchers.count,
            Target::List(at) => self.store[at].watchers.count,
        }
    }
}
