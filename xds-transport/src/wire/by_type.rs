//! The draft's `DynamicParameterConstraintsMap`: what a server says that it is to be asked with, by type.

use std::collections::BTreeMap;

use xds_matcher::draft::DynamicParameterConstraintsMap;
use xdstp_cache::{Selector, TypeUrl};

use super::parameters::{Locator, LocatorError};
use super::shape::Undecodable;
use super::walk::{FieldValue, Fields};
use crate::Dialect;

/// By what a client is to select, for each type of resource: what DPDS delivers, the dynamic parameter discovery service of
/// TP2's draft.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectorsByType(BTreeMap<String, Selector>);

impl SelectorsByType {
    /// The type of such resources. The draft has [other names](Self::is_type) for it, too.
    pub const TYPE_URL: &str = "type.googleapis.com/envoy.config.dynamic_parameters.v3.DynamicParameterConstraintsMap";

    /// Whether the draft calls the type so: it has a name each in its message, its service and its example.
    pub fn is_type(message: &str) -> bool {
        DynamicParameterConstraintsMap::TYPE_NAMES.contains(&message)
    }

    /// Decodes a `DynamicParameterConstraintsMap`.
    ///
    /// ```
    /// use xds_transport::wire::SelectorsByType;
    ///
    /// // An entry of the map for the type T: its key env has the value prod.
    /// let message = b"\x0a\x16\x0a\x01T\x12\x11\x0a\x0f\x0a\x03env\x12\x08\x12\x06\x0a\x04prod";
    /// let selectors = SelectorsByType::decode(message)?;
    /// assert_eq!(selectors.of(&"type.googleapis.com/T".into()), Some(&[("env", "prod")].into()));
    /// assert_eq!(selectors.of(&"type.googleapis.com/U".into()), None);
    /// # Ok::<(), xds_transport::wire::parameters::LocatorError>(())
    /// ```
    ///
    /// # Errors
    /// When it is none, or some of its constraints make no sense: it is of no use as a whole.
    pub fn decode(message: &[u8]) -> Result<Self, LocatorError> {
        let mut selectors = BTreeMap::new();
        for field in Fields::of(message) {
            let field = field.map_err(|_| Undecodable::not_a_message("resource_type_constraints"))?;
            match (field.number, field.value) {
                (1, FieldValue::Bytes(entry)) => {
                    // A type and its constraints stand where a locator of the draft has a name and its own.
                    let Locator { name, selector } = Locator::decode(Dialect::Draft, entry)?;
                    let selector = match selector {
                        Selector::Constraints(constraints) => constraints.into(),
                        parameters @ Selector::Parameters(_) => parameters,
                    };
                    selectors.insert(name, selector);
                }
                (1, _) => Err(Undecodable::new("resource_type_constraints", "not of its type"))?,
                _ => {}
            }
        }
        // It is about all other types.
        selectors.retain(|of, _| !Self::is_type(of));
        Ok(Self(selectors))
    }

    /// By what resources of a type are selected; none where nothing is said of it.
    pub fn of(&self, type_url: &TypeUrl) -> Option<&Selector> {
        self.0.get(type_url.as_str().rsplit('/').next()?)
    }
}

#[cfg(test)]
mod tests {
    use xds_matcher::draft::Subscription;

    use super::*;
    use crate::wire::walk;

    fn map(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut message = Vec::new();
        for (of, text) in entries {
            let constraints = Subscription::of(&text.parse().unwrap()).unwrap();
            let entry = Locator::new(*of, Selector::Constraints(constraints)).encode(Dialect::Draft).unwrap();
            walk::put_bytes(&mut message, 1, &entry);
        }
        message
    }

    #[test]
    fn what_is_exact_is_parameters_and_ranges_are_constraints() {
        let dpds = SelectorsByType::TYPE_URL.rsplit('/').next().unwrap();
        let message = map(&[
            ("T", "not exists(env) or env=prod"),
            ("U", "not exists(shard) or shard in 4..6"),
            (dpds, "not exists(env) or env=prod"),
        ]);
        let selectors = SelectorsByType::decode(&message).unwrap();
        let of = |text: &str| selectors.of(&text.into()).map(ToString::to_string);
        assert_eq!(of("x/T").as_deref(), Some("{env=prod}"));
        assert_eq!(of("x/U").as_deref(), Some("all(not exists(shard) or shard in 4..6)"));
        assert_eq!((of("x/V"), of(SelectorsByType::TYPE_URL)), (None, None));
        assert!(SelectorsByType::is_type(dpds));
    }

    #[test]
    fn one_entry_of_no_use_spoils_all() {
        let good = map(&[("T", "not exists(env) or env=prod")]);
        // A constraint without a kind.
        let bad = [&good[..], b"\x0a\x0c\x0a\x01U\x12\x07\x0a\x05\x12\x03\x12\x01\x00"].concat();
        assert!(SelectorsByType::decode(&good).is_ok());
        assert!(SelectorsByType::decode(&bad).is_err());
        assert!(SelectorsByType::decode(b"\x08\x01").is_err());
        assert_eq!(SelectorsByType::decode(b"").unwrap(), SelectorsByType::default());
    }
}
