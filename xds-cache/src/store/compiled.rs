//! Which variant of a name a selector selects.

use std::sync::Arc;

use xds_matcher::draft::Subscription;
use xds_matcher::{DraftVariants, DynamicParameters, FinalVariants};

use crate::variant::{Selector, Variant};

/// The variants of one name, compiled for selection.
///
/// All of one name are of one form, or should be. If not, those of the selector's own form come first.
pub(crate) struct Compiled {
    finals: FinalVariants<Arc<Variant>>,
    drafts: DraftVariants<Arc<Variant>>,
    /// The variant for everybody, which no constraint is too complicated for.
    plain: Option<Arc<Variant>>,
}

/// What a selector selects.
#[derive(Default)]
pub(crate) struct Choice {
    pub(crate) chosen: Option<Arc<Variant>>,
    /// One that is as good.
    pub(crate) other: Option<Arc<Variant>>,
}

impl Selector {
    /// Which of the variants of one name is for who selects by this: none may be. Of several that are the same one always is,
    /// in whatever order they come; of the draft's, one with the largest integer.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use xds_matcher::DynamicParameters;
    /// use xdstp_cache::{Selector, Variant};
    ///
    /// let [prod, test] = ["env=prod", "env=test"].map(|text| Arc::new(Variant::Constraints(text.parse().unwrap())));
    /// let selector = Selector::Parameters(DynamicParameters::from_iter([("env", "test")]));
    /// assert_eq!(selector.choose([&prod, &test]), Some(test));
    /// assert_eq!(selector.choose([&prod]), None);
    /// ```
    pub fn choose<'a>(&self, variants: impl IntoIterator<Item = &'a Arc<Variant>>) -> Option<Arc<Variant>> {
        Compiled::new(variants.into_iter()).choose(self).chosen
    }
}

impl Compiled {
    pub(crate) fn new<'a>(variants: impl Iterator<Item = &'a Arc<Variant>>) -> Self {
        let (mut finals, mut drafts, mut plain) = (Vec::new(), Vec::new(), None);
        for variant in variants {
            match &**variant {
                _ if variant.is_plain() => plain = Some(variant.clone()),
                Variant::Constraints(constraint) => finals.push((variant.clone(), constraint.clone())),
                Variant::Parameters(parameters) => drafts.push((variant.clone(), parameters.clone())),
            }
        }
        if let (Some(plain), Variant::Constraints(all)) = (&plain, Variant::plain()) {
            match finals.is_empty() && !drafts.is_empty() {
                true => drafts.push((plain.clone(), DynamicParameters::new())),
                false => finals.push((plain.clone(), all.clone())),
            }
        }
        Self { finals: FinalVariants::new(finals), drafts: DraftVariants::new(drafts), plain }
    }

    pub(crate) fn choose(&self, selector: &Selector) -> Choice {
        let (own, others) = match selector {
            Selector::Parameters(parameters) => (self.choose_final(parameters), self.choose_draft_by(parameters)),
            Selector::Constraints(constraints) => (self.choose_draft(constraints), self.choose_final_by(constraints)),
        };
        match own.chosen {
            Some(_) => Choice { other: own.other.or(others.chosen), ..own },
            None => others,
        }
    }

    /// All that are for who has a selector.
    pub(crate) fn matching(&self, selector: &Selector) -> Vec<&Arc<Variant>> {
        let (finals, drafts) = match selector {
            Selector::Parameters(parameters) => {
                (self.finals.matches(parameters), self.drafts.matches_final(parameters))
            }
            Selector::Constraints(constraints) => {
                let finals = match constraints.to_parameters() {
                    Ok(parameters) => self.finals.matches(&parameters),
                    Err(_) => self.plain.iter().collect(),
                };
                (finals, self.drafts.matches(constraints))
            }
        };
        finals.into_iter().chain(drafts).collect()
    }

    fn choose_final(&self, parameters: &DynamicParameters) -> Choice {
        let selected = self.finals.select(parameters);
        let others = if selected.is_ambiguous() { self.finals.matches(parameters) } else { Vec::new() };
        let other = others.into_iter().find(|other| Some(*other) != selected.variant());
        Choice { chosen: selected.variant().cloned(), other: other.cloned() }
    }

    fn choose_draft_by(&self, parameters: &DynamicParameters) -> Choice {
        let selected = self.drafts.select_final(parameters);
        let others = if selected.is_ambiguous() { self.drafts.matches_final(parameters) } else { Vec::new() };
        let other = others.into_iter().find(|other| Some(*other) != selected.variant());
        Choice { chosen: selected.variant().cloned(), other: other.cloned() }
    }

    fn choose_draft(&self, constraints: &Subscription) -> Choice {
        let selected = self.drafts.select(constraints);
        let Some(chosen) = selected.variant() else { return Choice::default() };
        let others = if selected.is_ambiguous() { self.drafts.matches(constraints) } else { Vec::new() };
        // Of the others that match, some may have smaller integers.
        let is_as_good = |other: &&&Arc<Variant>| {
            let pair = [chosen, other].into_iter().map(|variant| match &**variant {
                Variant::Parameters(parameters) => (variant, parameters.clone()),
                Variant::Constraints(_) => (variant, DynamicParameters::new()),
            });
            *other != &chosen && DraftVariants::new(pair).select(constraints).is_ambiguous()
        };
        let other = others.iter().find(is_as_good).map(|other| (*other).clone());
        Choice { chosen: Some(chosen.clone()), other }
    }

    fn choose_final_by(&self, constraints: &Subscription) -> Choice {
        match constraints.to_parameters() {
            Ok(parameters) => self.choose_final(&parameters),
            // Parameters cannot say that, and only what is for everybody is for who says it.
            Err(_) => Choice { chosen: self.plain.clone(), other: None },
        }
    }
}
