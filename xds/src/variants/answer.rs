//! Questions about variants and their answers as JSON: the protocol of the test vectors.

use serde_json::{Map, Value, json};
use xds_matcher::draft::{self, DynamicParameterConstraintsMap, Subscription};
use xds_matcher::{
    Constraint, ConstraintError, DraftVariants, DynamicParameters, FinalVariants, LintOptions, LintReport, MAX_DEPTH,
    final_form,
};

/// Answers a question about variants.
///
/// `op` is one of
/// * `select`: `file` (`form`: `final` or `draft`; `variants`: each a `name` with `constraints` or `parameters`), `subscriber`
///   (`parameters` or `constraints`) → `matches`, `selected`, `ambiguous`
/// * `lint`: `file`, and if known `values` (lists by key) and `sent` (a list of keys) → `overlaps`, `same_keys`, and as asked
///   `uncovered`, `unsent`
/// * `smaller_cached`: `file`, `subscriber` → `must_ask`
/// * `dpds`: `map`, `resource_type`, and if there was one `previous` → `constraints`, `resubscribe`
///
/// Invalid input gives `{"error": kind}`, that of an error's `as_str`. As the whole of a variant's `constraints`,
/// `{"$nest": {"with": op or list of ops, "times": n, "inner": c}}` stands for `c` wrapped `n` times, innermost first.
pub(crate) fn answer(question: &Value) -> Value {
    let op = question.get("op").and_then(Value::as_str);
    let answer = match op {
        Some("select") => select(question),
        Some("lint") => lint(question),
        Some("smaller_cached") => smaller_cached(question),
        Some("dpds") => dpds(question),
        _ => Err(WRONG_TYPE),
    };
    answer.unwrap_or_else(|Refusal(kind)| json!({ "error": kind }))
}

