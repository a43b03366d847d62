//! What variants admit, with numbers for keys and values.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::admitted::Admitted;
use crate::range::integer;
use crate::ranges::Ranges;
use crate::steps::{look_up, spend};
use crate::values::Values;

/// The limits of all variants.
pub(super) struct Limits<'v> {
    /// Per variant; `None` for one that admits nothing.
    variants: Vec<Option<Vec<Limit>>>,
    classes: Vec<Class<'v>>,
}

/// What a variant admits for one key.
pub(super) struct Limit {
    pub(super) key: usize,
    /// It admits all classes but these, and all that is in none.
    pub(super) except: bool,
    /// Sorted.
    pub(super) classes: Vec<usize>,
}

/// Values of one key that one variant or several tell from all others: one value, or the integers of ranges. Other classes may
/// have some of the same integers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class<'v> {
    Value(Option<&'v str>),
    Integers(&'v Ranges),
}

/// The numbers of keys, and of classes by their key.
#[derive(Default)]
struct Numbers<'v> {
    keys: BTreeMap<&'v str, usize>,
    classes: BTreeMap<(usize, Class<'v>), usize>,
}

impl<'v> Limits<'v> {
    /// `None` if the steps are used up.
    pub(super) fn of(variants: &[&'v Admitted<'_>], steps: &mut usize) -> Option<Self> {
        let mut numbers = Numbers::default();
        let variants = variants.iter().map(|admitted| {
            if admitted.is_nothing() {
                return Some(None);
            }
            let listed = admitted.keys().map(|(key, values)| (key, values, false));
            let all = listed.chain(admitted.excepted_keys().map(|(key, values)| (key, values, true)));
            all.map(|(key, values, except)| numbers.limit(key, values, except, steps)).collect::<Option<_>>().map(Some)
        });
        let variants = variants.collect::<Option<_>>()?;
        let mut classes: Vec<(usize, Class<'v>)> =
            numbers.classes.into_iter().map(|((_, class), number)| (number, class)).collect();
        classes.sort_unstable_by_key(|(number, _)| *number);
        Some(Self { variants, classes: classes.into_iter().map(|(_, class)| class).collect() })
    }

    /// The variants that admit something.
    pub(super) fn members(&self) -> Vec<usize> {
        (0..).zip(&self.variants).filter_map(|(i, limits)| limits.as_ref().map(|_| i)).collect()
    }

    pub(super) fn by(&self, member: usize) -> &[Limit] {
        self.variants.get(member).and_then(Option::as_deref).unwrap_or_default()
    }

    pub(super) fn class(&self, number: usize) -> Class<'v> {
        self.classes.get(number).copied().unwrap_or(Class::Value(None))
    }
}

impl<'v> Numbers<'v> {
    fn limit(&mut self, key: &'v str, values: &'v Values<'_>, except: bool, steps: &mut usize) -> Option<Limit> {
        let next = self.keys.len();
        let known = spend(steps, look_up(key.len(), next)).then_some(&mut self.keys)?;
        let key = *known.entry(key).or_insert(next);
        let exact = values.exact().iter().map(|value| Class::Value(*value));
        let ranges = values.ranges();
        let integers = (!ranges.is_empty()).then_some(Class::Integers(ranges));
        let classes = exact.chain(integers).map(|class| {
            let next = self.classes.len();
            spend(steps, class.look_up(next)).then(|| *self.classes.entry((key, class)).or_insert(next))
        });
        let mut classes: Vec<usize> = classes.collect::<Option<_>>()?;
        classes.sort_unstable();
        Some(Limit { key, except, classes })
    }
}

impl<'v> Class<'v> {
    fn look_up(self, count: usize) -> usize {
        match self {
            Self::Value(value) => look_up(value.map_or(0, str::len), count),
            Self::Integers(ranges) => ranges.len(),
        }
    }

    /// In how many steps its integers are looked at.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Value(value) => look_up(value.map_or(0, str::len), 0),
            Self::Integers(ranges) => ranges.len(),
        }
    }

    /// Its integers, from the first to the last of each run.
    pub(super) fn spans(self) -> impl Iterator<Item = (u64, u64)> + 'v {
        let (one, ranges) = match self {
            Self::Value(value) => (value.and_then(integer), None),
            Self::Integers(ranges) => (None, Some(ranges.as_slice())),
        };
        let ranges = ranges.into_iter().flatten().map(|range| (range.start(), range.end()));
        one.map(|n| (n, n)).into_iter().chain(ranges)
    }

    pub(super) fn is_integers(self) -> bool {
        matches!(self, Self::Integers(_))
    }

    /// Whether all its values are in `other`, as far as one can tell from these two.
    pub(super) fn is_within(self, other: Self) -> bool {
        match (self, other) {
            (Self::Value(value), Self::Integers(ranges)) => value.is_some_and(|text| ranges.holds(text)),
            (Self::Integers(ours), Self::Integers(theirs)) => ours.is_within(theirs),
            // Numbers tell whether they are the same.
            (_, Self::Value(_)) => false,
        }
    }
}
