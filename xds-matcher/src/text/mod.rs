//! The text form of a constraint; the README has its grammar.

mod parse;
mod write;

pub use parse::ParseError;
pub(crate) use parse::parse;
pub(crate) use write::{Quoted, Word, write};

/// Words with a meaning of their own where a key may stand.
const RESERVED: [&str; 9] = ["true", "false", "exists", "all", "any", "and", "or", "not", "in"];

/// Bytes of keys and values that need no quotes.
fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./:@+*~%".contains(&byte)
}
