//! What is told of releases.

use serde::{Deserialize, Serialize};

/// The scopes that have releases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Releases {
    /// In the order of the configuration.
    pub scopes: Vec<ReleasedScope>,
    /// Where orders are taken, if anywhere: `HOST:PORT`, or `unix:PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orders: Option<String>,
    /// Which relay it is: a number that it draws when it starts. An order may say that it is for this one.
    pub instance: String,
}

/// The releases of one scope. Times are in milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleasedScope {
    /// `xdstp://AUTHORITY`, or `old-style`.
    pub scope: String,
    /// Another one after each change: an order may say that it is for this one only.
    pub mark: String,
    /// Who is served a release before everybody is, one after the other.
    pub stages: Vec<StageStatus>,
    /// What is served to all who are served no candidate; none before the first release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable: Option<String>,
    /// What some are served, or nobody yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CandidateStatus>,
    /// Who froze it, if it is frozen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen: Option<SaidOf>,
    /// The releases that are not taken again, the latest last.
    pub refused: Vec<String>,
    /// What the origin had last, if that is not taken: a rollback left it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_taken: Option<NotTakenRelease>,
    /// What is kept, the latest first.
    pub kept: Vec<KeptRelease>,
    /// How many clients are served what is stable, and how many the candidate.
    pub clients: ServedCounts,
    /// What is kept and damaged, in words: it is as if it were not there. Of the value that says who is served which release
    /// (`…/ctl`), what it said before holds on; it may be of a later version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
    /// The instance of the relay that publishes, of those that have these releases: it takes what is new, and says when that halts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<String>,
    /// How many orders are not in the store yet, because it does not answer.
    #[serde(skip_serializing_if = "is_none")]
    pub unsaved: usize,
    /// Whether orders that wait for the store are kept over a restart, beside the copy of a store that several relays have; else they are
    /// forgotten if the relay ends before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keeps_unsaved: bool,
    /// Whether the relay that wrote in the store last who is served which release goes on by other stages than this one: they are to be
    /// the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub other_stages: bool,
    /// Whether the store has not answered since this relay began: what is told is what the relay had of it before, and is served.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recalled: bool,
}

/// A release that is not taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NotTakenRelease {
    /// Which.
    pub release: String,
    /// When it was not.
    pub at: u64,
}

/// Who is served a release before everybody is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StageStatus {
    /// Who: `cluster: canary`, or `5%`.
    pub who: String,
    /// For how long, before the next stage.
    pub hold_seconds: u64,
}

/// A release on its way to everybody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CandidateStatus {
    /// Its id.
    pub release: String,
    /// In which stage it is, from 1.
    pub stage: usize,
    /// How many there are.
    pub stages: usize,
    /// Since when.
    pub since: u64,
    /// Whether it goes on.
    pub state: CandidateState,
    /// When it goes on to the next stage, if it does by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// What was said of it last, where somebody is asked (`halt.check`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Who has it wait, or what halted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<SaidOf>,
}

/// Whether a candidate goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CandidateState {
    /// It does.
    #[default]
    Open,
    /// Not before somebody says so.
    Held,
    /// All is not well with it.
    Halted,
    /// What is new waits.
    Frozen,
}

/// Who did something, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SaidOf {
    /// A person's name, or a relay.
    pub by: String,
    /// In their words.
    pub why: String,
    /// When.
    pub at: u64,
}

/// A release that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptRelease {
    /// Its id.
    pub release: String,
    /// When it was taken.
    pub at: u64,
    /// From what kind of origin.
    pub from: String,
    /// How many resources are in it.
    pub resources: u64,
}

/// How many clients are served which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServedCounts {
    /// What is stable.
    pub stable: usize,
    /// The candidate.
    pub candidate: usize,
}

fn is_none(unsaved: &usize) -> bool {
    *unsaved == 0
}

impl std::fmt::Display for CandidateState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Held => "held",
            Self::Halted => "halted",
            Self::Frozen => "frozen",
        })
    }
}
