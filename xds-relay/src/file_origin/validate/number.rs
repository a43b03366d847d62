//! Rules of numbers, and of what is counted or measured like one.

use std::fmt::Display;

use super::refusal::Found;

/// What numbers may be.
#[derive(Debug, Clone)]
pub(super) struct Numbers<T> {
    pub(super) constant: Option<T>,
    pub(super) range: Range<T>,
    pub(super) one_of: Vec<T>,
    pub(super) none_of: Vec<T>,
    /// Whether zero may always be.
    pub(super) ignores_zero: bool,
}

/// Between which numbers, or outside of which: that is what it is where the lower one is not lower.
#[derive(Debug, Clone)]
pub(super) struct Range<T> {
    lower: Option<Bound<T>>,
    upper: Option<Bound<T>>,
}

#[derive(Debug, Clone, Copy)]
struct Bound<T> {
    at: T,
    is_inclusive: bool,
}

impl<T: PartialOrd + Copy> Range<T> {
    /// Where both kinds of a bound are given, the exclusive one counts.
    pub(super) fn new([lt, lte, gt, gte]: [Option<T>; 4]) -> Self {
        let bound = |exclusive: Option<T>, inclusive: Option<T>| {
            let inclusive = inclusive.map(|at| Bound { at, is_inclusive: true });
            exclusive.map(|at| Bound { at, is_inclusive: false }).or(inclusive)
        };
        Self { lower: bound(gt, gte), upper: bound(lt, lte) }
    }

    /// Both ends are in it.
    pub(super) fn of_counts(least: Option<T>, most: Option<T>) -> Self {
        Self::new([None, most, None, least])
    }

    /// What is no number is in every range, as it is for Envoy.
    pub(super) fn has(&self, value: T) -> bool {
        let below = self.lower.map(|Bound { at, is_inclusive }| value < at || (value == at && !is_inclusive));
        let above = self.upper.map(|Bound { at, is_inclusive }| value > at || (value == at && !is_inclusive));
        match (below, above) {
            (Some(below), Some(above)) if self.is_outside() => !(below && above),
            (below, above) => !(below.unwrap_or_default() || above.unwrap_or_default()),
        }
    }

    pub(super) fn words(&self, text: &dyn Fn(T) -> String) -> String {
        if let Some(exact) = self.exact() {
            return format!("exactly {}", text(exact));
        }
        let lower = self.lower.map(|Bound { at, is_inclusive }| {
            format!("{} {}", if is_inclusive { "at least" } else { "more than" }, text(at))
        });
        let upper = self.upper.map(|Bound { at, is_inclusive }| {
            format!("{} {}", if is_inclusive { "at most" } else { "less than" }, text(at))
        });
        let and = if self.is_outside() { " or " } else { " and " };
        lower.into_iter().chain(upper).collect::<Vec<_>>().join(and)
    }

    fn is_outside(&self) -> bool {
        self.exact().is_none() && matches!((self.lower, self.upper), (Some(lower), Some(upper)) if lower.at >= upper.at)
    }

    /// The one that is in it.
    fn exact(&self) -> Option<T> {
        let (lower, upper) = (self.lower?, self.upper?);
        (lower.at == upper.at && lower.is_inclusive && upper.is_inclusive).then_some(lower.at)
    }
}

impl<T: PartialOrd + Copy + Default> Numbers<T> {
    pub(super) fn check(&self, value: T, text: &dyn Fn(T) -> String, refuse: &mut dyn FnMut(String, Found)) {
        if self.ignores_zero && value == T::default() {
            return;
        }
        let mut refuse = |expected: String| refuse(expected, Found::Value(text(value)));
        let list = |of: &[T]| listed(of.iter().map(|one| text(*one)));
        if let Some(constant) = self.constant.filter(|constant| *constant != value) {
            refuse(text(constant));
        }
        if !self.range.has(value) {
            refuse(self.range.words(text));
        }
        if !self.one_of.is_empty() && !self.one_of.contains(&value) {
            refuse(format!("one of {}", list(&self.one_of)));
        }
        if self.none_of.contains(&value) {
            refuse(format!("none of {}", list(&self.none_of)));
        }
    }
}

