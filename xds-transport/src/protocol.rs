//! Which of the two protocols of xDS is spoken.

/// Which protocol a stream speaks: the method it is opened with says so (rule 1).
///
/// ```
/// use xds_transport::Protocol;
///
/// assert_eq!(Protocol::default().as_str(), "delta");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Incremental.
    #[default]
    Delta,
    /// State of the world.
    Sotw,
}

impl Protocol {
    /// As configurations and metrics spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Sotw => "sotw",
        }
    }

    /// The path of the aggregated method, which carries all types.
    ///
    /// ```
    /// use xds_transport::Protocol;
    ///
    /// assert!(Protocol::Delta.aggregated_method().ends_with("DeltaAggregatedResources"));
    /// ```
    #[must_use]
    pub fn aggregated_method(self) -> &'static str {
        match self {
            Self::Sotw => "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
            Self::Delta => "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
        }
    }
}
