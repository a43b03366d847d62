//! What long texts are told by within this process.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Hashes by a key that nobody else knows, and that nobody sees: whoever chooses what is hashed cannot make two alike. They mean
/// nothing to another process, and are never written.
#[derive(Debug, Default)]
pub(crate) struct Prints(RandomState);

impl Prints {
    /// Of a text that no other is to be taken for.
    pub(crate) fn of_key(&self, key: &str) -> [u64; 2] {
        [self.half(0, key.as_bytes()), self.half(1, key.as_bytes())]
    }

    /// Of what is looked at closely where it seems to be alike.
    pub(crate) fn of_body(&self, body: &[u8]) -> u64 {
        self.half(2, body)
    }

    fn half(&self, which: u64, bytes: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u64(which);
        hasher.write(bytes);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hashed_for_one_end_says_nothing_of_another_nor_does_another_process() {
        let [here, elsewhere] = [Prints::default(), Prints::default()];
        let [one, other] = here.of_key("x");
        assert!(one != other && ![one, other].contains(&here.of_body(b"x")));
        assert_eq!(here.of_key("x"), [one, other]);
        assert_ne!(here.of_key("y"), [one, other]);
        assert_ne!(elsewhere.of_key("x"), [one, other]);
    }
}
