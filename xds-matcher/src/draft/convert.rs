//! From the one form to the other.

use super::{DynamicParameterConstraints, KeyConstraints, Kind, Subscription};
use crate::constraint::Node;
use crate::{Constraint, ConstraintError, DynamicParameters};

impl Constraint {
    /// The parameters of a draft variant that is for the same subscribers as a final variant with this constraint.
    /// The opposite of [`DynamicParameters::to_constraint`].
    ///
    /// # Errors
    /// [`ErrorKind::NotRepresentable`](crate::ErrorKind::NotRepresentable) and those of [`Subscription::to_parameters`].
    pub fn to_draft_parameters(&self) -> Result<DynamicParameters, ConstraintError> {
        Subscription::of(self)?.to_parameters()
    }
}

impl DynamicParameters {
    /// The final-form constraint of a draft variant that carries these parameters:
    /// every key either is not sent by the subscriber or has this value.
    ///
    /// ```
    /// use xds_matcher::DynamicParameters;
    ///
    /// let variant: DynamicParameters = [("env", "prod")].into_iter().collect();
    /// assert_eq!(variant.to_constraint()?.to_string(), "all(not exists(env) or env=prod)");
    /// assert_eq!(variant.to_constraint()?.to_draft_parameters()?, variant);
    /// # Ok::<(), xds_matcher::ConstraintError>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge): each key takes four nodes.
    pub fn to_constraint(&self) -> Result<Constraint, ConstraintError> {
        let keys = self.entries().map(|(key, value)| {
            let same = Node::Value { key: key.clone(), value: value.clone() };
            Constraint::from_bounded(Node::absent_or(key.clone(), same))
        });
        Constraint::all(keys)
    }

    /// The draft constraints of a client that sends these parameters: each value, exactly.
    ///
    /// ```
    /// use xds_matcher::DynamicParameters;
    ///
    /// let client: DynamicParameters = [("env", "prod")].into_iter().collect();
    /// let subscription = client.to_draft_constraints().lower().unwrap();
    /// assert_eq!(subscription.to_parameters().unwrap(), client);
    /// ```
    #[must_use]
    pub fn to_draft_constraints(&self) -> DynamicParameterConstraints {
        let exactly = |value: &str| super::Constraint { kind: Some(Kind::Value(value.into())) };
        let keys = self.iter().map(|(key, value)| {
            (key.into(), KeyConstraints { constraints: alloc::vec![exactly(value)], invert: false })
        });
        DynamicParameterConstraints { key_constraints: keys.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use std::string::ToString;

    #[test]
    fn more_keys_than_a_constraint_has_room_for_are_refused() {
        let keys = |count: usize| DynamicParameters::from_iter((0..count).map(|i| (i.to_string(), "x")));
        assert_eq!(keys(30_000).to_constraint().unwrap_err().kind(), ErrorKind::TooLarge);
        let fits = keys(16_000).to_constraint().unwrap();
        assert_eq!(fits.to_string().parse(), Ok(fits));
    }
}
