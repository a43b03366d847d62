//! One name: in which versions it is held, who wants it, and what is in it, without what is secret.

use axum::extract::State;
use axum::response::Response;
use bytesize::ByteSize;
use maud::{Markup, html};

use super::asked::Asked;
use super::frame::{Page, Section, show};
use super::words::{explain_link, facts, pill, said, said_if, table};
use crate::admin::look::Pages;
use crate::api::{HeldResource, NameQuery, Wanting, short_type};
use crate::yaml;

/// How much content one page shows, in bytes.
const MOST: usize = 256 << 10;

pub(super) async fn page(State(pages): State<Pages>, asked: Asked<NameQuery>) -> Response {
    show(pages, move |relay| {
        let named = relay.resource(&asked.query);
        let NameQuery { type_url, name } = &asked.query;
        let mut room = MOST;
        let body = html! {
            (facts(&[("Type", said(type_url))]))
            @for held in &named.held {
                (section(held, name, &mut room))
            }
        };
        let (title, twin) = (format!("{} {name}", short_type(type_url)), asked.at("/api/v1/resource"));
        (!named.held.is_empty()).then_some(Page { section: Section::Resources, title, twin, body })
    })
    .await
}

fn section(held: &HeldResource, name: &str, room: &mut usize) -> Markup {
    let HeldResource { row, parameters, variant, wanted_by, more_wanting, content, hidden } = held;
    let version = match &row.version {
        Some(version) => html! { (said(version)) @if row.stale { " " (pill("odd", "stale")) } },
        None => pill("quiet", "does not exist"),
    };
    let size = row.version.is_some().then(|| ByteSize::b(row.bytes as u64).to_string());
    html! {
        section {
            h2 { "In " (said(&row.scope)) }
            (facts(&[
                ("Version", version),
                ("Origin", html! { a href={ "/origins#" (row.origin) } { (said(&row.origin)) } }),
                ("Is called", if row.name == name { html! {} } else { said(&row.name) }),
                ("Parameters", said_if(parameters.as_deref())),
                ("Variant", said_if(variant.as_deref())),
                ("Size", html! { (size.unwrap_or_default()) }),
            ]))
            h3 { "Who wants it" }
            @if wanted_by.is_empty() {
                p.aside { "Nobody does now." }
            } @else {
                (table(
                    ["Node", "Stream", "Wants it as", "Sent"],
                    &wanted_by.iter().map(|by| wanting(by, &row.type_url, name)).collect::<Vec<_>>(),
                ))
            }
            @if *more_wanting > 0 {
                p.aside { "and " (more_wanting) " others" }
            }
            @if let Some(content) = content {
                (shown(content, room))
            }
            @if let Some(reason) = hidden {
                h3 { "Content" }
                p.aside { "Not shown: " (reason) "." }
            }
        }
    }
}

fn wanting(by: &Wanting, type_url: &str, name: &str) -> [Markup; 4] {
    let node = if by.node.is_empty() { "(no id)" } else { &by.node };
    [
        explain_link(by.id, type_url, name, node),
        html! { "#" (by.id) },
        said(&by.wanted_as),
        if by.sent { pill("good", "sent") } else { pill("quiet", "not sent yet") },
    ]
}

fn shown(content: &serde_json::Value, room: &mut usize) -> Markup {
    let (text, is_all) = yaml::write(content, *room);
    *room = room.saturating_sub(text.len());
    html! {
        h3 { "Content" }
        pre { code { (text) } }
        @if !is_all {
            p.aside { "There is more, which the JSON has." }
        }
    }
}
