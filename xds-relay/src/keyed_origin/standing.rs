//! How an origin is, for people.

use super::follower::HELD;

/// How an origin is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Who has the keys, such as `etcd`.
    pub(crate) keeper: &'static str,
    /// Why he does not answer, if he does not.
    pub(crate) away: Option<String>,
    /// How many values are refused, and the first of them.
    pub(crate) refused: (u64, Option<String>),
    /// How many resources are gone and served all the same, until that is seen again.
    pub(crate) held_back: usize,
}

impl Standing {
    /// What is wrong, in a sentence; whether anything is known of what the origin has.
    pub(crate) fn trouble(&self, is_known: bool) -> Option<String> {
        if let Some(why) = &self.away {
            let stays = if is_known { "all stays as it is" } else { "nothing is known" };
            return Some(format!("{} is away, and {stays}: {why}", self.keeper));
        }
        if self.held_back > 0 {
            let (gone, seconds) = (self.held_back, HELD.as_secs());
            return Some(format!("{gone} resources are gone at once: they stay until that is so for {seconds} s"));
        }
        match &self.refused {
            (0, _) | (_, None) => None,
            (1, Some(first)) => Some(format!("a value is refused: {first}")),
            (count, Some(first)) => Some(format!("{count} values are refused, of {first} among them")),
        }
    }
}
