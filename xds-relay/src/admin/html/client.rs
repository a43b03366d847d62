//! One client: what it wants, what it said of it, and why it has what it has.

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};

use super::asked::Asked;
use super::explained;
use super::frame::{Page, Section, show};
use super::words::{explain_link, facts, field, form, pill, rejection, said, state_since, table, type_name};
use crate::admin::look::Pages;
use crate::api::{Client, ClientRow, ClientType, ClientUses, ExplainQuery, PAGE, short_type};

pub(super) async fn page(State(pages): State<Pages>, Path(id): Path<u64>, asked: Asked<ExplainQuery>) -> Response {
    show(pages, move |relay| {
        let client = relay.client(id, &asked.query)?;
        let title = if client.row.node.is_empty() { format!("Client {id}") } else { client.row.node.clone() };
        let twin = asked.at(&format!("/api/v1/clients/{id}"));
        Some(Page { section: Section::Clients, title, twin, body: body(&client, &asked.query) })
    })
    .await
}

fn body(client: &Client, asked: &ExplainQuery) -> Markup {
    let Client { row, uses, wants, explained, also_explained } = client;
    html! {
        (who(row))
        @if let Some(uses) = uses { (used(uses)) }
        @for explained in explained.iter().chain(also_explained) {
            (explained::section(explained))
        }
        h2 { "What it wants" }
        @if wants.is_empty() {
            p.aside { "Nothing yet." }
        } @else {
            (table(
                ["Type", "State", "Wants", "Sent", "Accepted", "Rejected", "Its last words"],
                &wants.iter().map(|of| wanted(row.id, of)).collect::<Vec<_>>(),
            ))
            h2 { "Why has it what it has?" }
            (form(&format!("/clients/{}", row.id), &fields(wants, asked), "Explain"))
        }
    }
}

fn who(row: &ClientRow) -> Markup {
    let state = state_since(row.state, row.since_seconds);
    facts(&[
        ("State", if row.busy { pill("quiet", "busy") } else { state }),
        ("Stream", html! { "#" (row.id) " " span.aside { (row.protocol) } }),
        ("Cluster", said(&row.cluster)),
        ("Zone", said(&row.zone)),
        ("Address", said(&row.peer)),
        ("Groups", said(&row.groups.join(", "))),
    ])
}

/// Without limits there is nothing to say but who it is.
fn used(uses: &ClientUses) -> Markup {
    let limited = uses.limits.iter().filter_map(|(limit, of)| Some((limit, of.used, of.most?)));
    let rows: Vec<_> = limited.map(|(limit, used, most)| [html! { (limit) }, html! { (used) " of " (most) }]).collect();
    html! {
        p.aside { "Counted as " (uses.identity) @if let Some(rule) = uses.rule { ", under clients[" (rule) "]" } "." }
        @if !rows.is_empty() {
            h2 { "What it may use up" }
            (table(["Limit", "Used, by all of its streams"], &rows))
        }
    }
}

fn wanted(id: u64, of: &ClientType) -> [Markup; 7] {
    [
        type_name(&of.type_url),
        state_since(of.state, of.since_seconds),
        html! {
            @if of.wildcard { "everything" }
            @if !of.names.is_empty() { (names(id, of)) }
        },
        html! { (of.sent) },
        html! { (of.accepted) },
        html! { (of.rejected) },
        html! { @if let Some(last) = &of.last_rejection { (rejection(last)) } },
    ]
}

fn names(id: u64, of: &ClientType) -> Markup {
    let all = of.names.len() + of.more_names;
    let shown = of.names.len().min(PAGE);
    html! {
        // A few need no click.
        details open[all <= 5] {
            summary { (all) @if all == 1 { " name" } @else { " names" } }
            ul {
                @for name in of.names.iter().take(shown) {
                    li { (explain_link(id, &of.type_url, name, name)) }
                }
                @if all > shown {
                    li.aside { "and " (all - shown) " others" }
                }
            }
        }
    }
}

fn fields(wants: &[ClientType], asked: &ExplainQuery) -> Markup {
    html! {
        label {
            span { "Type" }
            select name="type" {
                @for of in wants {
                    option value=(of.type_url) selected[asked.type_url.as_ref() == Some(&of.type_url)] {
                        (short_type(&of.type_url))
                    }
                }
            }
        }
        (field("Name", "name", asked.name.as_deref(), "the name of a resource"))
    }
}
