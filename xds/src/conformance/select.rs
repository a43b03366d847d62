//! Which checks are run, and in which order.

use std::str::FromStr;

use xds_transport::Dialect;

use super::check::Check;
use super::rules;

/// Rules by number, or a group of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Rules(u16, u16),
    Group(String),
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        if let (Ok(first), Ok(last)) = (first.parse(), last.parse()) {
            return Ok(Self::Rules(first, last));
        }
        let mut groups: Vec<_> = rules::all().map(|check| check.group).collect();
        groups.dedup();
        if groups.contains(&text) {
            return Ok(Self::Group(text.to_owned()));
        }
        Err(format!("expected the number of a rule, a range such as 48-57, or one of {}", groups.join(", ")))
    }
}

impl Selection {
    fn has(&self, check: &Check) -> bool {
        match self {
            Self::Rules(first, last) => (*first..=*last).contains(&check.rule),
            Self::Group(group) => group == check.group,
        }
    }
}

/// In the order of their numbers.
pub(crate) fn select(only: &[Selection], skip: &[Selection], dialect: Dialect) -> Vec<&'static Check> {
    let is_among = |all: &[Selection], check: &Check| all.iter().any(|one| one.has(check));
    let is_of = |check: &Check| check.dialect.is_none_or(|of| of == dialect);
    let is_chosen = |check: &Check| (only.is_empty() || is_among(only, check)) && !is_among(skip, check);
    let mut checks: Vec<_> = rules::all().filter(|check| is_of(check) && is_chosen(check)).collect();
    checks.sort_by_key(|check| check.rule);
    checks
}

/// Another order for each seed, and always the same one for it.
pub(crate) fn shuffle<T>(all: &mut [T], seed: u64) {
    let mut state = seed;
    for at in (1..all.len()).rev() {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let other = (mixed ^ (mixed >> 31)) % (at as u64 + 1);
        all.swap(at, other as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn rules_of(only: &[&str], skip: &[&str]) -> Vec<u16> {
        let parsed = |all: &[&str]| all.iter().map(|one| one.parse().unwrap()).collect::<Vec<Selection>>();
        select(&parsed(only), &parsed(skip), Dialect::Final).iter().map(|check| check.rule).collect()
    }

    #[test]
    fn rules_are_chosen_by_number_range_and_group() {
        assert_eq!(rules_of(&["13"], &[]), [13]);
        assert_eq!(rules_of(&["13-18"], &["16-17"]), [13, 18]);
        let nonces = rules_of(&["nonces"], &[]);
        assert!(nonces.contains(&13) && !nonces.contains(&139));
        assert!("nonsense".parse::<Selection>().unwrap_err().contains("nonces"));
    }

    #[test]
    fn there_are_checks_of_many_rules_each_with_a_method() {
        let rules: BTreeSet<_> = rules_of(&[], &[]).into_iter().collect();
        assert!(rules.len() >= 60, "{}", rules.len());
        assert!(rules::all().all(|check| !check.methods.is_empty() && !check.consequence.is_empty()));
    }

    #[test]
    fn a_seed_is_an_order() {
        let order = |seed| {
            let mut all: Vec<_> = (0..20).collect();
            shuffle(&mut all, seed);
            all
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        assert_eq!(order(7).into_iter().collect::<BTreeSet<_>>().len(), 20);
    }
}
