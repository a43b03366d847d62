//! Variants of a name, and who gets which: TP2.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use xds_matcher::draft::{DynamicParameterConstraints, Subscription};
use xds_matcher::{Constraint, ConstraintError, DynamicParameters};

/// What tells one variant of a name from its others: whom it is for.
///
/// A resource without variants is one whose only variant is [plain](Self::plain).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// Of the final form of TP2: who sends parameters that satisfy this gets it.
    Constraints(Constraint),
    /// Of the draft: who sends constraints that these satisfy gets it.
    Parameters(DynamicParameters),
}

static PLAIN: Variant = Variant::Constraints(Constraint::unconstrained());

impl Variant {
    /// The variant that is for everybody.
    pub fn plain() -> &'static Self {
        &PLAIN
    }

    /// Whether it is for who selects by this.
    ///
    /// ```
    /// use xds_matcher::DynamicParameters;
    /// use xdstp_cache::{Selector, Variant};
    ///
    /// let canary = Variant::Constraints("env=canary".parse()?);
    /// let selector = Selector::Parameters(DynamicParameters::from_iter([("env", "canary"), ("zone", "a")]));
    /// assert!(canary.is_for(&selector) && !canary.is_for(&Selector::default()));
    /// # Ok::<(), xds_matcher::ParseError>(())
    /// ```
    pub fn is_for(&self, selector: &Selector) -> bool {
        match (self, selector) {
            (Self::Constraints(constraint), Selector::Parameters(parameters)) => constraint.matches(parameters),
            (Self::Parameters(parameters), Selector::Constraints(constraints)) => constraints.matches(parameters),
            // Of the other form: what constraints are no parameters, only what is for everybody is for.
            (Self::Constraints(constraint), Selector::Constraints(constraints)) => {
                self.is_plain() || constraints.to_parameters().is_ok_and(|exact| constraint.matches(&exact))
            }
            // A key that is not sent matches any value of it.
            (Self::Parameters(variant), Selector::Parameters(parameters)) => {
                variant.iter().all(|(key, value)| parameters.get(key).is_none_or(|sent| sent == value))
            }
        }
    }

    /// Whether it is for everybody, in either form.
    pub fn is_plain(&self) -> bool {
        match self {
            Self::Constraints(_) => *self == PLAIN,
            Self::Parameters(parameters) => parameters.is_empty(),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constraints(constraint) => constraint.fmt(f),
            Self::Parameters(parameters) => parameters.fmt(f),
        }
    }
}

/// By what a subscriber selects among variants. By default it has no parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Of the final form of TP2: the parameters that a client sends.
    Parameters(DynamicParameters),
    /// Of the draft: the constraints that a client sends.
    Constraints(Subscription),
}

pub(crate) static DEFAULT: Selector = Selector::Parameters(DynamicParameters::new());

impl Selector {
    /// Whether it says nothing: who has it gets what one without parameters gets.
    pub fn is_default(&self) -> bool {
        match self {
            Self::Parameters(parameters) => parameters.is_empty(),
            Self::Constraints(constraints) => constraints.to_parameters().is_ok_and(|exact| exact.is_empty()),
        }
    }

    /// What this says, and of each key that it says nothing of, what another one says.
    ///
    /// ```
    /// use xdstp_cache::Selector;
    ///
    /// let (own, common) = (Selector::from([("env", "canary")]), Selector::from([("env", "prod"), ("zone", "a")]));
    /// assert_eq!(own.over(&common)?, Selector::from([("env", "canary"), ("zone", "a")]));
    /// # Ok::<(), xds_matcher::ConstraintError>(())
    /// ```
    ///
    /// # Errors
    /// When that is more constraints than may be ([`TooLarge`](xds_matcher::ErrorKind::TooLarge)).
    pub fn over(&self, other: &Self) -> Result<Self, ConstraintError> {
        if let (Self::Parameters(own), Self::Parameters(others)) = (self, other) {
            let mut all = others.clone();
            all.extend(own);
            return Ok(Self::Parameters(all));
        }
        let mut all = other.to_constraints()?;
        all.key_constraints.extend(self.to_constraints()?.key_constraints);
        Ok(all.lower()?.into())
    }

    fn to_constraints(&self) -> Result<DynamicParameterConstraints, ConstraintError> {
        match self {
            Self::Parameters(parameters) => Ok(parameters.to_draft_constraints()),
            Self::Constraints(constraints) => DynamicParameterConstraints::raise(constraints.constraint()),
        }
    }
}

/// The last value of a repeated key counts.
impl<K: Into<Box<str>>, V: Into<Box<str>>, const N: usize> From<[(K, V); N]> for Selector {
    fn from(parameters: [(K, V); N]) -> Self {
        Self::Parameters(parameters.into_iter().collect())
    }
}

/// Constraints of exact values are parameters, which either form of TP2 has.
impl From<Subscription> for Selector {
    fn from(constraints: Subscription) -> Self {
        match constraints.to_parameters() {
            Ok(exact) => Self::Parameters(exact),
            Err(_) => Self::Constraints(constraints),
        }
    }
}

/// In the order of parameters, and then of constraints as they are written.
impl Ord for Selector {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Parameters(one), Self::Parameters(other)) => one.cmp(other),
            (Self::Constraints(one), Self::Constraints(other)) => one.constraint().cmp(other.constraint()),
            (Self::Parameters(_), Self::Constraints(_)) => Ordering::Less,
            (Self::Constraints(_), Self::Parameters(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Selector {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Default for Selector {
    fn default() -> Self {
        DEFAULT.clone()
    }
}

impl Hash for Selector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Parameters(parameters) => parameters.hash(state),
            Self::Constraints(constraints) => constraints.constraint().hash(state),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameters(parameters) => parameters.fmt(f),
            Self::Constraints(constraints) => constraints.constraint().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    use super::*;

    fn constraints(text: &str) -> Selector {
        Subscription::where_present(&text.parse().unwrap()).unwrap().into()
    }

    #[test]
    fn of_each_key_counts_what_is_said_first() {
        let own = constraints("shard in 4..6");
        let all = own.over(&[("env", "prod"), ("shard", "1")].into()).unwrap();
        assert_eq!(all, constraints("env=prod and shard in 4..6"));
        assert_eq!(Selector::from([("shard", "1")]).over(&all).unwrap(), [("env", "prod"), ("shard", "1")].into());
        let not = constraints("not env=test");
        assert_eq!(not.over(&all).unwrap(), constraints("not env=test and shard in 4..6"));
        assert_eq!(Selector::default().over(&all).unwrap(), all);
        assert_eq!(all.over(&Selector::default()).unwrap(), all);
    }

    #[test]
    fn what_selects_otherwise_is_spread_in_maps() {
        let by = BuildHasherDefault::<DefaultHasher>::default();
        let [prod, test] = ["prod", "test"].map(|env| by.hash_one(Selector::from([("env", env)])));
        assert_ne!(prod, test);
    }
}
