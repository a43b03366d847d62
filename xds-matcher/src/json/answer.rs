use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::fields::{Fields, list, map, object, string, wrong_type};
use crate::draft::{self, DynamicParameterConstraintsMap, Subscription};
use crate::{
    Constraint, ConstraintError, DraftVariants, DynamicParameters, ErrorKind, FinalVariants, LintOptions, LintReport,
    MAX_DEPTH, final_form,
};

/// Answers a question about variants that is put as JSON, for command lines and test vectors.
///
/// `op` is one of
/// * `select`: `file` (`form`: `final` or `draft`; `variants`: each a `name` with `constraints` or `parameters`), `subscriber`
///   (`parameters` or `constraints`) → `matches`, `selected`, `ambiguous`
/// * `lint`: `file`, and if known `values` (lists by key) and `sent` (a list of keys) → `overlaps`, `same_keys`, and as asked
///   `uncovered`, `unsent`
/// * `smaller_cached`: `file`, `subscriber` → `must_ask`
/// * `dpds`: `map`, `resource_type`, and if there was one `previous` → `constraints`, `resubscribe`
///
/// Invalid input gives `{"error": kind}` with [`ErrorKind::as_str`]. As the whole of a variant's `constraints`,
/// `{"$nest": {"with": op or list of ops, "times": n, "inner": c}}` stands for `c` wrapped `n` times, innermost first.
///
/// ```
/// use serde_json::json;
///
/// let answer = xds_matcher::json::answer(&json!({
///     "op": "select",
///     "file": {"form": "final", "variants": [{"name": "prod", "constraints": {"constraint": {"key": "env", "value": "prod"}}}]},
///     "subscriber": {"parameters": {"env": "prod"}},
/// }));
/// assert_eq!(answer, json!({"matches": ["prod"], "selected": "prod", "ambiguous": false}));
/// ```
pub fn answer(question: &Value) -> Value {
    let op = question.get("op").and_then(Value::as_str);
    let answer = match op {
        Some("select") => select(question),
        Some("lint") => lint(question),
        Some("smaller_cached") => smaller_cached(question),
        Some("dpds") => dpds(question),
        _ => Err(wrong_type()),
    };
    answer.unwrap_or_else(|e| json!({ "error": e.kind().as_str() }))
}

enum Variants {
    Final(FinalVariants<String>),
    Draft(DraftVariants<String>),
}

enum Subscriber {
    Final(DynamicParameters),
    Draft(Subscription),
}

fn select(question: &Value) -> Result<Value, ConstraintError> {
    let (variants, subscriber) = (read_file(question)?, read_subscriber(question)?);
    let (selection, mut matches) = match (&variants, &subscriber) {
        (Variants::Final(variants), Subscriber::Final(sent)) => (variants.select(sent), variants.matches(sent)),
        (Variants::Final(variants), Subscriber::Draft(subscription)) => {
            let sent = subscription.to_parameters()?;
            (variants.select(&sent), variants.matches(&sent))
        }
        (Variants::Draft(variants), Subscriber::Draft(sent)) => (variants.select(sent), variants.matches(sent)),
        (Variants::Draft(variants), Subscriber::Final(sent)) => {
            (variants.select_final(sent), variants.matches_final(sent))
        }
    };
    matches.sort_unstable();
    Ok(json!({ "matches": matches, "selected": selection.variant(), "ambiguous": selection.is_ambiguous() }))
}

fn lint(question: &Value) -> Result<Value, ConstraintError> {
    let strings = |value: &Value| list::<String, Vec<_>>(value, string);
    let values: Option<Vec<(String, Vec<String>)>> =
        present(question, "values").map(|v| map(v, strings)).transpose()?;
    let sent = present(question, "sent").map(strings).transpose()?;
    let lists: Vec<(&str, Vec<&str>)> = values
        .iter()
        .flatten()
        .map(|(key, values)| (key.as_str(), values.iter().map(String::as_str).collect()))
        .collect();
    let lists: Vec<(&str, &[&str])> = lists.iter().map(|(key, values)| (*key, values.as_slice())).collect();
    let keys: Option<Vec<&str>> = sent.as_ref().map(|keys| keys.iter().map(String::as_str).collect());
    let options = keys.iter().fold(LintOptions::new().values(&lists), |options, keys| options.sent(keys));
    let variants = read_file(question)?;
    let report = match &variants {
        Variants::Final(variants) => variants.lint(&options),
        Variants::Draft(variants) => variants.lint(&options),
    };
    let mut answer = json!({ "overlaps": overlaps(&report), "same_keys": report.same_keys });
    if let Some(answer) = answer.as_object_mut() {
        if values.is_some() {
            let known = report.uncovered_undecided.is_empty();
            answer.insert("uncovered".into(), if known { json!(report.uncovered) } else { json!("unknown") });
        }
        if sent.is_some() {
            answer.insert("unsent".into(), json!(report.unsent));
        }
    }
    Ok(answer)
}

fn overlaps(report: &LintReport<'_, String>) -> Value {
    if report.undecided.is_empty() && report.is_complete() { json!(report.overlaps) } else { json!("unknown") }
}

