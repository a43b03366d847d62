//! Who asks for variants: all that a stream asks for, it asks for with the same parameters or constraints (TP2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use xdstp_cache::{Selector, Variant};
use xdstp_uri::ResourceName;

use crate::Dialect;
use crate::response::{Received, Rejected, Response};
use crate::wire::parameters::{Locator, LocatorError};
use crate::wire::walk;

/// By what a stream selects, and how its server is told so.
#[derive(Debug)]
pub(crate) struct Selecting {
    selector: Selector,
    /// What of a locator follows the name.
    encoded: Bytes,
}

impl Selecting {
    pub(crate) fn new(dialect: Dialect, selector: Selector) -> Result<Self, LocatorError> {
        let locator = Locator::new("", selector);
        let encoded = locator.encode(dialect)?;
        Ok(Self { selector: locator.selector, encoded })
    }

    /// How many bytes it takes beside each name.
    pub(crate) fn size(&self) -> usize {
        self.encoded.len()
    }

    /// An encoded `ResourceLocator`.
    pub(crate) fn locator(&self, name: &str) -> Bytes {
        let mut encoded = Vec::with_capacity(name.len() + self.encoded.len() + 8);
        walk::put_bytes(&mut encoded, 1, name.as_bytes());
        encoded.extend_from_slice(&self.encoded);
        encoded.into()
    }
}

/// Which variants are held, of those names that have any.
///
/// Of one name there is one at a time: the next takes its place, whether the server says that the other is gone or not. A
/// server that has two for the same parameters is [told apart](Overlapping), and the first of them in a response counts, or the last
/// that came.
#[derive(Debug, Default)]
pub(crate) struct Variants(BTreeMap<ResourceName, HeldVariant>);

#[derive(Debug)]
struct HeldVariant {
    variant: Arc<Variant>,
    /// It came on this stream: of what came before, a server does not know which variant is held.
    is_of_stream: bool,
}

/// Two variants of a name that are for the same parameters: the one that counts, and one that does not.
pub type Overlapping = (ResourceName, Arc<Variant>, Arc<Variant>);

impl Variants {
    /// Makes of a response what it says to one who asks with these parameters: resources and names that are gone.
    /// Who `says_removals`, as delta does, says with a variant that the one before is gone (rule 119): if not, it has both.
    pub(crate) fn read(
        &mut self,
        response: &mut Response,
        selecting: Option<&Selecting>,
        says_removals: bool,
    ) -> Vec<Overlapping> {
        let has_variants = response.resources.iter().any(|resource| variant(resource).is_some());
        if !has_variants && response.removed_variants.is_empty() && self.0.is_empty() {
            return Vec::new();
        }
        let none = Selector::default();
        let selector = selecting.map_or(&none, |selecting| &selecting.selector);
        let mut overlapping = if has_variants { keep_one_of_each(response, selector) } else { Vec::new() };
        if says_removals {
            let told: BTreeSet<_> = overlapping.iter().map(|(name, ..)| name.clone()).collect();
            overlapping.extend(self.beside_held(response).filter(|(name, ..)| !told.contains(name)));
        }
        let held = &mut self.0;
        for (name, gone) in std::mem::take(&mut response.removed_variants) {
            let is_put = response.resources.iter().any(|resource| resource.name == name);
            let is_its = match held.get(&name) {
                Some(held) => *held.variant == gone,
                None => gone.is_for(selector),
            };
            if !is_put && is_its && !response.removed.contains(&name) {
                response.removed.push(name);
            }
        }
        for resource in &response.resources {
            match variant(resource) {
                Some(variant) => {
                    let variant = HeldVariant { variant: variant.clone(), is_of_stream: true };
                    held.insert(resource.name.clone(), variant);
                }
                // A heartbeat says nothing of it.
                None if resource.frame.is_some() => _ = held.remove(&resource.name),
                None => {}
            }
        }
        response.removed.iter().for_each(|name| _ = held.remove(name));
        overlapping
    }

    /// What of a response takes the place of another variant that is not said to be gone. Of the draft, variants may be for the same.
    fn beside_held(&self, response: &Response) -> impl Iterator<Item = Overlapping> {
        let beside = move |resource: &Received| {
            let variant = variant(resource).filter(|variant| matches!(***variant, Variant::Constraints(_)))?;
            let held = self.0.get(&resource.name).filter(|held| held.is_of_stream && held.variant != *variant)?;
            let is_gone = |(name, gone): &(ResourceName, Variant)| *name == resource.name && *gone == *held.variant;
            let is_said = response.removed.contains(&resource.name) || response.removed_variants.iter().any(is_gone);
            (!is_said).then(|| (resource.name.clone(), variant.clone(), held.variant.clone()))
        };
        response.resources.iter().filter_map(beside)
    }

    /// What is held is of a stream that is over.
    pub(crate) fn forget_stream(&mut self) {
        self.0.values_mut().for_each(|held| held.is_of_stream = false);
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&ResourceName) -> bool) {
        self.0.retain(|name, _| keep(name));
    }
}

