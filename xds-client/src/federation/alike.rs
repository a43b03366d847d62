//! What many streams to one origin have to say alike is said once: a connection that ends takes a hundred with it.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::federation::lock::lock;

/// How long the same words are not said again.
const ONCE_IN: Duration = Duration::from_secs(1);

/// What was said last of the streams to an origin.
#[derive(Debug, Default)]
pub(crate) struct Alike(Mutex<Option<Said>>);

#[derive(Debug)]
struct Said {
    words: String,
    at: Instant,
    more: usize,
}

/// Words that were not said again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unsaid {
    pub(crate) words: String,
    /// How many streams would have.
    pub(crate) streams: usize,
}

impl Alike {
    /// Whether a stream is to say this at `now`, or be counted; and what others left unsaid before.
    pub(crate) fn say(&self, words: &str, now: Instant) -> (bool, Option<Unsaid>) {
        let mut last = lock(&self.0);
        match &mut *last {
            Some(said) if said.words == words && now.saturating_duration_since(said.at) < ONCE_IN => {
                said.more += 1;
                (false, None)
            }
            _ => {
                let before = last.replace(Said { words: words.to_owned(), at: now, more: 0 });
                let unsaid = before.filter(|said| said.more > 0);
                (true, unsaid.map(|said| Unsaid { words: said.words, streams: said.more }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_are_said_once_a_second_and_counted() {
        let (alike, now) = (Alike::default(), Instant::now());
        assert_eq!(alike.say("refused", now), (true, None));
        assert!((0..99).all(|_| alike.say("refused", now) == (false, None)));
        let unsaid = Unsaid { words: "refused".into(), streams: 99 };
        assert_eq!(alike.say("connected", now), (true, Some(unsaid)));
        assert_eq!(alike.say("refused", now), (true, None));
        assert_eq!(alike.say("refused", now + ONCE_IN), (true, None));
    }
}
