//! Questions about names and their answers as JSON: the protocol of the test vectors.

mod bootstrap;

use serde_json::{Map, Value, json};
use xdstp_uri::a47::{self, InvalidTarget, ListenerError, UnknownAuthority};
use xdstp_uri::{ContextParams, Locator, ParseError, ParseErrorKind, ResourceName, Urn};

/// Answers a question about names.
///
/// `question` has an `op` and its `input`; the answer is what a test vector of that `op` calls `expect`:
/// * none, or `parse`: a text → what [`parse`] returns
/// * `equivalent`: two names → `equal`
/// * `match_subscription`: `subscribed` and `received` → `matches`
/// * `encode_urn`: `authority`, `resource_type`, `id`, `context_params` → `canonical`
/// * `compose_context_params`: `node`, `resource`, `client_features`, `well_known`, and maybe the `url` of a resource →
///   `context_params`, and `urn`
/// * `check_url_context_params`: `url` → nothing but an error
/// * `subscribe_collection`: `locator`, `expected_type`, `node_context_params` → `wire_name`
/// * `percent_encode_path`: a text → `encoded`
/// * `expand_template`: `template`, `value` → `name`
/// * `default_authority_template`: an authority → `template`
/// * `lookup_authority`: `name`, `bootstrap_authorities` (keys) → `authority_lookup`
/// * `resolve_listener`: `bootstrap`, `target` → `listener_name`, `style` (`xdstp` or `old`), `data_plane_authority`, and if the
///   name can be parsed `canonical`, and if it has an entry in the bootstrap `authority_lookup` and `servers`
/// * `resolve_server_listener`: `template`, `address` → the same for a server
///
/// What is refused gives `{"error": kind}`: that of the error's `as_str`, `invalid_target`, `wrong_type` for a missing or
/// mistyped input, `unknown_op`.
pub(crate) fn answer(question: &Value) -> Value {
    answer_or_refuse(question).unwrap_or_else(|Refusal(kind)| json!({ "error": kind }))
}

/// What a text is, as a name and as a locator.
///
/// A locator has `scheme`, `authority`, `resource_type`, `id`, `context_params`, `glob`, `canonical`, `directives` if there are
/// any, and `urn_error` if it is not the name of one resource. Any other text has `error`, the rule it breaks. One that is no
/// `xdstp:` name at all has `url_error` too, which tells why it is no other locator, and `opaque_name`: whether it will do as an
/// old-style name.
pub(crate) fn parse(text: &str) -> Value {
    match (Urn::parse(text), Locator::parse(text)) {
        (Ok(_), Ok(url)) => locator(&url).into(),
        (Err(error), Ok(url)) => {
            let mut found = locator(&url);
            found.insert("urn_error".into(), error.kind().as_str().into());
            found.into()
        }
        (Err(urn), Err(url)) if urn.kind() == ParseErrorKind::NotXdstp => json!({
            "error": urn.kind().as_str(),
            "url_error": url.kind().as_str(),
            "opaque_name": ResourceName::parse(text).is_ok() && !text.is_empty(),
        }),
        (_, Err(url)) => json!({ "error": url.kind().as_str() }),
    }
}

