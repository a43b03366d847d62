//! The file of variants: YAML with `form`, and `variants` that have a `name` and `constraints` (final) or `parameters` (draft).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::path::Path;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_saphyr::{DefaultMessageFormatter, Location, MessageFormatter, Options, Spanned};
use xds_matcher::{Constraint, DraftVariants, DynamicParameters, FinalVariants, MAX_DEPTH, ParseError, final_form};

use crate::input::read_file;
use crate::show::Problem;

pub(super) enum Variants {
    Final(FinalVariants<String>),
    Draft(DraftVariants<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    form: Form,
    variants: Vec<VariantDocument>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Form {
    Final,
    Draft,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariantDocument {
    name: Spanned<String>,
    constraints: Option<Spanned<Constraints>>,
    parameters: Option<BTreeMap<String, String>>,
}

/// As text, or as proto JSON.
enum Constraints {
    Text(String),
    Json(Value),
}

/// A file as it was read, which errors point into.
struct Source<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Variants {
    pub(super) fn read(file: &Path) -> Result<Self, Problem> {
        let text = read_file(file)?;
        let source = Source { file, text: &text };
        let Document { form, variants } = serde_saphyr::from_str_with_options(&text, options()).map_err(|error| {
            let message = DefaultMessageFormatter.format_message(error.without_snippet());
            source.problem(message, error.location().unwrap_or(Location::UNKNOWN))
        })?;
        source.check_names(&variants)?;
        Ok(match form {
            Form::Final => {
                let compiled = variants.into_iter().map(|variant| source.final_variant(variant));
                Self::Final(FinalVariants::new(compiled.collect::<Result<Vec<_>, _>>()?))
            }
            Form::Draft => {
                let read = variants.into_iter().map(|variant| source.draft_variant(variant));
                Self::Draft(DraftVariants::new(read.collect::<Result<Vec<_>, _>>()?))
            }
        })
    }
}

impl Source<'_> {
    fn check_names(&self, variants: &[VariantDocument]) -> Result<(), Problem> {
        let mut names = BTreeSet::new();
        match variants.iter().find(|variant| !names.insert(&variant.name.value)) {
            Some(again) => Err(self.problem("another variant has this name", again.name.referenced)),
            None => Ok(()),
        }
    }

    fn final_variant(&self, variant: VariantDocument) -> Result<(String, Constraint), Problem> {
        let VariantDocument { name, constraints, parameters } = variant;
        if parameters.is_some() {
            let problem = "expected constraints: in the final form it is subscribers that have parameters";
            return Err(self.problem(problem, name.referenced));
        }
        let compiled = constraints.map(|constraints| self.compile(&constraints, &name.value)).transpose()?;
        Ok((name.value, compiled.unwrap_or(Constraint::unconstrained())))
    }

    fn draft_variant(&self, variant: VariantDocument) -> Result<(String, DynamicParameters), Problem> {
        let VariantDocument { name, constraints, parameters } = variant;
        if constraints.is_some() {
            let problem = "expected parameters: in the draft form it is subscribers that have constraints";
            return Err(self.problem(problem, name.referenced));
        }
        Ok((name.value, parameters.unwrap_or_default().into_iter().collect()))
    }

    fn compile(&self, constraints: &Spanned<Constraints>, name: &str) -> Result<Constraint, Problem> {
        let problem = |error: &dyn Display| {
            self.problem(format_args!("constraints of {name:?}: {error}"), constraints.referenced)
        };
        match &constraints.value {
            // The line of the file may have the text quoted, folded or in part.
            Constraints::Text(text) => {
                text.parse().map_err(|error: ParseError| problem(&error).with_excerpt(text, error.offset()))
            }
            Constraints::Json(message) => final_form::DynamicParameterConstraints::from_json(message)
                .and_then(|message| message.lower())
                .map_err(|error| problem(&error)),
        }
    }

    fn problem(&self, problem: impl Display, place: Location) -> Problem {
        let problem = Problem::new(self.file, problem);
        if place == Location::UNKNOWN {
            return problem;
        }
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        problem.at_char(self.text, number(place.line()), number(place.column()))
    }
}

impl<'de> Deserialize<'de> for Constraints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrMap;

        impl<'de> Visitor<'de> for TextOrMap {
            type Value = Constraints;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("constraints as text or as proto JSON")
            }

            fn visit_str<E>(self, text: &str) -> Result<Constraints, E> {
                Ok(Constraints::Text(text.to_owned()))
            }

            /// `true` is a constraint and, to YAML, no text.
            fn visit_bool<E>(self, value: bool) -> Result<Constraints, E> {
                Ok(Constraints::Text(value.to_string()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Constraints, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(map)).map(Constraints::Json)
            }
        }

        deserializer.deserialize_any(TextOrMap)
    }
}

/// Room for a constraint that is as deep as one may be, each level of which is two maps and a list in the file.
fn options() -> Options {
    const DEPTH: usize = 3 * MAX_DEPTH + 16;
    serde_saphyr::options! { budget: serde_saphyr::budget! { max_depth: DEPTH, flow_nesting_limit: DEPTH } }
}
