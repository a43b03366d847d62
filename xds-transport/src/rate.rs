//! How often something may happen.

use std::time::{Duration, Instant};

/// A limit in the way of a token bucket: `burst` at once, and one more `every` so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// How many may happen at once.
    pub burst: u32,
    /// How long it takes until one more may.
    pub every: Duration,
}

/// What is left of a [`RateLimit`].
///
/// ```
/// use std::time::{Duration, Instant};
/// use xds_transport::{Bucket, RateLimit};
///
/// let mut bucket = Bucket::new(RateLimit { burst: 1, every: Duration::from_secs(1) });
/// let now = Instant::now();
/// assert!(bucket.has_token(now));
/// bucket.take();
/// assert!(!bucket.has_token(now));
/// assert!(bucket.has_token(now + Duration::from_secs(1)));
/// assert!(bucket.is_full(now + Duration::from_secs(1)));
/// ```
#[derive(Debug)]
pub struct Bucket {
    limit: RateLimit,
    tokens: u32,
    /// Up to when tokens were put in.
    filled: Option<Instant>,
}

impl Bucket {
    /// A full one.
    pub fn new(limit: RateLimit) -> Self {
        Self { limit, tokens: limit.burst, filled: None }
    }

    /// What it was made of.
    pub fn limit(&self) -> RateLimit {
        self.limit
    }

    /// Whether there is a token, at a time that is never earlier than the last.
    pub fn has_token(&mut self, now: Instant) -> bool {
        let filled = *self.filled.get_or_insert(now);
        let every = self.limit.every.max(Duration::from_nanos(1));
        let earned = now.saturating_duration_since(filled).as_nanos() / every.as_nanos();
        let missing = self.limit.burst.saturating_sub(self.tokens);
        match u32::try_from(earned).ok().filter(|earned| *earned < missing) {
            Some(earned) => {
                self.tokens += earned;
                self.filled = filled.checked_add(every.saturating_mul(earned));
            }
            // A full bucket earns nothing.
            None => (self.tokens, self.filled) = (self.limit.burst, Some(now)),
        }
        self.tokens > 0
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self) {
        self.tokens = self.tokens.saturating_sub(1);
    }

    /// Puts one back that was taken for nothing.
    pub fn put_back(&mut self) {
        self.tokens = self.tokens.saturating_add(1).min(self.limit.burst);
    }

    /// Whether it is as a new one, at a time that is never earlier than the last.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.has_token(now) && self.tokens == self.limit.burst
    }

    /// When an empty bucket has a token again.
    pub fn next(&self) -> Option<Instant> {
        self.filled?.checked_add(self.limit.every)
    }
}
