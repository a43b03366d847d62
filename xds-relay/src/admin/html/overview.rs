//! How the relay is.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::endpoints::endpoints;
use super::frame::{Page, Section, show};
use super::words::{facts, origin_state, pill, said, table, type_name};
use crate::admin::look::Pages;
use crate::api::{
    CertificateState, CertificateStatus, ClientCounts, ClientState, OriginStatus, Status, query, short_time,
};

pub(super) async fn page(State(pages): State<Pages>) -> Response {
    show(pages, |relay| {
        let body = body(&relay.status());
        Some(Page { section: Section::Overview, title: "Overview".to_owned(), twin: "/api/v1/status".to_owned(), body })
    })
    .await
}

fn body(status: &Status) -> Markup {
    let ready = match &status.not_ready {
        None if status.ready => pill("good", "ready"),
        reason => html! { (pill("bad", "not ready")) " " (reason.as_deref().unwrap_or_default()) },
    };
    let kept = match status.state_kept {
        None => html! {},
        Some(true) => html! { "what is known is kept" },
        Some(false) => html! { (pill("odd", "not kept")) " the log says why" },
    };
    let config = match (&status.config.error, status.config.needs_restart.as_slice()) {
        (Some(error), _) => html! { (pill("bad", "not read anew")) " " (said(error)) },
        (None, []) => html! {},
        (None, fields) => html! { (pill("odd", "needs a restart")) " " (said(&fields.join(", "))) },
    };
    html! {
        (facts(&[
            ("Clients may come", ready),
            ("Version", said(&status.version)),
            ("Instance", said(&status.instance)),
            ("Up for", html! { (short_time(status.uptime_seconds)) }),
            ("Over a restart", kept),
            ("Configuration", config),
            ("Logs", html! { @if let Some(log) = &status.log { a href="/logging" { (said(log)) } } }),
        ]))
        h2 { "Clients" }
        (tiles(&status.clients))
        h2 { "Origins" }
        (origins(&status.origins))
        h2 { "Resources" }
        @if status.resources.is_empty() {
            p.aside { "Nothing is held." }
        } @else {
            (table(["Type", "Held", "Type URL"], &status.resources.iter().map(held).collect::<Vec<_>>()))
        }
        @if !status.certificates.is_empty() {
            h2 { "Certificates" }
            (certificates(&status.certificates))
        }
        h2 { "For programs" }
        (endpoints())
    }
}

fn tiles(counts: &ClientCounts) -> Markup {
    let states = [
        (ClientState::Synced, counts.synced, "good"),
        (ClientState::Waiting, counts.waiting, "quiet"),
        (ClientState::Silent, counts.silent, "odd"),
        (ClientState::Rejected, counts.rejected, "bad"),
    ];
    html! {
        ul.tiles {
            li { a href="/clients" { span { "All" } strong { (counts.all) } } }
            @for (state, count, class) in states {
                // Of none of them there is nothing to be glad or afraid of.
                @let class = if count == 0 { "none" } else { class };
                li { a href={ "/clients?state=" (state) } { span { (state) } strong class=(class) { (count) } } }
            }
        }
    }
}

fn origins(origins: &[OriginStatus]) -> Markup {
    let row = |origin: &OriginStatus| {
        [
            html! { a href={ "/origins#" (origin.name) } { (said(&origin.name)) } },
            origin_state(origin.state),
            html! { (origin.kind) },
            html! { (origin.streams_up) " of " (origin.streams) },
            html! { (origin.resources) @if origin.stale > 0 { " (" (origin.stale) " stale)" } },
            html! { @if let Some(trouble) = origin.trouble() { span.wrong { (said(&trouble)) } } },
        ]
    };
    table(
        ["Name", "State", "Kind", "Streams up", "Resources", "What is wrong"],
        &origins.iter().map(row).collect::<Vec<_>>(),
    )
}

fn certificates(certificates: &[CertificateStatus]) -> Markup {
    let row = |certificate: &CertificateStatus| {
        let class = match certificate.state {
            CertificateState::Good => "good",
            CertificateState::Soon => "odd",
            CertificateState::Expired | CertificateState::NotYet => "bad",
        };
        [
            said(&certificate.field),
            pill(class, &certificate.state.to_string()),
            html! { (certificate.words()) },
            said(&certificate.file),
        ]
    };
    table(["Field", "State", "When", "File"], &certificates.iter().map(row).collect::<Vec<_>>())
}

fn held((type_url, count): (&String, &u64)) -> [Markup; 3] {
    let to = query(&[("type", Some(type_url))]);
    [html! { a href={ "/resources" (to) } { (type_name(type_url)) } }, html! { (count) }, said(type_url)]
}
