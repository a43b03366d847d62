//! Who is served.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::asked::Asked;
use super::frame::{Page, Section, show};
use super::words::{field, form, pager, pill, said, state_since, table, type_name};
use crate::admin::look::Pages;
use crate::api::{ClientQuery, ClientRow, ClientState, Clients};

pub(super) async fn page(State(pages): State<Pages>, asked: Asked<ClientQuery>) -> Response {
    show(pages, move |relay| {
        let body = body(&asked, &relay.clients(&asked.query));
        let twin = asked.at("/api/v1/clients");
        Some(Page { section: Section::Clients, title: "Clients".to_owned(), twin, body })
    })
    .await
}

fn body(asked: &Asked<ClientQuery>, found: &Clients) -> Markup {
    let next = found.next.map(|next| asked.behind("/clients", &next.to_string()));
    html! {
        (form("/clients", &fields(&asked.query), "Find"))
        @if found.clients.is_empty() {
            p.aside { "There is no such client." }
        } @else {
            (table(
                ["Node", "State", "Cluster", "Zone", "Address", "Groups", "Types"],
                &found.clients.iter().map(row).collect::<Vec<_>>(),
            ))
        }
        (pager(asked.query.after.map(|_| "/clients"), next.as_deref()))
    }
}

fn fields(query: &ClientQuery) -> Markup {
    let states = [ClientState::Synced, ClientState::Waiting, ClientState::Silent, ClientState::Rejected];
    html! {
        (field("Contains", "search", query.search.as_deref(), "node, cluster, zone, address, group"))
        label {
            span { "State" }
            select name="state" {
                option value="" { "any" }
                @for state in states {
                    option value=(state) selected[query.state == Some(state)] { (state) }
                }
            }
        }
        (field("Wants type", "type", query.type_url.as_deref(), "Cluster"))
        @if let Some(node) = &query.node {
            (field("Node", "node", Some(node), ""))
        }
        @if let Some(limit) = query.limit {
            input type="hidden" name="limit" value=(limit);
        }
    }
}

fn row(row: &ClientRow) -> [Markup; 7] {
    let state = if row.busy { pill("quiet", "busy") } else { state_since(row.state, row.since_seconds) };
    [
        html! { a href={ "/clients/" (row.id) } { (said(node(row))) } },
        state,
        said(&row.cluster),
        said(&row.zone),
        html! { (said(&row.peer)) " " span.aside { (row.protocol) } },
        said(&row.groups.join(", ")),
        html! { @for type_url in &row.types { (type_name(type_url)) " " } },
    ]
}

/// Whoever it is, there is something to click at.
fn node(row: &ClientRow) -> &str {
    if row.node.is_empty() { "(no id)" } else { &row.node }
}
