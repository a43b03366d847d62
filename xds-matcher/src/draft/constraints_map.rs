use alloc::collections::BTreeMap;
use alloc::string::String;

use super::DynamicParameterConstraints;
use crate::ConstraintError;

/// What the draft's Dynamic Parameter Discovery Service (DPDS) delivers: the constraints a client uses per resource type.
///
/// ```
/// use xds_matcher::{DynamicParameters, draft::DynamicParameterConstraintsMap};
///
/// let direct: DynamicParameters = [("listener_type", "direct")].into_iter().collect();
/// let listener = "envoy.config.listener.v3.Listener";
/// let map = DynamicParameterConstraintsMap {
///     resource_type_constraints: [(listener.to_owned(), direct.to_draft_constraints())].into(),
/// };
/// map.check()?;
/// assert_eq!(map.constraints(listener), Some(&direct.to_draft_constraints()));
/// assert_eq!(map.constraints("envoy.config.cluster.v3.Cluster"), None);
/// # Ok::<(), xds_matcher::ConstraintError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DynamicParameterConstraintsMap {
    /// 1: the key is a resource type name without `type.googleapis.com/`.
    pub resource_type_constraints: BTreeMap<String, DynamicParameterConstraints>,
}

impl DynamicParameterConstraintsMap {
    /// The names the draft gives this resource type in its message, its service and its example.
    pub const TYPE_NAMES: [&str; 4] = [
        "envoy.config.dynamic_parameters.v3.DynamicParameterConstraintsMap",
        "envoy.config.dynamic_parameters.v3.DynamicParametersConstraintsMap",
        "envoy.config.dynamic_parameters.v3.DynamicParameters",
        "envoy.config.context_params.v3.DynamicContextParameters",
    ];

    /// The constraints for a resource type; `None` where the map constrains nothing.
    ///
    /// The map speaks about all *other* resource types: an entry for itself is ignored.
    #[must_use]
    pub fn constraints(&self, resource_type: &str) -> Option<&DynamicParameterConstraints> {
        if Self::TYPE_NAMES.contains(&resource_type) {
            return None;
        }
        self.resource_type_constraints.get(resource_type)
    }

    /// Whether a client that had `previous` (`None`: it could not obtain the resource) must unsubscribe from the resources of
    /// this type and subscribe again with the new constraints.
    #[must_use]
    pub fn must_resubscribe(&self, previous: Option<&Self>, resource_type: &str) -> bool {
        let unconstrained = DynamicParameterConstraints::default();
        let before = previous.and_then(|map| map.constraints(resource_type)).unwrap_or(&unconstrained);
        self.constraints(resource_type).unwrap_or(&unconstrained) != before
    }

    /// Whether every entry is valid; one that is not makes the whole resource invalid.
    ///
    /// # Errors
    /// Those of [`DynamicParameterConstraints::lower`].
    pub fn check(&self) -> Result<(), ConstraintError> {
        self.resource_type_constraints.iter().try_for_each(|(resource_type, constraints)| {
            let at = |e: ConstraintError| e.inside(format_args!("resource_type_constraints[{resource_type:?}]"));
            constraints.lower().map(drop).map_err(at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DynamicParameters;

    #[test]
    fn only_changed_constraints_make_a_client_subscribe_again() {
        let map = |value: &str| DynamicParameterConstraintsMap {
            resource_type_constraints: ["T", DynamicParameterConstraintsMap::TYPE_NAMES[0]]
                .map(|t| (t.into(), DynamicParameters::from_iter([("a", value)]).to_draft_constraints()))
                .into(),
        };
        assert!(!map("1").must_resubscribe(Some(&map("1")), "T"));
        assert!(map("1").must_resubscribe(Some(&map("2")), "T"));
        assert!(map("1").must_resubscribe(None, "T"));
        assert!(!map("1").must_resubscribe(None, "U"));
        assert!(!map("1").must_resubscribe(Some(&map("2")), DynamicParameterConstraintsMap::TYPE_NAMES[0]));
    }
}
