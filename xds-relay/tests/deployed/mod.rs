//! The dashboard, the rules of alerts, and what operators are to do: all of what relays tell, and of nothing else. And what relays
//! are told where they are deployed.

mod alerts;
mod board;
mod expression;
mod manifests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A file of the repository, which a package of this crate does not have.
fn of_repository(path: &str) -> Option<String> {
    fs::read_to_string(format!("../{path}")).ok()
}

/// What a relay tells: each number with the labels that it has.
fn told() -> BTreeMap<String, BTreeSet<String>> {
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in super::everything().lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) =
            line.rsplit_once(' ').unwrap().0.split_once('{').unwrap_or((line.split(' ').next().unwrap(), ""));
        let labels = labels.split(',').filter_map(|label| label.split_once('=')).map(|(label, _)| label.to_owned());
        told.entry(name.to_owned()).or_default().extend(labels);
    }
    told
}
