//! The four ways to ask: rule 1.

use clap::ValueEnum;
use xds_transport::Protocol;

use super::resources::Of;

/// Which protocol, and whether a stream is of all types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Method {
    /// SotW, aggregated
    SotwAds,
    /// Delta, aggregated
    DeltaAds,
    /// SotW, a stream for each type
    Sotw,
    /// Delta, a stream for each type
    Delta,
}

pub(crate) const ALL: &[Method] = &[Method::SotwAds, Method::DeltaAds, Method::Sotw, Method::Delta];
pub(crate) const ADS: &[Method] = &[Method::SotwAds, Method::DeltaAds];
pub(crate) const SOTW: &[Method] = &[Method::SotwAds, Method::Sotw];
pub(crate) const DELTA: &[Method] = &[Method::DeltaAds, Method::Delta];
pub(crate) const SOTW_ADS: &[Method] = &[Method::SotwAds];
pub(crate) const DELTA_ADS: &[Method] = &[Method::DeltaAds];

impl Method {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::SotwAds => "sotw-ads",
            Self::DeltaAds => "delta-ads",
            Self::Sotw => "sotw",
            Self::Delta => "delta",
        }
    }

    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::SotwAds | Self::Sotw => Protocol::Sotw,
            Self::DeltaAds | Self::Delta => Protocol::Delta,
        }
    }

    pub(crate) fn is_sotw(self) -> bool {
        self.protocol() == Protocol::Sotw
    }

    pub(crate) fn is_aggregated(self) -> bool {
        matches!(self, Self::SotwAds | Self::DeltaAds)
    }

    /// What a stream is opened with that is asked for a type first.
    pub(crate) fn path(self, of: Of) -> String {
        if self.is_aggregated() {
            return self.protocol().aggregated_method().to_owned();
        }
        let (service, resources) = of.service();
        let prefix = if self.is_sotw() { "Stream" } else { "Delta" };
        format!("/envoy.service.{service}/{prefix}{resources}")
    }
}
