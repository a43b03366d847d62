//! What the original says of a file that it refuses: its validator names each message on the way to what is wrong.

/// What it says where this relay says of a field of the file what is wrong; none if it would say that in other words.
pub(super) fn words(field: &str, problem: &str) -> Option<String> {
    if problem.starts_with("unknown field ") {
        return problem.split_once(", expected one of ").map(|(words, _)| words.to_owned());
    }
    let is_required = problem.starts_with("value is required: one of ");
    let is_said = ["value is required", "value must contain at least ", "value must equal true", OF_ELEMENT, OF_TEXT];
    if !is_required && !is_said.iter().any(|said| problem.starts_with(said)) {
        return None;
    }
    let mut causes = Vec::new();
    let mut message = "KeyerConfiguration";
    let mut steps = field.split('.').filter(|step| !step.is_empty()).peekable();
    while let Some(step) = steps.next() {
        let (key, index) = step.split_at(step.find('[').unwrap_or(step.len()));
        let within = format!("invalid {message}.{}{index}: ", pascal(key));
        if steps.peek().is_none() && !is_required {
            causes.push(format!("{within}{problem}"));
            return Some(causes.join(CAUSED_BY));
        }
        causes.push(format!("{within}embedded message failed validation"));
        message = of_field(message, &pascal(key))?;
    }
    causes.push(format!("invalid {message}.{}: value is required", one_of(message)?));
    Some(causes.join(CAUSED_BY))
}

const OF_ELEMENT: &str = "value must be greater than or equal to 0";
const OF_TEXT: &str = "value length must be at least 1 runes";
const CAUSED_BY: &str = " | caused by: ";

/// Either spelling of a field, as Go spells it.
fn pascal(key: &str) -> String {
    let capitalised = key.split('_').map(|word| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        first.to_ascii_uppercase() + rest
    });
    capitalised.collect()
}

/// The message that a field of another is.
fn of_field(message: &str, field: &str) -> Option<&'static str> {
    Some(match (message, field) {
        ("KeyerConfiguration", "Fragments") => "KeyerConfiguration_Fragment",
        ("KeyerConfiguration_Fragment", "Rules") => "KeyerConfiguration_Fragment_Rule",
        ("KeyerConfiguration_Fragment_Rule", "Match")
        | ("MatchPredicate", "NotMatch")
        | ("MatchPredicate_MatchSet", "Rules") => "MatchPredicate",
        ("KeyerConfiguration_Fragment_Rule", "Result") | ("ResultPredicate_AndResult", "ResultPredicates") => {
            "ResultPredicate"
        }
        ("MatchPredicate", "AndMatch" | "OrMatch") => "MatchPredicate_MatchSet",
        ("MatchPredicate", "RequestTypeMatch") => "MatchPredicate_RequestTypeMatch",
        ("MatchPredicate", "RequestNodeMatch") => "MatchPredicate_RequestNodeMatch",
        ("MatchPredicate_RequestNodeMatch", "IdMatch" | "ClusterMatch")
        | ("LocalityMatch", _)
        | ("ValueMatch", "StringMatch") => "StringMatch",
        ("MatchPredicate_RequestNodeMatch", "LocalityMatch") => "LocalityMatch",
        ("MatchPredicate_RequestNodeMatch", "NodeMetadataMatch") => "NodeMetadataMatch",
        ("NodeMetadataMatch" | "ResultPredicate_NodeMetadataAction", "Path") => "PathSegment",
        ("NodeMetadataMatch", "Match") => "ValueMatch",
        ("ResultPredicate", "AndResult") => "ResultPredicate_AndResult",
        ("ResultPredicate", "RequestNodeFragment") => "ResultPredicate_RequestNodeFragment",
        ("ResultPredicate", "ResourceNamesFragment") => "ResultPredicate_ResourceNamesFragment",
        ("ResultPredicate_RequestNodeFragment", "IdAction" | "ClusterAction")
        | ("ResultPredicate_LocalityResultAction", _)
        | ("ResultPredicate_NodeMetadataAction" | "ResultPredicate_ResourceNamesFragment", "Action") => {
            "ResultPredicate_ResultAction"
        }
        ("ResultPredicate_RequestNodeFragment", "LocalityAction") => "ResultPredicate_LocalityResultAction",
        ("ResultPredicate_RequestNodeFragment", "NodeMetadataAction") => "ResultPredicate_NodeMetadataAction",
        ("ResultPredicate_ResultAction", "RegexAction") => "ResultPredicate_ResultAction_RegexAction",
        _ => return None,
    })
}

/// What the fields are called together of which a message has exactly one.
fn one_of(message: &str) -> Option<&'static str> {
    match message {
        "MatchPredicate" | "MatchPredicate_RequestNodeMatch" | "StringMatch" | "ValueMatch" | "ResultPredicate" => {
            Some("Type")
        }
        "ResultPredicate_RequestNodeFragment" | "ResultPredicate_ResultAction" => Some("Action"),
        _ => None,
    }
}
