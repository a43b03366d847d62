//! What is held.

use axum::extract::State;
use axum::response::Response;
use bytesize::ByteSize;
use maud::{Markup, html};

use super::asked::Asked;
use super::frame::{Page, Section, show};
use super::words::{field, form, pager, resource_link, said, table, type_name};
use crate::admin::look::Pages;
use crate::api::{ResourceQuery, ResourceRow, Resources, short_time};

pub(super) async fn page(State(pages): State<Pages>, asked: Asked<ResourceQuery>) -> Response {
    show(pages, move |relay| {
        let body = body(&asked, &relay.resources(&asked.query));
        let twin = asked.at("/api/v1/resources");
        Some(Page { section: Section::Resources, title: "Resources".to_owned(), twin, body })
    })
    .await
}

fn body(asked: &Asked<ResourceQuery>, found: &Resources) -> Markup {
    let next = found.next.as_ref().map(|next| asked.behind("/resources", next));
    let ResourceQuery { type_url, search, after, limit } = &asked.query;
    let fields = html! {
        (field("Name contains", "search", search.as_deref(), "text"))
        (field("Type", "type", type_url.as_deref(), "Cluster"))
        @if let Some(limit) = limit {
            input type="hidden" name="limit" value=(limit);
        }
    };
    html! {
        (form("/resources", &fields, "Find"))
        @if !found.resources.is_empty() {
            (table(
                ["Name", "Type", "Version", "Size", "Changed", "Origin", "Scope"],
                &found.resources.iter().map(row).collect::<Vec<_>>(),
            ))
        } @else if next.is_some() {
            p.aside { "Nothing was found so far; not everything was looked at." }
        } @else {
            p.aside { "Nothing like that is held." }
        }
        (pager(after.as_ref().map(|_| "/resources"), next.as_deref()))
    }
}

fn row(row: &ResourceRow) -> [Markup; 7] {
    let size = row.version.is_some().then(|| ByteSize::b(row.bytes as u64).to_string());
    [
        resource_link(&row.type_url, &row.name),
        type_name(&row.type_url),
        said(&row.version_words()),
        html! { (size.unwrap_or_default()) },
        html! { @if let Some(seconds) = row.changed_seconds_ago { (short_time(seconds)) " ago" } },
        said(&row.origin),
        said(&row.scope),
    ]
}
