//! Which variants a client was sent, and by which of its selections.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;
use xdstp_cache::{SubscriberId, Variant};
use xdstp_uri::ResourceName;

/// How many names a response tells to be gone, at most.
const MANY: usize = 1000;

/// `None` for what has no variants.
pub(crate) type Which = Option<Arc<Variant>>;

/// By name, what each selection has of it: one at most.
#[derive(Default)]
pub(crate) struct Held {
    names: HashMap<ResourceName, SmallVec<[(SubscriberId, Which); 1]>>,
}

/// What went with a response.
#[derive(Default)]
pub(crate) struct Went {
    names: BTreeMap<ResourceName, Gone>,
}

#[derive(Default)]
pub(crate) struct Gone {
    /// What nobody has any more, and who had it.
    pub(crate) variants: Vec<(Which, SubscriberId)>,
    /// Who asked for the name, and has nothing to lose.
    pub(crate) lacking: Vec<SubscriberId>,
    /// What was put with this response.
    put: Vec<Which>,
}

impl Held {
    /// A selection is sent a variant. Whether that is not in the response yet.
    pub(crate) fn put(
        &mut self,
        id: SubscriberId,
        name: &ResourceName,
        variant: Option<&Arc<Variant>>,
        replaces: &[Arc<Variant>],
        went: &mut Went,
    ) -> bool {
        let variant = variant.cloned();
        let of_name = self.names.entry(name.clone()).or_default();
        let before = of_name.iter_mut().find(|(holder, _)| *holder == id);
        let mut lost: SmallVec<[Which; 1]> = replaces.iter().map(normal).collect();
        match before {
            Some((_, held)) => lost.push(std::mem::replace(held, variant.clone())),
            None => of_name.push((id, variant.clone())),
        }
        let gone = went.names.entry(name.clone()).or_default();
        let is_first = !gone.put.contains(&variant);
        if is_first {
            gone.put.push(variant);
        }
        self.lose(id, name, lost, went);
        is_first
    }

    /// A selection has nothing of a name any more, of which it may have had these.
    pub(crate) fn remove(&mut self, id: SubscriberId, name: &ResourceName, variants: &[Arc<Variant>], went: &mut Went) {
        if name.is_glob() {
            // It is empty: so is what there was in it (rule 99).
            for (member, variant) in self.leave_all(id, |held| held.glob_parent().as_ref() != Some(name)) {
                self.lose(id, &member, SmallVec::from_iter([variant]), went);
            }
        }
        let mut lost: SmallVec<[Which; 1]> = variants.iter().map(normal).collect();
        lost.extend(self.take(id, name));
        if lost.is_empty() {
            went.names.entry(name.clone()).or_default().lacking.push(id);
        } else {
            self.lose(id, name, lost, went);
        }
    }

    /// What a selection has of a name.
    pub(crate) fn variant(&self, id: SubscriberId, name: &ResourceName) -> Which {
        self.names.get(name)?.iter().find(|(holder, _)| *holder == id)?.1.clone()
    }

    /// Whether any selection has anything of a name.
    pub(crate) fn has(&self, name: &ResourceName) -> bool {
        self.names.contains_key(name)
    }

    /// The client left a name: what it had of it.
    pub(crate) fn leave(&mut self, id: SubscriberId, name: &ResourceName) -> Vec<(ResourceName, Which)> {
        self.take(id, name).map(|variant| (name.clone(), variant)).into_iter().collect()
    }

    /// The client left what it does not keep: what that was.
    pub(crate) fn leave_all(
        &mut self,
        id: SubscriberId,
        keeps: impl Fn(&ResourceName) -> bool,
    ) -> Vec<(ResourceName, Which)> {
        let names = self.names.iter().filter(|(name, holders)| holders.iter().any(|(of, _)| *of == id) && !keeps(name));
        let names: Vec<_> = names.map(|(name, _)| name.clone()).collect();
        names.into_iter().filter_map(|name| Some((name.clone(), self.take(id, &name)?))).collect()
    }

    /// A selection may have a variant that it was not sent, unless it was sent one. Whether that is news.
    pub(crate) fn may_have(&mut self, id: SubscriberId, name: &ResourceName, variant: &Which) -> bool {
        let holders = self.names.entry(name.clone()).or_default();
        let is_new = !holders.iter().any(|(holder, _)| *holder == id);
        if is_new {
            holders.push((id, variant.clone()));
        }
        is_new
    }

    fn take(&mut self, id: SubscriberId, name: &ResourceName) -> Option<Which> {
        let holders = self.names.get_mut(name)?;
        let at = holders.iter().position(|(holder, _)| *holder == id)?;
        let (_, variant) = holders.swap_remove(at);
        if holders.is_empty() {
            self.names.remove(name);
        }
        Some(variant)
    }

    fn lose(&self, id: SubscriberId, name: &ResourceName, lost: SmallVec<[Which; 1]>, went: &mut Went) {
        let gone = went.names.entry(name.clone()).or_default();
        for variant in lost {
            if !gone.variants.iter().any(|(known, _)| *known == variant) {
                gone.variants.push((variant, id));
            }
        }
    }

    fn holds(&self, name: &ResourceName, variant: &Which) -> bool {
        self.names.get(name).is_some_and(|holders| holders.iter().any(|(_, held)| held == variant))
    }
}

impl Went {
    /// Whether there is enough for one response.
    pub(crate) fn is_long(&self) -> bool {
        self.names.len() >= MANY
    }

    /// By name, what is gone: not what another selection still has.
    pub(crate) fn into_names(self, held: &Held) -> BTreeMap<ResourceName, Gone> {
        let gone = self.names.into_iter().filter_map(|(name, mut gone)| {
            let Gone { variants, lacking, put } = &mut gone;
            variants.retain(|(variant, _)| !put.contains(variant) && !held.holds(&name, variant));
            (!variants.is_empty() || !lacking.is_empty()).then_some((name, gone))
        });
        gone.collect()
    }

    /// What is for another response.
    pub(crate) fn later(mut names: BTreeMap<ResourceName, Gone>) -> Self {
        names.values_mut().for_each(|gone| gone.put.clear());
        Self { names }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

fn normal(variant: &Arc<Variant>) -> Which {
    Some(variant.clone()).filter(|variant| !variant.is_plain())
}
