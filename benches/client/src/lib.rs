//! A client that watches W names of one origin, and one of them changes.

pub mod content;
pub mod machine;
pub mod origin;
pub mod peers;
pub mod program;
pub mod receiving;
