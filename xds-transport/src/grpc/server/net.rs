//! What a change comes to: of what it says of a name, the later voids the earlier.

use std::collections::{BTreeMap, HashMap};

use xdstp_cache::{Resource, TypeUrl, Variant};
use xdstp_uri::ResourceName;

use crate::frame::Frame;
use crate::grpc::server::served::ServedEdit;

/// A type, and a name of it.
pub(crate) type Key = (TypeUrl, ResourceName);

/// What a change says of a name, or of a variant of it.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) type_url: TypeUrl,
    pub(crate) name: ResourceName,
    /// None where it is of the whole name.
    pub(crate) variant: Option<Variant>,
    /// None where it is gone.
    pub(crate) resource: Option<Resource<Frame>>,
}

/// What a change comes to for one name.
#[derive(Debug, Default)]
pub(crate) struct Net {
    /// Nothing that the name had before is left.
    pub(crate) anew: bool,
    /// The variants that are put, and those that are gone: of one that is not among them nothing is said.
    pub(crate) variants: BTreeMap<Variant, Option<Resource<Frame>>>,
}

/// What a change comes to, in order of where a name is spoken of first.
pub(crate) fn net_of(items: impl IntoIterator<Item = Item>) -> Vec<(Key, Net)> {
    let mut at = HashMap::new();
    let mut all: Vec<(Key, Net)> = Vec::new();
    for Item { type_url, name, variant, resource } in items {
        let key = (type_url, name);
        let at = *at.entry(key.clone()).or_insert(all.len());
        if at == all.len() {
            all.push((key, Net::default()));
        }
        if let Some((_, net)) = all.get_mut(at) {
            net.then(variant, resource);
        }
    }
    all
}

impl Net {
    fn then(&mut self, variant: Option<Variant>, resource: Option<Resource<Frame>>) {
        let Some(variant) = variant else {
            self.anew = true;
            let there = resource.map(|resource| (Variant::plain().clone(), Some(resource)));
            self.variants = there.into_iter().collect();
            return;
        };
        // The draft has a plain one of its own.
        let variant = if variant.is_plain() { Variant::plain().clone() } else { variant };
        self.variants.insert(variant, resource);
    }
}

/// Does it.
pub(crate) fn take(change: Vec<(Key, Net)>, edit: &mut ServedEdit<'_>) {
    let mut varied = Vec::new();
    for ((type_url, name), Net { anew, mut variants }) in change {
        if anew {
            let others = edit.cache.variants(&type_url, &name).map(|(variant, _)| variant);
            let others: Vec<_> = others.filter(|there| !variants.contains_key(there)).cloned().collect();
            let is_plain = variants.len() == 1 && others.iter().all(Variant::is_plain);
            if let (true, Some(Some(resource))) = (is_plain, variants.get(Variant::plain())) {
                _ = edit.put_fitting(&type_url, &name, resource.clone());
                continue;
            }
            if variants.values().all(Option::is_none) {
                edit.remove(&type_url, &name);
                continue;
            }
            variants.extend(others.into_iter().map(|other| (other, None)));
        }
        let of_name = |(variant, resource)| (type_url.clone(), name.clone(), variant, resource);
        varied.extend(variants.into_iter().map(of_name));
    }
    // What takes the place of another does so in one step.
    edit.vary(varied);
}
