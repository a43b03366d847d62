//! What the processes of the measurement have in common: see `benches/README.md`.

pub mod content;
pub mod delta_ads;

/// What went wrong, in words for whoever runs the measurement.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
