//! Aggregation rules: what a file may say, and the keys that come of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod bad_files;
mod hostile;
mod laws;
mod matches;
mod naive;
mod oracle;
mod readings;
mod results;
mod support;
mod vectors;
