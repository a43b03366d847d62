//! Where resources come from, and the streams there.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::frame::{Page, Section, show};
use super::words::{facts, origin_state, pill, said, said_if, table};
use crate::admin::look::Pages;
use crate::api::{OriginDetail, ServerDump, UpstreamDump, short_time};

pub(super) async fn page(State(pages): State<Pages>) -> Response {
    show(pages, |relay| {
        let body = html! {
            @for origin in &relay.origins().origins {
                (section(origin))
            }
        };
        Some(Page { section: Section::Origins, title: "Origins".to_owned(), twin: "/api/v1/origins".to_owned(), body })
    })
    .await
}

fn section(origin: &OriginDetail) -> Markup {
    let OriginDetail { status, upstreams, more_upstreams } = origin;
    html! {
        section id=(status.name) {
            h2 { (said(&status.name)) " " (origin_state(status.state)) }
            (facts(&[
                ("Kind", html! { (status.kind) }),
                ("Streams up", html! { (status.streams_up) " of " (status.streams) }),
                ("Resources", html! { (status.resources) }),
                ("Stale", html! { @if status.stale > 0 { (status.stale) " known from before a restart only" } }),
                ("What is wrong", html! { @if let Some(words) = status.trouble() { span.wrong { (said(&words)) } } }),
            ]))
            @if !upstreams.is_empty() {
                (table(
                    ["Stream for", "State", "Asks for", "Relays behind it", "Next try", "Last error", "Servers"],
                    &upstreams.iter().map(stream).collect::<Vec<_>>(),
                ))
            }
            @if *more_upstreams > 0 {
                p.aside { "and " (more_upstreams) " other streams" }
            }
        }
    }
}

fn stream(stream: &UpstreamDump) -> [Markup; 7] {
    let state = if stream.connected { pill("good", "up") } else { pill("bad", "down") };
    [
        said(&stream.group),
        state,
        html! { (stream.subscriptions) },
        said_if(stream.relays.as_deref()),
        html! { @if let Some(seconds) = stream.retry_in_seconds { "in " (short_time(seconds)) } },
        html! {
            (said_if(stream.last_error.as_deref()))
            @if let Some(hint) = &stream.hint { p { (hint) } }
        },
        html! {
            @if !stream.servers.is_empty() {
                ul { @for of in &stream.servers { (server(of)) } }
            }
        },
    ]
}

fn server(server: &ServerDump) -> Markup {
    html! {
        li {
            (said(&server.server)) " " (server.state)
            @if server.feeds > 0 { ", feeds " (server.feeds) }
            @if let Some(error) = &server.last_error { ": " (said(error)) }
        }
    }
}
