//! Whether a type's names count, its locators, or both.

use crate::Dialect;

/// Which fields of the requests of a type count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Counts {
    /// By the final form of TP2, names and locators may be mixed (rule 120).
    #[default]
    Both,
    /// By the draft the first request of a type decides, and the other field is ignored.
    Names,
    Locators,
}

impl Counts {
    /// Of a type whose first request has locators, or has none.
    pub(crate) fn first(dialect: Dialect, has_locators: bool) -> Self {
        match (dialect, has_locators) {
            (Dialect::Final, _) => Self::Both,
            (Dialect::Draft, false) => Self::Names,
            (Dialect::Draft, true) => Self::Locators,
        }
    }
}
