//! Which keys the constraints of variants have.

use std::collections::BTreeSet;

use xdstp_cache::Variant;

/// The first of the variants of a name whose constraints have other keys than those of the first one: where it is among them, and what
/// is so. Who is served it may depend on what another does not ask for, so that TP2 advises against that.
pub(super) fn other_keys<'a>(variants: impl IntoIterator<Item = Option<&'a Variant>>) -> Option<(usize, String)> {
    let mut variants = variants.into_iter().enumerate().filter_map(|(at, variant)| match variant {
        Some(Variant::Constraints(constraints)) => Some((at, constraints, constraints.keys().collect::<BTreeSet<_>>())),
        _ => None,
    });
    let (_, first, expected) = variants.next()?;
    let (at, other, keys) = variants.find(|(.., keys)| *keys != expected)?;
    let (keys, expected) = (listed(&keys), listed(&expected));
    let words = format!("for `{other}` has the keys {keys}, and that for `{first}` has {expected}");
    Some((at, format!("{words}: TP2 would have all variants of a name have the same")))
}

fn listed(keys: &BTreeSet<&str>) -> String {
    match keys.len() {
        0 => "none".to_owned(),
        _ => keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", "),
    }
}