fn smaller_cached(question: &Value) -> Result<Value, ConstraintError> {
    let (Variants::Draft(cached), Subscriber::Draft(subscription)) = (read_file(question)?, read_subscriber(question)?)
    else {
        return Err(wrong_type().inside("form"));
    };
    Ok(json!({ "must_ask": cached.must_ask_upstream(&subscription) }))
}

fn dpds(question: &Value) -> Result<Value, ConstraintError> {
    let read = |field| {
        let read = |value| {
            let map = DynamicParameterConstraintsMap::from_json(value)?;
            map.check().map(|()| map)
        };
        present(question, field).map(read).transpose()
    };
    let (map, previous) = (read("map")?, read("previous")?);
    let resource_type = question.get("resource_type").and_then(Value::as_str).ok_or_else(wrong_type)?;
    let nothing = DynamicParameterConstraintsMap::default();
    // As it was given: a bound that was written as a number stays one.
    let unchanged = || question.get("map")?.as_object()?.values().next()?.get(resource_type);
    let constrained = map.as_ref().and_then(|map| map.constraints(resource_type));
    let constraints = constrained.and_then(|_| unchanged()).cloned().unwrap_or_else(|| json!({}));
    let mut answer = json!({ "constraints": constraints });
    if let (Some(_), Some(answer)) = (question.get("previous"), answer.as_object_mut()) {
        let resubscribe = map.as_ref().unwrap_or(&nothing).must_resubscribe(previous.as_ref(), resource_type);
        answer.insert("resubscribe".into(), json!(resubscribe));
    }
    Ok(answer)
}

fn present<'a>(question: &'a Value, field: &str) -> Option<&'a Value> {
    question.get(field).filter(|value| !value.is_null())
}

fn read_file(question: &Value) -> Result<Variants, ConstraintError> {
    let fields = Fields::of(question.get("file").ok_or_else(wrong_type)?, &["form", "variants"])?;
    let variants = |read: &dyn Fn(&Value) -> Result<Variant, ConstraintError>| {
        Ok::<_, ConstraintError>(
            fields.read("variants", |variants| list::<_, Vec<_>>(variants, read))?.unwrap_or_default(),
        )
    };
    match fields.read("form", string)?.as_deref() {
        Some("final") => {
            let variants = variants(&|variant| read_variant(variant, "constraints"))?.into_iter();
            let lowered = variants.map(|Variant { name, body }| {
                Ok((name, body.as_ref().map_or(Ok(Constraint::unconstrained()), read_constraints)?))
            });
            Ok(Variants::Final(FinalVariants::new(lowered.collect::<Result<Vec<_>, ConstraintError>>()?)))
        }
        Some("draft") => {
            let variants = variants(&|variant| read_variant(variant, "parameters"))?.into_iter();
            let read = variants.map(|Variant { name, body }| {
                Ok((name, body.as_ref().map_or(Ok(DynamicParameters::new()), DynamicParameters::from_json)?))
            });
            Ok(Variants::Draft(DraftVariants::new(read.collect::<Result<Vec<_>, ConstraintError>>()?)))
        }
        _ => Err(wrong_type().inside("form")),
    }
}

struct Variant {
    name: String,
    body: Option<Value>,
}

fn read_variant(value: &Value, body: &str) -> Result<Variant, ConstraintError> {
    let fields = Fields::of(value, &["name", body])?;
    let name = fields.read("name", string)?.unwrap_or_default();
    Ok(Variant { name, body: fields.read(body, |value| Ok(value.clone()))? })
}

fn read_subscriber(question: &Value) -> Result<Subscriber, ConstraintError> {
    let fields = Fields::of(question.get("subscriber").ok_or_else(wrong_type)?, &["parameters", "constraints"])?;
    let parameters = fields.read("parameters", DynamicParameters::from_json)?;
    let constraints = fields.read("constraints", draft::DynamicParameterConstraints::from_json)?;
    match (parameters, constraints) {
        (parameters, None) => Ok(Subscriber::Final(parameters.unwrap_or_default())),
        (None, Some(constraints)) => Ok(Subscriber::Draft(constraints.lower()?)),
        (Some(_), Some(_)) => Err(ConstraintError::new(ErrorKind::OneofConflict)),
    }
}

fn read_constraints(value: &Value) -> Result<Constraint, ConstraintError> {
    let Some(nest) = value.get("$nest") else {
        return final_form::DynamicParameterConstraints::from_json(value)?.lower();
    };
    let with = nest.get("with").ok_or_else(wrong_type)?;
    let ops: Vec<String> = if with.is_array() { list(with, string)? } else { alloc::vec![string(with)?] };
    let times = nest.get("times").and_then(Value::as_u64).ok_or_else(wrong_type)?;
    // One level too many is as good as any number of them, and does not need as much stack.
    let times = usize::try_from(times).unwrap_or(usize::MAX).min(MAX_DEPTH + 1);
    let mut nested = nest.get("inner").cloned().ok_or_else(wrong_type)?;
    object(&nested)?;
    for op in ops.iter().cycle().take(times) {
        let inner = if op == "not_constraints" { nested } else { json!({ "constraints": [nested] }) };
        nested = Value::Object([(op.to_string(), inner)].into_iter().collect());
    }
    final_form::DynamicParameterConstraints::from_json(&nested)?.lower()
}
