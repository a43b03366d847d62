//! Why a client has what it has of a name.

use maud::{Markup, html};

use super::words::{facts, origin_state, pill, rejection, resource_link, said, said_if, table, type_name};
use crate::api::{Explained, RuleExplained};

pub(super) fn section(explained: &Explained) -> Markup {
    html! {
        section.explained {
            h2 {
                "Why it has what it has of " (type_name(&explained.type_url)) " "
                (resource_link(&explained.type_url, &explained.name))
            }
            ol {
                @for reason in &explained.reasons {
                    li { bdi { (reason) } }
                }
            }
            @if explained.wanted_as.is_some() {
                (in_short(explained))
            }
            @if !explained.rules.is_empty() {
                h3 { "Aggregation rules" }
                (table(
                    ["Rule", "Line", "Verdict", "Words"],
                    &explained.rules.iter().map(rule).collect::<Vec<_>>(),
                ))
            }
        }
    }
}

fn in_short(explained: &Explained) -> Markup {
    let version = match &explained.version {
        Some(version) => html! { (said(version)) @if explained.stale { " " (pill("odd", "stale")) } },
        None if explained.known => pill("quiet", "does not exist"),
        None => pill("odd", "not answered"),
    };
    let origin = |origin: &crate::api::OriginStatus| {
        html! { a href={ "/origins#" (origin.name) } { (said(&origin.name)) } " " (origin_state(origin.state)) }
    };
    let client = match explained.answer.as_deref() {
        Some("accepted") => pill("good", "accepted"),
        Some("rejected") => pill("bad", "rejected"),
        Some("unknown") => pill("odd", "not known"),
        Some(_) => pill("odd", "not answered"),
        None if explained.sent => pill("quiet", "sent"),
        None => pill("quiet", "not sent yet"),
    };
    facts(&[
        ("Wanted as", said_if(explained.wanted_as.as_deref())),
        ("Parameters", said_if(explained.parameters.as_deref())),
        ("Group or scope", said_if(explained.scope.as_deref())),
        ("Origin", explained.origin.as_ref().map(origin).unwrap_or_default()),
        ("Is alias of", said_if(explained.own_name.as_deref())),
        ("Variant", said_if(explained.variant.as_deref())),
        ("Version", version),
        ("Error", said_if(explained.error.as_deref())),
        ("The client", client),
        ("Its words", explained.rejection.as_ref().map(rejection).unwrap_or_default()),
    ])
}

fn rule(rule: &RuleExplained) -> [Markup; 4] {
    let class = match rule.verdict.as_str() {
        "matched" => "good",
        "failed" => "bad",
        _ => "quiet",
    };
    [
        html! { (rule.fragment) "." (rule.rule) },
        html! { (rule.line) },
        pill(class, &rule.verdict.replace('_', " ")),
        said(&rule.words),
    ]
}