fn variant(resource: &Received) -> Option<&Arc<Variant>> {
    resource.frame.as_ref()?.variant()
}

/// What is for others is refused: nobody asked for it. Of what is for the same parameters the first counts.
fn keep_one_of_each(response: &mut Response, selector: &Selector) -> Vec<Overlapping> {
    let mut first: BTreeMap<ResourceName, Arc<Variant>> = BTreeMap::new();
    let mut overlapping = Vec::new();
    let mut rejected = Vec::new();
    for resource in &response.resources {
        let Some(variant) = variant(resource) else { continue };
        if !variant.is_for(selector) {
            rejected.push(Rejected::new(
                resource.name.as_str(),
                format!("a variant for {variant}, which was asked for with {selector}"),
            ));
            continue;
        }
        match first.get_mut(&resource.name) {
            None => _ = first.insert(resource.name.clone(), variant.clone()),
            Some(other) => {
                let (served, unserved) = if variant < other { (variant, &*other) } else { (&*other, variant) };
                let (served, unserved) = (served.clone(), unserved.clone());
                overlapping.push((resource.name.clone(), served.clone(), unserved));
                *other = served;
            }
        }
    }
    response.resources.retain(|resource| match variant(resource) {
        Some(variant) => first.get(&resource.name) == Some(variant),
        None => true,
    });
    // What another variant of the response answers is not refused.
    rejected.retain(|rejected| !first.keys().any(|name| name.as_str() == rejected.name));
    response.rejected.extend(rejected);
    overlapping
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;

    fn response(variants: &[&str]) -> Response {
        let received = |variant: &&str| {
            let variant = Variant::Constraints(variant.parse().unwrap());
            let frame = Frame::of_message(&"T".into(), b"").of_variant(Some(variant));
            Received { name: "cart".parse().unwrap(), version: None, frame: Some(frame), ttl: None }
        };
        Response { resources: variants.iter().map(received).collect(), ..Response::default() }
    }

    fn production() -> Selecting {
        Selecting::new(Dialect::Final, [("env", "prod")].into()).unwrap()
    }

    #[test]
    fn of_two_variants_for_the_same_parameters_the_first_counts_and_both_are_told() {
        for order in [["env=prod", "exists(env)"], ["exists(env)", "env=prod"]] {
            let mut response = response(&order);
            let overlapping = Variants::default().read(&mut response, Some(&production()), true);
            let [(_, served, other)] = overlapping.as_slice() else { panic!("{overlapping:?}") };
            assert!(served < other, "{order:?}");
            assert!(response.resources.iter().map(variant).eq([Some(served)]));
            assert!(response.rejected.is_empty());
        }
    }

    #[test]
    fn what_is_for_others_is_refused_unless_another_variant_of_its_name_is_not() {
        for (variants, refused) in [(&["env=test"][..], 1), (&["env=test", "env=prod"], 0)] {
            let mut response = response(variants);
            assert!(Variants::default().read(&mut response, Some(&production()), true).is_empty());
            let left = (response.resources.len(), response.rejected.len());
            assert_eq!(left, (variants.len() - 1, refused), "{variants:?}");
        }
    }

    /// As a server of delta sends them one after the other: the first is not said to be gone.
    #[test]
    fn of_two_variants_for_the_same_parameters_in_two_responses_the_last_counts_and_both_are_told() {
        let said = |then: &dyn Fn(&mut Variants, &mut Response), says_removals: bool| {
            let mut variants = Variants::default();
            assert!(variants.read(&mut response(&["env=prod"]), Some(&production()), says_removals).is_empty());
            let mut next = response(&["exists(env)"]);
            then(&mut variants, &mut next);
            let told = variants.read(&mut next, Some(&production()), says_removals);
            assert_eq!((next.resources.len(), next.rejected.len()), (1, 0));
            told.into_iter().map(|(name, served, other)| format!("{name} {served} {other}")).collect::<Vec<_>>()
        };
        let gone = |variant: &str| ("cart".parse().unwrap(), Variant::Constraints(variant.parse().unwrap()));
        let nothing: &dyn Fn(&mut Variants, &mut Response) = &|_, _| {};
        assert_eq!(said(nothing, true), ["cart exists(env) env=prod"]);
        assert_eq!(said(nothing, false), [""; 0], "SotW has no words for it");
        assert_eq!(said(&|_, next| next.removed_variants = vec![gone("env=prod")], true), [""; 0]);
        assert_eq!(said(&|_, next| next.removed_variants = vec![gone("env=test")], true).len(), 1);
        assert_eq!(said(&|_, next| next.removed = vec!["cart".parse().unwrap()], true), [""; 0]);
        assert_eq!(said(&|variants, _| variants.forget_stream(), true), [""; 0], "the server does not know of it");
        let mut same = Variants::default();
        for _ in 0..2 {
            assert!(same.read(&mut response(&["env=prod"]), Some(&production()), true).is_empty());
        }
    }
}
