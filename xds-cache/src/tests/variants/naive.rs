//! Selection as the proposal says it, one variant after the other.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use xds_matcher::DynamicParameters;
use xds_matcher::draft::Subscription;

use crate::{Selector, Variant};

/// A condition on parameters.
enum Condition {
    True,
    Is(&'static str, &'static str),
    Has(&'static str),
    Not(Box<Self>),
    All(Vec<Self>),
}

type Parameters = BTreeMap<&'static str, &'static str>;

impl Condition {
    fn holds(&self, parameters: &Parameters) -> bool {
        match self {
            Self::True => true,
            Self::Is(key, value) => parameters.get(key) == Some(value),
            Self::Has(key) => parameters.contains_key(key),
            Self::Not(inner) => !inner.holds(parameters),
            Self::All(all) => all.iter().all(|one| one.holds(parameters)),
        }
    }

    /// As `xds_matcher` reads it.
    fn written(&self) -> String {
        match self {
            Self::True => "true".into(),
            Self::Is(key, value) => format!("{key}={value}"),
            Self::Has(key) => format!("exists({key})"),
            Self::Not(inner) => format!("not {}", inner.written()),
            Self::All(all) => all.iter().map(Self::written).collect::<Vec<_>>().join(" and "),
        }
    }

    /// The text by which variants are ordered.
    fn canonical(&self) -> String {
        match self {
            Self::True => "true".into(),
            Self::Is(key, value) => format!("(eq \"{key}\" \"{value}\")"),
            Self::Has(key) => format!("(has \"{key}\")"),
            Self::Not(inner) => format!("(not {})", inner.canonical()),
            Self::All(all) => {
                let mut all: Vec<_> = all.iter().map(Self::canonical).collect();
                all.sort();
                format!("(and {})", all.join(" "))
            }
        }
    }
}

/// What a subscriber sends: parameters, or constraints of the draft, each of which is about one key.
enum Sent {
    Parameters(Parameters),
    Exactly(&'static str, &'static str),
    /// An integer in a range.
    Within(&'static str, u64, u64),
}

/// A variant, in one form or the other.
enum For {
    Condition(Condition),
    Parameters(Parameters),
}

pub(super) struct Forms {
    variants: Vec<(For, Variant)>,
    selectors: Vec<(Sent, Selector)>,
}

/// The variants of the final form, with the plain one first, and those of the draft; and who selects.
pub(super) static FORMS: LazyLock<[Forms; 2]> =
    LazyLock::new(|| [Forms::of(final_variants()), Forms::of(draft_variants())]);

fn final_variants() -> Vec<For> {
    use Condition::{All, Has, Is, Not, True};
    let conditions = [
        True,
        Is("env", "prod"),
        Is("env", "test"),
        Has("env"),
        Not(Box::new(Has("env"))),
        All(vec![Is("v", "1"), Is("env", "prod")]),
    ];
    conditions.map(For::Condition).into()
}

fn draft_variants() -> Vec<For> {
    let parameters: [&[(&str, &str)]; 6] = [
        &[],
        &[("env", "prod")],
        &[("env", "test")],
        &[("shard", "3")],
        &[("shard", "7")],
        &[("env", "prod"), ("shard", "7")],
    ];
    parameters.map(|pairs| For::Parameters(pairs.iter().copied().collect())).into()
}

fn selectors() -> Vec<Sent> {
    let parameters: [&[(&str, &str)]; 4] =
        [&[], &[("env", "prod")], &[("env", "test")], &[("env", "prod"), ("v", "1"), ("shard", "3")]];
    let sent = parameters.map(|pairs| Sent::Parameters(pairs.iter().copied().collect()));
    sent.into_iter().chain([Sent::Exactly("env", "prod"), Sent::Within("shard", 0, 9)]).collect()
}

impl Sent {
    fn selector(&self) -> Selector {
        let subscription = |text: String| Subscription::where_present(&text.parse().unwrap()).unwrap();
        match self {
            Self::Parameters(parameters) => Selector::Parameters(DynamicParameters::from_iter(parameters.clone())),
            Self::Exactly(key, value) => Selector::Constraints(subscription(format!("{key}={value}"))),
            Self::Within(key, least, most) => Selector::Constraints(subscription(format!("{key} in {least}..{most}"))),
        }
    }

    /// Whether a variant is for who sends this.
    fn gets(&self, variant: &For) -> bool {
        match (self, variant) {
            (Self::Parameters(sent), For::Condition(condition)) => condition.holds(sent),
            (Self::Parameters(sent), For::Parameters(of)) => {
                of.iter().all(|(key, value)| sent.get(key).is_none_or(|sent| sent == value))
            }
            (Self::Exactly(key, value), For::Condition(condition)) => {
                condition.holds(&Parameters::from([(*key, *value)]))
            }
            (Self::Exactly(key, value), For::Parameters(of)) => of.get(key).is_none_or(|is| is == value),
            // Parameters cannot say that.
            (Self::Within(..), For::Condition(condition)) => matches!(condition, Condition::True),
            (Self::Within(key, least, most), For::Parameters(of)) => {
                of.get(key).is_none_or(|is| is.parse().is_ok_and(|is: u64| (*least..=*most).contains(&is)))
            }
        }
    }

    /// The larger is preferred; what has no integer comes last.
    fn prefers(&self, variant: &For) -> Option<u64> {
        match (self, variant) {
            (Self::Within(key, ..), For::Parameters(of)) => of.get(key)?.parse().ok(),
            _ => None,
        }
    }
}

impl Forms {
    fn of(variants: Vec<For>) -> Self {
        let named = |variant: For| {
            let is = match &variant {
                For::Condition(condition) => Variant::Constraints(condition.written().parse().unwrap()),
                For::Parameters(of) if of.is_empty() => Variant::plain().clone(),
                For::Parameters(of) => Variant::Parameters(DynamicParameters::from_iter(of.clone())),
            };
            (variant, is)
        };
        let selectors = selectors().into_iter().map(|sent| (sent.selector(), sent)).map(|(is, sent)| (sent, is));
        Self { variants: variants.into_iter().map(named).collect(), selectors: selectors.collect() }
    }

    pub(super) fn variant(&self, number: usize) -> &Variant {
        &self.variants[number].1
    }

    pub(super) fn selector(&self, number: usize) -> &Selector {
        &self.selectors[number].1
    }

    pub(super) fn number(&self, variant: &Variant) -> usize {
        self.variants.iter().position(|(_, other)| other == variant).unwrap()
    }

    /// Which of the variants with these numbers is for whom; and whether another one is as good.
    pub(super) fn select(&self, selector: usize, there: impl Iterator<Item = usize>) -> Option<(usize, bool)> {
        let sent = &self.selectors[selector].0;
        let order = |number: &usize| {
            let order = match &self.variants[*number].0 {
                For::Condition(condition) => vec![(condition.canonical(), "")],
                For::Parameters(of) => of.iter().map(|(key, value)| (String::from(*key), *value)).collect(),
            };
            (std::cmp::Reverse(sent.prefers(&self.variants[*number].0)), order)
        };
        let mut matching: Vec<_> = there.filter(|number| sent.gets(&self.variants[*number].0)).collect();
        matching.sort_by_key(order);
        let rank = |number: &usize| sent.prefers(&self.variants[*number].0);
        let first = *matching.first()?;
        Some((first, matching.get(1).is_some_and(|second| rank(second) == rank(&first))))
    }
}
