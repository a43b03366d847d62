//! Bytes, read as choices. Where they end, every choice is the first.

use std::slice::Iter;

pub(crate) struct Script<'a>(Iter<'a, u8>);

impl<'a> Script<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.iter())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.len() == 0
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or_default()
    }

    pub(crate) fn index(&mut self, of: usize) -> usize {
        usize::from(self.byte()) % of.max(1)
    }

    /// One of few, or any set of them.
    pub(crate) fn some<T: Clone>(&mut self, of: &[T]) -> Vec<T> {
        let one = self.byte();
        if one & 1 == 0 {
            return of.get(usize::from(one >> 1) % of.len().max(1)).cloned().into_iter().collect();
        }
        let bits = u16::from(one) | u16::from(self.byte()) << 8;
        let chosen = of.iter().enumerate().filter(|(at, _)| bits >> (at + 1) & 1 == 1);
        chosen.map(|(_, this)| this.clone()).collect()
    }

    /// Bytes as they are.
    pub(crate) fn raw(&mut self) -> Vec<u8> {
        let length = usize::from(self.byte());
        self.0.by_ref().take(length).copied().collect()
    }

    /// The same bytes, but for one or two places.
    pub(crate) fn mutated(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..1 + self.index(2) {
            let at = usize::from(self.byte()) | usize::from(self.byte()) << 8;
            let (change, length) = (self.byte(), bytes.len().max(1));
            match change % 4 {
                0 => bytes.truncate(at % length),
                1 => bytes.insert(at % length, change),
                _ => {
                    if let Some(byte) = bytes.get_mut(at % length) {
                        *byte ^= change;
                    }
                }
            }
        }
        bytes
    }
}
