//! What was done with releases, when, by whom and why.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::asked::Asked;
use super::frame::{Page, Section, show};
use super::words::{at, release, said, table};
use crate::admin::look::Pages;
use crate::api::{AuditEntry, AuditQuery};

pub(super) async fn page(State(pages): State<Pages>, asked: Asked<AuditQuery>) -> Response {
    let twin = asked.at("/api/v1/audit");
    show(pages.of_past(), move |relay| {
        let body = match relay.release_audit(&asked.query) {
            Ok(audit) => html! {
                @if audit.entries.is_empty() { p { "Nothing was done with releases." } }
                @else {
                    (table(["When", "Scope", "Done", "Release", "By", "Why"], &audit.entries.iter().map(row).collect::<Vec<_>>()))
                }
                @if audit.more > 0 { p.aside { "and " (audit.more) " before" } }
            },
            Err(error) => html! { p.wrong { (error) } },
        };
        Some(Page { section: Section::Audit, title: "Audit".to_owned(), twin, body })
    })
    .await
}

fn row(entry: &AuditEntry) -> [Markup; 6] {
    let AuditEntry { scope, at: when, done, release: about, taken_back, by, why, .. } = entry;
    let about = html! {
        @if let Some(taken_back) = taken_back { (release(taken_back)) ", for " }
        @if let Some(about) = about { (release(about)) }
    };
    [at(*when), said(scope), html! { (done) }, about, said(by), said(why)]
}