pub(super) fn listed(texts: impl Iterator<Item = impl Display>) -> String {
    texts.map(|text| text.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(range: [Option<i64>; 4], values: std::ops::RangeInclusive<i64>) -> Vec<i64> {
        let range = Range::new(range);
        values.filter(|value| range.has(*value)).collect()
    }

    #[test]
    fn the_ends_of_a_range_are_in_it_or_not_as_the_rule_says() {
        assert_eq!(good([None, None, None, None], 0..=2), [0, 1, 2]);
        assert_eq!(good([Some(3), None, Some(1), None], 0..=4), [2]);
        assert_eq!(good([None, Some(3), None, Some(1)], 0..=4), [1, 2, 3]);
        assert_eq!(good([Some(3), None, None, Some(1)], 0..=4), [1, 2]);
        assert_eq!(good([None, Some(3), Some(1), None], 0..=4), [2, 3]);
        assert_eq!(good([Some(2), Some(9), None, None], 0..=4), [0, 1], "the exclusive one counts");
    }

    #[test]
    fn a_range_whose_lower_end_is_the_greater_is_outside_of_it() {
        assert_eq!(good([Some(1), None, Some(3), None], 0..=4), [0, 4]);
        assert_eq!(good([None, Some(1), None, Some(3)], 0..=4), [0, 1, 3, 4]);
        assert_eq!(good([Some(1), None, None, Some(3)], 0..=4), [0, 3, 4]);
        assert_eq!(good([None, Some(1), Some(3), None], 0..=4), [0, 1, 4]);
        assert_eq!(good([Some(2), None, Some(2), None], 0..=4), [0, 1, 3, 4]);
        assert_eq!(good([None, Some(2), None, Some(2)], 0..=4), [2], "but one that has both ends is that alone");
    }

    #[test]
    fn what_is_no_number_is_in_every_range() {
        for range in [Range::new([Some(1.0), None, Some(0.0), None]), Range::new([None, None, None, Some(1.0)])] {
            assert!(range.has(f64::NAN));
        }
    }

    #[test]
    fn a_range_is_said_in_words() {
        let words = |range| Range::new(range).words(&|value: i64| value.to_string());
        assert_eq!(words([Some(3), None, None, None]), "less than 3");
        assert_eq!(words([None, Some(3), None, Some(1)]), "at least 1 and at most 3");
        assert_eq!(words([None, Some(3), None, Some(3)]), "exactly 3");
        assert_eq!(words([Some(1), None, Some(3), None]), "more than 3 or less than 1");
    }

    #[test]
    fn each_rule_of_a_number_is_kept() {
        let none = Numbers {
            constant: None,
            range: Range::new([None; 4]),
            one_of: Vec::new(),
            none_of: Vec::new(),
            ignores_zero: false,
        };
        let told = |rules: &Numbers<i64>, value: i64| {
            let mut told = Vec::new();
            rules.check(value, &|value| value.to_string(), &mut |expected, _| told.push(expected));
            told
        };
        assert_eq!(told(&none, 7), [""; 0]);
        let constant = Numbers { constant: Some(5), ..none.clone() };
        assert_eq!((told(&constant, 5).len(), told(&constant, 0)), (0, vec!["5".to_owned()]));
        let one_of = Numbers { one_of: vec![1, 2], ..none.clone() };
        assert_eq!((told(&one_of, 2).len(), told(&one_of, 0)), (0, vec!["one of 1, 2".to_owned()]));
        let none_of = Numbers { none_of: vec![0, 2], ..none };
        assert_eq!((told(&none_of, 1).len(), told(&none_of, 0)), (0, vec!["none of 0, 2".to_owned()]));
        let ignores_zero = Numbers { ignores_zero: true, ..none_of };
        assert_eq!((told(&ignores_zero, 0).len(), told(&ignores_zero, 2).len()), (0, 1));
    }
}