/// Why there is no answer.
struct Refusal(&'static str);

const WRONG_TYPE: Refusal = Refusal("wrong_type");

fn answer_or_refuse(question: &Value) -> Result<Value, Refusal> {
    let op = match question.get("op") {
        None | Some(Value::Null) => "parse",
        Some(op) => op.as_str().ok_or(WRONG_TYPE)?,
    };
    let input = question.get("input").ok_or(WRONG_TYPE)?;
    Ok(match op {
        "parse" => parse(text(input)?),
        "equivalent" => match input.as_array().map(Vec::as_slice) {
            Some([a, b]) => json!({"equal": Urn::parse(text(a)?)? == Urn::parse(text(b)?)?}),
            _ => return Err(WRONG_TYPE),
        },
        "match_subscription" => {
            let subscribed = ResourceName::parse(field(input, "subscribed")?)?;
            json!({"matches": ResourceName::parse(field(input, "received")?)?.answers(&subscribed)})
        }
        "encode_urn" => {
            let params = params(input.get("context_params"))?;
            let urn =
                Urn::new(field(input, "authority")?, field(input, "resource_type")?, field(input, "id")?, &params)?;
            json!({"canonical": urn.to_string()})
        }
        "compose_context_params" => compose(input)?,
        "check_url_context_params" => match Locator::parse(field(input, "url")?)?.check_reserved_params() {
            Ok(()) => json!({}),
            Err(_) => return Err(Refusal("reserved_context_param")),
        },
        "subscribe_collection" => {
            let node = params(input.get("node_context_params"))?;
            let locator = Locator::parse(field(input, "locator")?)?;
            let name = locator.to_collection_name(field(input, "expected_type")?, &node);
            json!({"wire_name": name.map_err(|error| Refusal(error.as_str()))?.as_str()})
        }
        "percent_encode_path" => json!({"encoded": a47::percent_encode_path(text(input)?)}),
        "expand_template" => {
            json!({"name": a47::expand_template(field(input, "template")?, field(input, "value")?)})
        }
        "default_authority_template" => json!({"template": a47::default_template(text(input)?)}),
        "lookup_authority" => bootstrap::look_up(input)?,
        "resolve_listener" => bootstrap::client_listener(input)?,
        "resolve_server_listener" => bootstrap::server_listener(input)?,
        _ => return Err(Refusal("unknown_op")),
    })
}

fn locator(locator: &Locator<'_>) -> Map<String, Value> {
    let mut found = fields([
        ("scheme", locator.scheme().as_str().into()),
        ("authority", locator.authority().into()),
        ("resource_type", locator.resource_type().into()),
        ("id", locator.id().into()),
        ("context_params", map(&locator.context_params())),
        ("glob", locator.is_glob().into()),
        ("canonical", locator.to_canonical().into()),
    ]);
    let directives: Vec<Value> = locator
        .directives()
        .map(|directive| match directive.alt() {
            Some(alt) => json!({"alt": self::locator(&alt)}),
            None => json!({ "entry": directive.entry() }),
        })
        .collect();
    if !directives.is_empty() {
        found.insert("directives".into(), directives.into());
    }
    found
}

fn compose(input: &Value) -> Result<Value, Refusal> {
    let features = texts(input.get("client_features"))?;
    let well_known = object(input.get("well_known"))?;
    let attributes = well_known.into_iter().flatten().map(|(key, value)| Ok((key.as_str(), text(value)?)));
    let attributes = attributes.collect::<Result<Vec<_>, Refusal>>()?;
    let (node, resource) = (params(input.get("node"))?, params(input.get("resource"))?);
    let composed = ContextParams::compose(&node, &resource, features, attributes)?;
    let mut found = fields([("context_params", map(&composed))]);
    if let Some(url) = input.get("url") {
        let locator = Locator::parse(text(url)?)?;
        let urn = Urn::new(&locator.authority(), &locator.resource_type(), &locator.id(), &composed)?;
        found.insert("urn".into(), urn.to_string().into());
    }
    Ok(found.into())
}

fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

fn map(params: &ContextParams<'_>) -> Value {
    params.iter().map(|(key, value)| (key.into_owned(), Value::from(value))).collect::<Map<_, _>>().into()
}

fn text(value: &Value) -> Result<&str, Refusal> {
    value.as_str().ok_or(WRONG_TYPE)
}

fn field<'a>(input: &'a Value, name: &str) -> Result<&'a str, Refusal> {
    input.get(name).and_then(Value::as_str).ok_or(WRONG_TYPE)
}

/// A list that may be left out.
fn texts(value: Option<&Value>) -> Result<Vec<&str>, Refusal> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(list) => list.as_array().ok_or(WRONG_TYPE)?.iter().map(text).collect(),
    }
}

/// An object that may be left out.
fn object(value: Option<&Value>) -> Result<Option<&Map<String, Value>>, Refusal> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(object) => object.as_object().map(Some).ok_or(WRONG_TYPE),
    }
}

fn params(value: Option<&Value>) -> Result<ContextParams<'static>, Refusal> {
    let pairs = object(value)?.into_iter().flatten().map(|(key, value)| Ok((key, text(value)?)));
    Ok(ContextParams::new(pairs.collect::<Result<Vec<_>, Refusal>>()?)?)
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Self {
        Self(error.kind().as_str())
    }
}

impl From<ListenerError> for Refusal {
    fn from(error: ListenerError) -> Self {
        Self(error.as_str())
    }
}

impl From<UnknownAuthority> for Refusal {
    fn from(error: UnknownAuthority) -> Self {
        ListenerError::UnknownAuthority(error).into()
    }
}

impl From<InvalidTarget> for Refusal {
    fn from(_: InvalidTarget) -> Self {
        Self("invalid_target")
    }
}
