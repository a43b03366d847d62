//! Who is served a candidate: the stages that it goes through.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sha2::{Digest, Sha256};
use xds_transport::wire::Node;

use crate::config::NodeField;
use crate::node_text::text_of;
use crate::releases::manifest::millis;
use crate::releases::release::Release;

/// Of all nodes, in hundredths of a percent.
const ALL: u16 = 10_000;

/// The stages of a scope, in their order. They are nested: who is in one is in all after it.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::time::Duration;
/// use xds_relay::releases::{Release, Stage, Stages, Who};
/// use xds_transport::wire::Node;
///
/// let canary = Who::Match(BTreeMap::from([("cluster".parse()?, "canary".to_owned())]));
/// let stages = [canary, Who::Percent("100%".parse()?)].map(|who| Stage { who, hold: Duration::from_secs(60) });
/// let stages = Stages::new(stages);
///
/// let release = Release::of_bytes([0; 16]);
/// let [canary, other] = ["canary", "other"].map(|cluster| Node { cluster: cluster.to_owned(), ..Node::default() });
/// assert!(stages.contains(0, release, &canary) && !stages.contains(0, release, &other));
/// assert!(stages.contains(1, release, &canary) && stages.contains(1, release, &other));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stages(Vec<Stage>);

/// Who is served a candidate besides those of the stages before, and for how long before the next stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Who.
    pub who: Who,
    /// How long. Behind the last stage everybody is.
    pub hold: Duration,
}

/// Some of all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Who {
    /// Those of which each of these fields says that: text, or a number or a boolean as text. Nobody, if there are no fields.
    Match(BTreeMap<NodeField, String>),
    /// As many of all, by the hash of the release and of their ids: the same on every relay and over restarts, others for each
    /// release, and more with a larger percentage. Nodes that say no id are all in or all out.
    Percent(Percent),
}

impl Stages {
    /// These, in their order; without any, a release is stable at once.
    pub fn new(stages: impl IntoIterator<Item = Stage>) -> Self {
        Self(stages.into_iter().collect())
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &Stage> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a node is served a candidate in a stage (from 0), or in the last one if there are fewer.
    pub fn contains(&self, stage: usize, release: Release, node: &Node) -> bool {
        let mut place = None;
        self.0.iter().take(stage.saturating_add(1)).any(|stage| match &stage.who {
            Who::Match(fields) => !fields.is_empty() && fields.iter().all(|(field, text)| says(node, field, text)),
            Who::Percent(percent) => *place.get_or_insert_with(|| place_of(release, &node.id)) < percent.0,
        })
    }

    /// What tells them from others, for relays that are to have the same. It is fixed for ever, and never 0.
    pub(crate) fn print(&self) -> u64 {
        let mut hash = Sha256::new();
        for Stage { who, hold } in &self.0 {
            let who = who.to_string();
            hash.update((who.len() as u64).to_be_bytes());
            hash.update(who);
            hash.update(millis(*hold).to_be_bytes());
        }
        hash.finalize().first_chunk().copied().map_or(1, u64::from_be_bytes).max(1)
    }

    /// How long a candidate stays in a stage.
    pub(crate) fn hold(&self, stage: usize) -> Duration {
        self.0.get(stage).or(self.0.last()).map_or(Duration::ZERO, |stage| stage.hold)
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => percent.fmt(f),
            Self::Match(fields) => {
                let said: Vec<_> = fields.iter().map(|(field, text)| format!("{field}: {text}")).collect();
                f.write_str(&said.join(", "))
            }
        }
    }
}

fn says(node: &Node, field: &NodeField, text: &str) -> bool {
    text_of(node, field).is_some_and(|said| said == text)
}

/// Where a node is among all, of [`ALL`]. It is fixed for ever: relays must agree.
fn place_of(release: Release, id: &str) -> u16 {
    let hash = Sha256::new().chain_update(release.as_bytes()).chain_update(id).finalize();
    let mut first = [0; 8];
    first.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
    (u64::from_be_bytes(first) % u64::from(ALL)) as u16
}

/// A part of all, in hundredths of a percent. Written `5%`, `0.25%`, or without the sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u16);

/// Not a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a percentage from 0 to 100 with at most two decimals, such as 5% or 0.25%")]
pub struct PercentError(());

impl Percent {
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether so many of all are as large a part, or a larger one.
    pub(crate) fn is_at_most(self, count: usize, of: usize) -> bool {
        count as u128 * u128::from(ALL) >= u128::from(self.0) * of as u128
    }
}

impl FromStr for Percent {
    type Err = PercentError;

