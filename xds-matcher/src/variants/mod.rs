//! Sets of variants, compiled for selection.

mod canonical;
#[cfg(feature = "draft")]
mod draft_group;
#[cfg(feature = "draft")]
mod draft_variants;
mod final_variants;
mod index;
#[cfg(feature = "draft")]
mod integers;
mod intervals;

#[cfg(feature = "draft")]
pub use draft_variants::{DraftVariants, DraftVariantsIter};
pub use final_variants::{FinalVariants, FinalVariantsIter};

/// Which variant a subscriber gets.
///
/// Of several variants that are equally good the first in a fixed order is selected, the same on every machine and in whatever order
/// the variants were given, and [`is_ambiguous`](Self::is_ambiguous) tells: their owner should have avoided it.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Selection<'a, N> {
    variant: Option<&'a N>,
    ambiguous: bool,
}

impl<'a, N> Selection<'a, N> {
    #[cfg(feature = "draft")]
    const NONE: Self = Self { variant: None, ambiguous: false };

    /// The name of the selected variant; `None` if none matches, which is the same as if the resource did not exist.
    #[must_use]
    pub fn variant(&self) -> Option<&'a N> {
        self.variant
    }

    /// Whether another variant was just as good.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }
}

impl<N> Clone for Selection<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for Selection<'_, N> {}
