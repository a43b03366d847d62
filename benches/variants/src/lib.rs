//! The questions that the benchmark and the instruction count put to `xds-matcher` and to its peers.

use std::collections::HashMap;

use cel::{Context, Program};
use xds_matcher::{Constraint, DraftVariants, DynamicParameters, FinalVariants, IntRange, draft::Subscription};

/// Four leaves under `and`, `or` and `not`; for [`client`] every one of them has to be looked at.
pub const CONSTRAINT: &str = "env=prod and (version=v2 or not exists(canary)) and not region=us";
const CEL: &str = r#"p["env"] == "prod" && (p["version"] == "v2" || !("canary" in p)) && !(p["region"] == "us")"#;

/// What a subscriber sends in every case.
pub const CLIENT: [(&str, &str); 4] = [("env", "prod"), ("region", "eu"), ("shard", "17"), ("version", "v1")];

pub fn client() -> DynamicParameters {
    CLIENT.into_iter().collect()
}

pub fn constraint() -> Constraint {
    CONSTRAINT.parse().expect("the constraint is valid")
}

/// The same tree as a programmer would first write it.
pub enum Tree {
    Value(String, String),
    Exists(String),
    And(Vec<Tree>),
    Or(Vec<Tree>),
    Not(Box<Tree>),
}

impl Tree {
    pub fn new() -> Self {
        let value = |key: &str, value: &str| Self::Value(key.into(), value.into());
        let not = |tree| Self::Not(Box::new(tree));
        Self::And(vec![
            value("env", "prod"),
            Self::Or(vec![value("version", "v2"), not(Self::Exists("canary".into()))]),
            not(value("region", "us")),
        ])
    }

    pub fn matches(&self, parameters: &HashMap<String, String>) -> bool {
        match self {
            Self::Value(key, value) => parameters.get(key) == Some(value),
            Self::Exists(key) => parameters.contains_key(key),
            Self::And(trees) => trees.iter().all(|tree| tree.matches(parameters)),
            Self::Or(trees) => trees.iter().any(|tree| tree.matches(parameters)),
            Self::Not(tree) => !tree.matches(parameters),
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

pub fn hash_map() -> HashMap<String, String> {
    CLIENT.map(|(key, value)| (key.into(), value.into())).into()
}

/// A compiled CEL program and its context.
pub struct Cel {
    program: Program,
    context: Context<'static, 'static>,
}

impl Cel {
    pub fn new() -> Self {
        let mut context = Context::default();
        context.add_variable_from_value("p", hash_map());
        Self { program: Program::compile(CEL).expect("the expression is valid"), context }
    }

    pub fn matches(&self) -> bool {
        matches!(self.program.execute(&self.context), Ok(cel::Value::Bool(true)))
    }
}

impl Default for Cel {
    fn default() -> Self {
        Self::new()
    }
}

/// `count` variants by environment, version and shard, as TP2's best practice asks for: same keys, mutually exclusive.
fn grid(count: usize) -> impl Iterator<Item = [(&'static str, String); 3]> {
    (0..count).map(|i| {
        [
            ("env", ["prod", "test"][i % 2].to_owned()),
            ("version", format!("v{}", i / 2 % 5)),
            ("shard", (i / 10).to_string()),
        ]
    })
}

pub fn final_variants(count: usize) -> FinalVariants<usize> {
    let constraint =
        |keys: [(&str, String); 3]| Constraint::all(keys.map(|(k, v)| Constraint::value(k, v))).expect("small");
    FinalVariants::new(grid(count).map(constraint).enumerate())
}

pub fn draft_variants(count: usize) -> DraftVariants<usize> {
    DraftVariants::new(grid(count).map(DynamicParameters::from_iter).enumerate())
}

/// A subscriber that one variant of every [`grid`] is for.
pub fn member() -> DynamicParameters {
    [("env", "prod"), ("region", "eu"), ("shard", "0"), ("version", "v3")].into_iter().collect()
}

pub fn draft_member() -> Subscription {
    member().to_draft_constraints().lower().expect("exact values are valid")
}

/// As [`final_variants`], with ranges of shards that exclude each other.
pub fn ranged_variants(count: usize) -> FinalVariants<usize> {
    let constraint = |[(env, e), (version, v), (shard, s)]: [(&str, String); 3]| {
        let first = 10 * s.parse::<u64>().expect("digits");
        let shards = IntRange::new(first, first + 9).expect("ascending");
        let shards = Constraint::int_in(shard, [shards]).expect("small");
        Constraint::all([Constraint::value(env, e), Constraint::value(version, v), shards]).expect("small")
    };
    FinalVariants::new(grid(count).map(constraint).enumerate())
}

/// One variant per shard and nothing else, in the final form.
pub fn final_shards(count: usize) -> FinalVariants<usize> {
    FinalVariants::new((0..count).map(|shard| (shard, Constraint::value("shard", shard.to_string()))))
}

/// One variant per ten shards and nothing else.
pub fn final_shard_ranges(count: usize) -> FinalVariants<usize> {
    let shards = |first: u64| Constraint::int_in("shard", [IntRange::new(first, first + 9).expect("ascending")]);
    FinalVariants::new((0..count).zip((0..).step_by(10)).map(|(i, first)| (i, shards(first).expect("small"))))
}

/// A subscriber of [`final_shards`] and of [`final_shard_ranges`].
pub fn shard_member() -> DynamicParameters {
    DynamicParameters::from_iter([("shard", "537")])
}

/// One variant per shard, the shape of the draft's own example: of three shards in a range the last is preferred.
pub fn shards(count: usize) -> DraftVariants<usize> {
    DraftVariants::new((0..count).map(|shard| (shard, DynamicParameters::from_iter([("shard", shard.to_string())]))))
}

/// A subscriber of [`shards`] that asks for one.
pub fn exact_shard() -> Subscription {
    subscription("not exists(shard) or shard=5")
}

/// A subscriber of [`shards`] that asks for a range.
pub fn ranged_shard() -> Subscription {
    subscription("not exists(shard) or shard in 3..5")
}

/// A subscriber of [`draft_variants`] that asks for a range of shards.
pub fn ranged_member() -> Subscription {
    subscription(
        "(not exists(env) or env=prod) and (not exists(version) or version=v3) and (not exists(shard) or shard in 0..2)",
    )
}

fn subscription(text: &str) -> Subscription {
    Subscription::of(&text.parse().expect("the constraint is valid")).expect("the draft can say it")
}

/// The same selection by trying every variant in turn.
pub fn scan(variants: &FinalVariants<usize>, parameters: &DynamicParameters) -> Option<usize> {
    variants.iter().filter(|(_, constraint)| constraint.matches(parameters)).map(|(name, _)| *name).min()
}
