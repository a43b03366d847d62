//! One scenario instead of the usual ones.

use clap::Args;

use crate::clients::Protocol;

/// What the one is like, if it is picked.
#[derive(Args)]
pub(crate) struct Pick {
    /// Measures this many clients only, as the other options say.
    #[arg(long)]
    pub(crate) clients: Option<usize>,
    /// How many resources each has.
    #[arg(long, default_value_t = 1000)]
    pub(crate) resources: usize,
    /// How many KiB each resource has.
    #[arg(long, default_value_t = 1)]
    pub(crate) kibibytes: usize,
    /// They subscribe to every name instead of the glob, as they have to over SotW.
    #[arg(long)]
    exact: bool,
    /// How they are told.
    #[arg(long, value_enum, default_value = "delta")]
    pub(crate) protocol: Protocol,
    /// How many turns each server has.
    #[arg(long, default_value_t = 5)]
    pub(crate) turns: usize,
}

impl Pick {
    /// Whether clients subscribe to every name.
    pub(crate) fn by_name(&self) -> bool {
        self.exact || self.protocol == Protocol::Sotw
    }
}
