//! What is told of releases.

use std::collections::BTreeMap;

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{IntCounterVec, Registry};

use super::{Counter, Metrics, counters, gauges, signed};

/// How the releases of a scope are now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleaseGauges {
    /// Whether anything is under way.
    pub state: ReleaseState,
    /// In which stage the candidate is, from 1; 0 if there is none.
    pub stage: u64,
    /// Orders that are done here, and not in the store yet.
    pub unsaved: u64,
    /// Whether what is served is what this relay knew before it started.
    pub recalled: bool,
    /// Whether the store was read and written when it was to be last.
    pub store_up: bool,
    /// What is kept there and is not what was written, or is of a later version.
    pub damaged: u64,
    /// Whether the relay that wrote there last goes on by other stages.
    pub other_stages: bool,
    /// Whether this relay publishes.
    pub publishes: bool,
    /// Names that clients ask for and their release does not have, of a control plane that is followed.
    pub denied: Option<u64>,
}

/// Whether anything of a scope is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReleaseState {
    /// Nothing is.
    #[default]
    None,
    /// A candidate goes on by itself.
    Open,
    /// Somebody has it stay in its stage.
    Held,
    /// All was not well with it.
    Halted,
    /// It removes much, and waits for somebody to say that it goes on.
    RemovesMuch,
    /// Everybody has what is stable, whether there is a candidate or not.
    Frozen,
}

impl ReleaseState {
    /// All there are.
    const ALL: [Self; 6] = [Self::None, Self::Open, Self::Held, Self::Halted, Self::RemovesMuch, Self::Frozen];

    fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Open => "open",
            Self::Held => "held",
            Self::Halted => "halted",
            Self::RemovesMuch => "removes_much",
            Self::Frozen => "frozen",
        }
    }
}

#[derive(Debug)]
pub(super) struct Released {
    halts: IntCounterVec,
}

impl Released {
    pub(super) fn new(registry: &Registry) -> Self {
        let help = "Candidates that this relay halted, or rolled back because all was not well.";
        Self { halts: counters(registry, "release_halts_total", help, &["scope"]) }
    }
}

impl Metrics {
    /// What is counted when a candidate of a scope halts.
    #[must_use]
    pub fn release_halts(&self, scope: &str) -> Counter {
        Counter(self.released.halts.with_label_values(&[scope]))
    }
}

pub(super) fn gather(now: &BTreeMap<String, ReleaseGauges>) -> impl Iterator<Item = MetricFamily> {
    let gauge = |name, help| gauges(name, help, &["scope"]);
    let states = gauges(
        "release_candidate",
        "1 for how the candidate of a scope is, or that there is none, and 0 for the others.",
        &["scope", "state"],
    );
    let stage = gauge("release_stage", "In which stage the candidate is, from 1; 0 if there is none.");
    let unsaved = gauge("release_orders_unsaved", "Orders that are done here, and not in the store yet.");
    let recalled = gauge("release_recalled", "1 while what is served is what this relay knew before it started.");
    let up = gauge("release_store_up", "1 while the store of releases is read and written.");
    let damaged = gauge("release_damaged", "What was read there that is not what was written: it is left out.");
    let other_stages = gauge(
        "release_other_stages",
        "1 while the relay that wrote there last who is served which release goes on by other stages than this one.",
    );
    let publishes = gauge("release_publisher", "1 on the relay that publishes.");
    let denied = gauge(
        "release_denied_names",
        "Of a control plane that is followed: names that clients ask for and that their release does not have.",
    );
    for (scope, of) in now {
        for state in ReleaseState::ALL {
            states.with_label_values(&[scope.as_str(), state.label()]).set(i64::from(state == of.state));
        }
        stage.with_label_values(&[scope]).set(signed(of.stage));
        unsaved.with_label_values(&[scope]).set(signed(of.unsaved));
        recalled.with_label_values(&[scope]).set(i64::from(of.recalled));
        up.with_label_values(&[scope]).set(i64::from(of.store_up));
        damaged.with_label_values(&[scope]).set(signed(of.damaged));
        other_stages.with_label_values(&[scope]).set(i64::from(of.other_stages));
        publishes.with_label_values(&[scope]).set(i64::from(of.publishes));
        of.denied.iter().for_each(|names| denied.with_label_values(&[scope]).set(signed(*names)));
    }
    let all = [states, stage, unsaved, recalled, up, damaged, other_stages, publishes, denied];
    all.into_iter().flat_map(|family| family.collect())
}
