//! What clients of delta are told of variants, as it travels: rule 119.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::walk::{Field, FieldValue, Fields, text_at};
use xds_transport::wire::{DeltaDiscoveryResponse, Resource};

use crate::support::{DELTA, Protocol};

/// A name with the constraints of a variant, encoded: nothing, of what is for everybody.
pub(super) type Variant = (String, Bytes);

#[derive(Default)]
pub(super) struct Removals {
    delta: BTreeSet<usize>,
    /// Those that are told constraints.
    told: BTreeSet<usize>,
    /// The variant of each name that a client was sent last.
    variants: BTreeMap<usize, BTreeMap<String, Bytes>>,
    pub(super) wrong: Option<String>,
}

impl Removals {
    pub(super) fn sit(&mut self, client: usize, protocol: Protocol, is_told: bool) {
        self.delta.extend((protocol == DELTA).then_some(client));
        self.told.extend(is_told.then_some(client));
    }

    pub(super) fn speaks_delta(&self, client: usize) -> bool {
        self.delta.contains(&client)
    }

    /// It left a name; or all of them, as what it says on another stream has no variants.
    pub(super) fn forget(&mut self, client: usize, name: Option<&str>) {
        let of = self.variants.entry(client).or_default();
        of.retain(|held, _| name.is_some_and(|name| held != name));
    }

    pub(super) fn hears(&mut self, client: usize, response: &Bytes) {
        if self.told.contains(&client)
            && let Err(wrong) = self.check(client, response)
        {
            self.wrong.get_or_insert(wrong);
        }
    }

    fn check(&mut self, client: usize, response: &Bytes) -> Result<(), String> {
        let response = DeltaDiscoveryResponse::decode(response.clone()).unwrap();
        let held = self.variants.entry(client).or_default();
        let removed: Vec<Variant> = response.removed_resource_names.iter().map(variant).collect();
        for (name, variant) in &removed {
            if held.get(name).is_some_and(|held| held != variant) {
                return Err(format!("rule 119: of {name} another variant is removed than the client has"));
            }
        }
        for name in &response.removed_resources {
            if held.remove(name).is_some_and(|held| !held.is_empty()) {
                return Err(format!("rule 119: it is not said which variant of {name} is removed"));
            }
        }
        for resource in &response.resources {
            let (name, variant) = named(resource);
            let before = held.insert(name.clone(), variant.clone());
            let is_replaced = before.filter(|before| !before.is_empty() && *before != variant);
            if is_replaced.is_some_and(|before| !removed.contains(&(name.clone(), before))) {
                return Err(format!("rule 119: a variant of {name} takes the place of one that is not removed"));
            }
        }
        held.retain(|name, held| !removed.contains(&(name.clone(), held.clone())));
        Ok(())
    }
}

pub(super) fn named(resource: &Resource) -> Variant {
    match resource.resource_name.is_empty() {
        true => (resource.name.clone(), Bytes::new()),
        false => variant(&resource.resource_name),
    }
}

/// What a `ResourceName` says.
pub(super) fn variant(name: &Bytes) -> Variant {
    let constraints = Fields::of(name).filter_map(|field| match field.unwrap() {
        Field { number: 2, value: FieldValue::Bytes(constraints) } => Some(Bytes::copy_from_slice(constraints)),
        _ => None,
    });
    (text_at(name, &[1]).unwrap_or_default().to_owned(), constraints.last().unwrap_or_default())
}
