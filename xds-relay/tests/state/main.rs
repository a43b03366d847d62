//! What a relay keeps across restarts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod directories;
mod files;
#[cfg(all(target_os = "linux", feature = "file-origin"))]
mod forms;

#[cfg(all(target_os = "linux", feature = "file-origin"))]
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../support/process.rs"]
mod process;
