//! By which methods a server is asked.

use serde_json::Value;

use crate::yaml::{Error, Node};

/// By which methods of a server its resources are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Methods {
    /// By the aggregated one, which has all types.
    #[default]
    Ads,
    /// By those that each type has of its own, of a server that has no aggregated one.
    PerType,
}

impl Methods {
    /// As configurations spell it.
    ///
    /// ```
    /// use xds_relay::config::Methods;
    ///
    /// assert_eq!((Methods::default().as_str(), Methods::PerType.as_str()), ("ads", "per_type"));
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ads => "ads",
            Self::PerType => "per_type",
        }
    }

    pub(super) fn read(node: &Node) -> Result<Self, Error> {
        match node.text()? {
            "ads" => Ok(Self::Ads),
            "per_type" => Ok(Self::PerType),
            other => node.refuse(format!("`{other}`: expected ads or per_type")),
        }
    }

    pub(super) fn to_value(self) -> Value {
        self.as_str().into()
    }
}