    fn from_str(text: &str) -> Result<Self, PercentError> {
        let number = text.strip_suffix('%').unwrap_or(text);
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let digits =
            |text: &str, most| (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole, 3) || !digits(decimals, 2) {
            return Err(PercentError(()));
        }
        let hundredths: u32 = format!("{whole}{decimals:0<2}").parse().map_err(|_| PercentError(()))?;
        u16::try_from(hundredths).ok().filter(|hundredths| *hundredths <= ALL).map(Self).ok_or(PercentError(()))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 100, self.0 % 100) {
            (whole, 0) => write!(f, "{whole}%"),
            (whole, part) if part % 10 == 0 => write!(f, "{whole}.{}%", part / 10),
            (whole, part) => write!(f, "{whole}.{part:02}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use xds_transport::wire::Locality;

    use super::*;
    use crate::struct_json::to_struct;

    fn of(who: impl IntoIterator<Item = Who>) -> Stages {
        Stages::new(who.into_iter().map(|who| Stage { who, hold: Duration::ZERO }))
    }

    fn percent(text: &str) -> Who {
        Who::Percent(text.parse().unwrap())
    }

    fn node(id: usize) -> Node {
        Node { id: format!("node-{id}"), ..Node::default() }
    }

    #[test]
    fn a_percentage_is_as_many_of_all_nested_and_others_for_each_release() {
        let texts = ["0%", "1%", "5%", "50%", "99.99%", "100%"];
        let stages = texts.map(|text| of([percent(text)]));
        let releases = [1, 2].map(|byte| Release::of_bytes([byte; 16]));
        let mut counts = [[0; 6]; 2];
        let mut both = 0;
        for id in 0..20_000 {
            let [one, two] =
                releases.map(|release| stages.each_ref().map(|stages| stages.contains(0, release, &node(id))));
            assert!(one.is_sorted() && two.is_sorted(), "who is in a part is in a larger one");
            both += usize::from(one[3] && two[3]);
            for (counts, is_in) in counts.iter_mut().zip([one, two]) {
                counts.iter_mut().zip(is_in).for_each(|(count, is_in)| *count += usize::from(is_in));
            }
        }
        for [none, one, five, half, most, all] in counts {
            assert_eq!((none, all), (0, 20_000));
            assert!((150..250).contains(&one) && (900..1100).contains(&five) && (9800..10_200).contains(&half));
            assert!((19_980..=20_000).contains(&most));
        }
        assert!((4800..5200).contains(&both), "{both}: half of the half");
    }

    /// The place of a node is told to other relays by the hash alone.
    #[test]
    fn the_place_of_a_node_never_changes() {
        let release = Release::of_bytes(*b"0123456789abcdef");
        assert_eq!(["", "a", "node-1"].map(|id| place_of(release, id)), [9128, 130, 3628]);
    }

    #[test]
    fn stages_are_told_from_others_by_who_is_in_them_and_for_how_long() {
        let fields = |field: &str, text: &str| Who::Match([(field.parse().unwrap(), text.to_owned())].into());
        let stage = |who, millis| Stage { who, hold: Duration::from_millis(millis) };
        let all = [
            vec![],
            vec![stage(percent("5%"), 0)],
            vec![stage(percent("5%"), 1)],
            vec![stage(percent("50%"), 0)],
            vec![stage(percent("5%"), 0), stage(percent("50%"), 0)],
            vec![stage(percent("50%"), 0), stage(percent("5%"), 0)],
            vec![stage(fields("cluster", "a"), 0)],
            vec![stage(fields("id", "a"), 0)],
        ];
        let mut prints: Vec<_> = all.iter().map(|stages| Stages::new(stages.clone()).print()).collect();
        assert_eq!(prints[1], 10_880_245_955_761_415_059, "relays of other versions go by it");
        prints.sort_unstable();
        prints.dedup();
        assert_eq!(prints.len(), all.len());
    }

    #[test]
    fn a_node_is_in_a_stage_if_it_is_in_that_or_one_before() {
        let fields = |fields: &[(&str, &str)]| {
            Who::Match(fields.iter().map(|(field, text)| (field.parse().unwrap(), (*text).to_owned())).collect())
        };
        let stages = of([
            fields(&[("metadata.canary", "true")]),
            fields(&[("locality.zone", "a"), ("cluster", "web")]),
            fields(&[]),
            percent("100"),
        ]);
        let zone = |cluster: &str, zone: &str, canary: serde_json::Value| Node {
            cluster: cluster.into(),
            locality: Some(Locality { zone: zone.into(), ..Locality::default() }),
            metadata: json!({ "canary": canary }).as_object().map(to_struct),
            ..Node::default()
        };
        let first = |node: Node| (0..6).find(|stage| stages.contains(*stage, Release::of_bytes([0; 16]), &node));
        for (node, expected) in [
            (zone("web", "a", json!(true)), 0),
            (zone("", "", json!("true")), 0),
            (zone("web", "a", json!(false)), 1),
            (zone("web", "b", json!(1)), 3),
            (zone("other", "a", json!(null)), 3),
            (Node::default(), 3),
        ] {
            assert_eq!(first(node.clone()), Some(expected), "{node:?}");
        }
        assert!(!of([]).contains(9, Release::of_bytes([0; 16]), &Node::default()));
        assert!(!of([fields(&[])]).contains(9, Release::of_bytes([0; 16]), &Node::default()), "no fields are nobody");
    }

    #[test]
    fn a_percentage_is_read_as_it_is_written() {
        for (text, hundredths, written) in [
            ("0", 0, "0%"),
            ("5%", 500, "5%"),
            ("0.5%", 50, "0.5%"),
            ("0.05", 5, "0.05%"),
            ("12.34%", 1234, "12.34%"),
            ("100%", 10_000, "100%"),
            ("100.00", 10_000, "100%"),
        ] {
            let percent: Percent = text.parse().unwrap();
            assert_eq!((percent.0, percent.to_string()), (hundredths, written.to_owned()));
            assert_eq!(written.parse(), Ok(percent));
        }
        for text in ["", "%", "-1", "+1", "1e1", ".5", "5.", "0.001", "100.01", "101", "1000", "5 %", "5%%"] {
            assert_eq!(text.parse::<Percent>(), Err(PercentError(())), "{text}");
        }
    }
}