/// Why there is no answer.
struct Refusal(&'static str);

const WRONG_TYPE: Refusal = Refusal("wrong_type");

impl From<ConstraintError> for Refusal {
    fn from(error: ConstraintError) -> Self {
        Self(error.kind().as_str())
    }
}

enum Variants {
    Final(FinalVariants<String>),
    Draft(DraftVariants<String>),
}

enum Subscriber {
    Final(DynamicParameters),
    Draft(Subscription),
}

fn select(question: &Value) -> Result<Value, Refusal> {
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

fn lint(question: &Value) -> Result<Value, Refusal> {
    let values: Option<Vec<(&str, Vec<&str>)>> = match present(question, "values") {
        None => None,
        Some(values) => {
            let lists = object(values)?.iter().map(|(key, values)| Ok((key.as_str(), strings(values)?)));
            Some(lists.collect::<Result<_, Refusal>>()?)
        }
    };
    let lists: Vec<(&str, &[&str])> = values.iter().flatten().map(|(key, values)| (*key, values.as_slice())).collect();
    let sent = present(question, "sent").map(strings).transpose()?;
    let options = LintOptions::new().values(&lists);
    let options = sent.as_deref().map_or(options, |sent| options.sent(sent));
    let variants = read_file(question)?;
    let report = match &variants {
        Variants::Final(variants) => variants.lint(&options),
        Variants::Draft(variants) => variants.lint(&options),
    };
    let mut answer =
        Map::from_iter([("overlaps".to_owned(), overlaps(&report)), ("same_keys".to_owned(), report.same_keys.into())]);
    if values.is_some() {
        let known = report.uncovered_undecided.is_empty();
        answer.insert("uncovered".into(), if known { json!(report.uncovered) } else { json!("unknown") });
    }
    if sent.is_some() {
        answer.insert("unsent".into(), json!(report.unsent));
    }
    Ok(answer.into())
}

fn overlaps(report: &LintReport<'_, String>) -> Value {
    if report.undecided.is_empty() && report.is_complete() { json!(report.overlaps) } else { json!("unknown") }
}

fn smaller_cached(question: &Value) -> Result<Value, Refusal> {
    match (read_file(question)?, read_subscriber(question)?) {
        (Variants::Draft(cached), Subscriber::Draft(subscription)) => {
            Ok(json!({ "must_ask": cached.must_ask_upstream(&subscription) }))
        }
        _ => Err(WRONG_TYPE),
    }
}

fn dpds(question: &Value) -> Result<Value, Refusal> {
    let read = |field| match present(question, field) {
        None => Ok(None),
        Some(map) => {
            let map = DynamicParameterConstraintsMap::from_json(map)?;
            map.check()?;
            Ok::<_, Refusal>(Some(map))
        }
    };
    let (map, previous) = (read("map")?, read("previous")?);
    let resource_type = question.get("resource_type").and_then(Value::as_str).ok_or(WRONG_TYPE)?;
    let nothing = DynamicParameterConstraintsMap::default();
    // As it was given: a bound that was written as a number stays one.
    let unchanged = || question.get("map")?.as_object()?.values().next()?.get(resource_type);
    let constrained = map.as_ref().and_then(|map| map.constraints(resource_type));
    let constraints = constrained.and_then(|_| unchanged()).cloned().unwrap_or_else(|| json!({}));
    let mut answer = Map::from_iter([("constraints".to_owned(), constraints)]);
    if question.get("previous").is_some() {
        let resubscribe = map.as_ref().unwrap_or(&nothing).must_resubscribe(previous.as_ref(), resource_type);
        answer.insert("resubscribe".into(), resubscribe.into());
    }
    Ok(answer.into())
}

fn read_file(question: &Value) -> Result<Variants, Refusal> {
    let file = fields(question.get("file").ok_or(WRONG_TYPE)?, &["form", "variants"])?;
    let variants = file.get("variants").filter(|variants| !variants.is_null());
    let variants = variants.map(|variants| variants.as_array().ok_or(WRONG_TYPE)).transpose()?.into_iter().flatten();
    match file.get("form").and_then(Value::as_str) {
        Some("final") => {
            let read = variants.map(|variant| {
                let (name, constraints) = read_variant(variant, "constraints")?;
                Ok((name, constraints.map_or(Ok(Constraint::unconstrained()), read_constraints)?))
            });
            Ok(Variants::Final(FinalVariants::new(read.collect::<Result<Vec<_>, Refusal>>()?)))
        }
        Some("draft") => {
            let read = variants.map(|variant| {
                let (name, parameters) = read_variant(variant, "parameters")?;
                Ok((name, parameters.map_or(Ok(DynamicParameters::new()), DynamicParameters::from_json)?))
            });
            Ok(Variants::Draft(DraftVariants::new(read.collect::<Result<Vec<_>, Refusal>>()?)))
        }
        _ => Err(WRONG_TYPE),
    }
}

fn read_variant<'a>(value: &'a Value, body: &str) -> Result<(String, Option<&'a Value>), Refusal> {
    let fields = fields(value, &["name", body])?;
    let name = fields.get("name").map(string).transpose()?.unwrap_or_default();
    Ok((name.to_owned(), fields.get(body).filter(|body| !body.is_null())))
}

fn read_subscriber(question: &Value) -> Result<Subscriber, Refusal> {
    let subscriber = question.get("subscriber").ok_or(WRONG_TYPE)?;
    fields(subscriber, &["parameters", "constraints"])?;
    let parameters = present(subscriber, "parameters").map(DynamicParameters::from_json).transpose()?;
    let constraints =
        present(subscriber, "constraints").map(draft::DynamicParameterConstraints::from_json).transpose()?;
    match (parameters, constraints) {
        (parameters, None) => Ok(Subscriber::Final(parameters.unwrap_or_default())),
        (None, Some(constraints)) => Ok(Subscriber::Draft(constraints.lower()?)),
        (Some(_), Some(_)) => Err(Refusal("oneof_conflict")),
    }
}

fn read_constraints(value: &Value) -> Result<Constraint, Refusal> {
    let Some(nest) = value.get("$nest") else {
        return Ok(final_form::DynamicParameterConstraints::from_json(value)?.lower()?);
    };
    let with = nest.get("with").ok_or(WRONG_TYPE)?;
    let ops = if with.is_array() { strings(with)? } else { vec![string(with)?] };
    let times = nest.get("times").and_then(Value::as_u64).ok_or(WRONG_TYPE)?;
    // One level too many is as good as any number of them, and does not need as much stack.
    let times = usize::try_from(times).unwrap_or(usize::MAX).min(MAX_DEPTH + 1);
    let mut nested = nest.get("inner").cloned().ok_or(WRONG_TYPE)?;
    object(&nested)?;
    for op in ops.iter().cycle().take(times) {
        let inner = if *op == "not_constraints" { nested } else { json!({ "constraints": [nested] }) };
        nested = Value::Object(Map::from_iter([((*op).to_owned(), inner)]));
    }
    Ok(final_form::DynamicParameterConstraints::from_json(&nested)?.lower()?)
}

fn present<'a>(question: &'a Value, field: &str) -> Option<&'a Value> {
    question.get(field).filter(|value| !value.is_null())
}

/// An object with no other fields than these.
fn fields<'a>(value: &'a Value, known: &[&str]) -> Result<&'a Map<String, Value>, Refusal> {
    let fields = object(value)?;
    if fields.keys().all(|field| known.contains(&field.as_str())) { Ok(fields) } else { Err(Refusal("unknown_field")) }
}

fn object(value: &Value) -> Result<&Map<String, Value>, Refusal> {
    value.as_object().ok_or(WRONG_TYPE)
}

fn string(value: &Value) -> Result<&str, Refusal> {
    value.as_str().ok_or(WRONG_TYPE)
}

fn strings(value: &Value) -> Result<Vec<&str>, Refusal> {
    value.as_array().ok_or(WRONG_TYPE)?.iter().map(string).collect()
}
