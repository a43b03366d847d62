//! A second, slow reading of the specification, and random things to compare it on.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use xds_matcher::{Constraint, DynamicParameters, IntRange};

pub(crate) const KEYS: [&str; 2] = ["a", "b"];
const VALUES: [&str; 6] = ["", "5", "05", "7", "x", "and y"];

pub(crate) type Parameters = BTreeMap<String, String>;

#[derive(Debug, Clone)]
pub(crate) enum Tree {
    True,
    Value(String, String),
    Exists(String),
    IntIn(String, Vec<(u64, u64)>),
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
}

impl Tree {
    pub(crate) fn holds(&self, parameters: &Parameters) -> bool {
        match self {
            Self::True => true,
            Self::Value(key, value) => parameters.get(key) == Some(value),
            Self::Exists(key) => parameters.contains_key(key),
            Self::IntIn(key, ranges) => {
                let integer = parameters.get(key).and_then(|value| integer(value));
                integer.is_some_and(|n| ranges.iter().any(|(min, max)| (min..=max).contains(&&n)))
            }
            Self::All(trees) => trees.iter().all(|tree| tree.holds(parameters)),
            Self::Any(trees) => trees.iter().any(|tree| tree.holds(parameters)),
            Self::Not(tree) => !tree.holds(parameters),
        }
    }

    pub(crate) fn to_constraint(&self) -> Constraint {
        let all = |trees: &[Self]| trees.iter().map(Self::to_constraint).collect::<Vec<_>>();
        match self {
            Self::True => Constraint::unconstrained(),
            Self::Value(key, value) => Constraint::value(key.as_str(), value.as_str()),
            Self::Exists(key) => Constraint::exists(key.as_str()),
            Self::IntIn(key, ranges) => {
                let ranges = ranges.iter().map(|&(min, max)| IntRange::new(min, max).unwrap());
                Constraint::int_in(key.as_str(), ranges).unwrap()
            }
            Self::All(trees) => Constraint::all(all(trees)).unwrap(),
            Self::Any(trees) => Constraint::any(all(trees)).unwrap(),
            Self::Not(tree) => tree.to_constraint().negate().unwrap(),
        }
    }
}

/// Digits only, by hand.
pub(crate) fn integer(value: &str) -> Option<u64> {
    let digits = value.bytes().map(|byte| byte.is_ascii_digit().then(|| u64::from(byte - b'0')));
    let add = |n: Option<u64>, digit: Option<u64>| n?.checked_mul(10)?.checked_add(digit?);
    if value.is_empty() { None } else { digits.fold(Some(0), add) }
}

/// Bytes as a source of choices; when they run out every choice is the first.
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl Choices<'_> {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % n
    }

    pub(crate) fn key(&mut self) -> String {
        KEYS[self.below(KEYS.len())].to_owned()
    }

    pub(crate) fn value(&mut self) -> String {
        VALUES[self.below(VALUES.len())].to_owned()
    }

    pub(crate) fn ranges(&mut self) -> Vec<(u64, u64)> {
        let range = |choices: &mut Self| {
            let (min, length) = (choices.below(9) as u64, choices.below(4) as u64);
            if length == 3 { (min, u64::MAX) } else { (min, min + length) }
        };
        (0..=self.below(2)).map(|_| range(self)).collect()
    }

    pub(crate) fn tree(&mut self, depth: usize, ranges: bool) -> Tree {
        let kinds = if depth == 0 { 4 } else { 8 };
        match self.below(kinds) {
            0 => Tree::Value(self.key(), self.value()),
            1 => Tree::Exists(self.key()),
            2 if ranges => Tree::IntIn(self.key(), self.ranges()),
            2 => Tree::Value(self.key(), self.value()),
            3 => Tree::True,
            4 => Tree::Not(Box::new(self.tree(depth - 1, ranges))),
            5 => Tree::Any(self.trees(depth - 1, ranges)),
            _ => Tree::All(self.trees(depth - 1, ranges)),
        }
    }

    /// What variants mostly look like: for some keys a value, a few, a range, or absence.
    pub(crate) fn variant(&mut self) -> Tree {
        let key = |choices: &mut Self, key: &str| match choices.below(13) {
            0 => Tree::All(Vec::new()),
            1 => Tree::Not(Box::new(Tree::Exists(key.to_owned()))),
            2 => Tree::Any(vec![
                Tree::Value(key.to_owned(), choices.value()),
                Tree::Value(key.to_owned(), choices.value()),
            ]),
            3 | 4 => Tree::IntIn(key.to_owned(), choices.ranges()),
            5 => Tree::Any(vec![
                Tree::Value(key.to_owned(), choices.value()),
                Tree::IntIn(key.to_owned(), choices.ranges()),
            ]),
            6 => Tree::Exists(key.to_owned()),
            7 | 8 => Tree::Not(Box::new(Tree::Value(key.to_owned(), choices.value()))),
            9 => Tree::Not(Box::new(Tree::IntIn(key.to_owned(), choices.ranges()))),
            10 => Tree::Any(vec![
                Tree::Not(Box::new(Tree::IntIn(key.to_owned(), choices.ranges()))),
                Tree::Value(key.to_owned(), choices.value()),
            ]),
            _ => Tree::Value(key.to_owned(), choices.value()),
        };
        Tree::All(KEYS.into_iter().map(|name| key(self, name)).collect())
    }

    fn trees(&mut self, depth: usize, ranges: bool) -> Vec<Tree> {
        (0..self.below(4)).map(|_| self.tree(depth, ranges)).collect()
    }

    pub(crate) fn parameters(&mut self) -> Parameters {
        (0..self.below(3)).map(|_| (self.key(), self.value())).collect()
    }
}

/// Parameters enough to tell any two trees over [`KEYS`], `VALUES` and small ranges apart, in both representations.
pub(crate) fn all_parameters() -> impl Iterator<Item = &'static (Parameters, DynamicParameters)> + Clone {
    static ALL: LazyLock<Vec<(Parameters, DynamicParameters)>> = LazyLock::new(|| {
        let mentioned = VALUES.map(String::from);
        // Spelt so that no tree mentions them.
        let integers = (0..13).map(|n| format!("000{n}")).chain([format!("0{}", u64::MAX)]);
        let values: Vec<_> =
            mentioned.into_iter().chain(integers).chain(["else".to_owned()]).map(Some).chain([None]).collect();
        let pair = |a: &Option<String>, b: &Option<String>| -> Parameters {
            KEYS.into_iter().zip([a, b]).filter_map(|(key, value)| Some((key.to_owned(), value.clone()?))).collect()
        };
        let all = values.iter().flat_map(|a| values.iter().map(move |b| pair(a, b)));
        all.map(|parameters| (parameters.clone(), to_dynamic(&parameters))).collect()
    });
    ALL.iter()
}

pub(crate) fn to_dynamic(parameters: &Parameters) -> DynamicParameters {
    parameters.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}
