//! What lives for a time only, and when that is over.

use std::collections::HashMap;
use std::time::Instant;

use xdstp_cache::TypeUrl;
use xdstp_uri::ResourceName;

use crate::deadlines::Deadlines;

/// The resources that are over at a time, each with one.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    due: Deadlines<(TypeUrl, ResourceName)>,
    of: HashMap<(TypeUrl, ResourceName), Instant>,
}

impl Lives {
    /// A resource is over then, whatever was said before; or never.
    pub(crate) fn set(&mut self, type_url: &TypeUrl, name: &ResourceName, ends: Option<Instant>) {
        if ends.is_none() && self.of.is_empty() {
            return;
        }
        let key = (type_url.clone(), name.clone());
        if let Some(before) = self.of.remove(&key) {
            self.due.remove(before, key.clone());
        }
        if let Some(ends) = ends {
            self.due.insert(ends, key.clone());
            self.of.insert(key, ends);
        }
    }

    /// When the next one is over.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.next()
    }

    /// Takes one that is over.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(TypeUrl, ResourceName)> {
        let key = self.due.pop(now)?;
        self.of.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_resource_is_over_once_and_when_it_was_said_last() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let (of, name) = (TypeUrl::from("type.example.com/T"), "a".parse().unwrap());
        let mut lives = Lives::default();
        for ends in [9, 1, 5] {
            lives.set(&of, &name, Some(now + ends * second));
        }
        assert_eq!(lives.next(), Some(now + 5 * second));
        assert_eq!(lives.pop(now + 4 * second), None);
        assert_eq!(lives.pop(now + 5 * second), Some((of.clone(), name.clone())));
        assert_eq!((lives.next(), lives.of.len()), (None, 0));
        lives.set(&of, &name, Some(now));
        lives.set(&of, &name, None);
        assert_eq!((lives.pop(now), lives.of.len()), (None, 0));
    }
}
