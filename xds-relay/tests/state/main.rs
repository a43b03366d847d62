//! What a relay keeps across restarts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod directories;
mod files;
