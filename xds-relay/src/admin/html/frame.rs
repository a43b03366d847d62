//! What is around every page.

use axum::http::{StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use super::endpoints::endpoints;
use crate::admin::inspect::Inspect;
use crate::admin::look::Pages;

pub(super) const STYLE: &str = include_str!("style.css");
pub(super) const STYLE_PATH: &str = "/style.css";

/// What a page is, but for its frame.
pub(super) struct Page {
    pub(super) section: Section,
    pub(super) title: String,
    /// Where the same is as JSON.
    pub(super) twin: String,
    pub(super) body: Markup,
}

/// Where a page belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    Clients,
    Resources,
    Origins,
    Releases,
    Audit,
}

const SECTIONS: [(Section, &str, &str); 6] = [
    (Section::Overview, "/", "Overview"),
    (Section::Clients, "/clients", "Clients"),
    (Section::Resources, "/resources", "Resources"),
    (Section::Origins, "/origins", "Origins"),
    (Section::Releases, "/releases", "Releases"),
    (Section::Audit, "/audit", "Audit"),
];

/// A page of what is seen of the relay; none if it is not there.
pub(super) async fn show(pages: Pages, render: impl FnOnce(&dyn Inspect) -> Option<Page> + Send + 'static) -> Response {
    let shown = pages.look(|relay| {
        render(relay).map(|Page { section, title, twin, body }| frame(Some(section), &title, Some(&twin), &body))
    });
    match shown.await {
        Ok(Some(page)) => Html(page.into_string()).into_response(),
        Ok(None) => failure(
            StatusCode::NOT_FOUND,
            "It is not there",
            "It left, or never was: a relay that was started anew counts its clients anew.",
        ),
        Err(response) => response,
    }
}

/// What is answered instead of a page.
pub(super) fn failure(status: StatusCode, title: &str, reason: &str) -> Response {
    let body = html! {
        p { (reason) }
        p { a href="/" { "Overview" } }
    };
    (status, Html(frame(None, title, None, &body).into_string())).into_response()
}

/// A program reads no page: it is told in a line.
pub(in crate::admin) async fn no_such_page(uri: Uri) -> Response {
    if uri.path() == "/api/v1/orders" {
        let words = "orders are not taken here: /api/v1/releases says where, as `orders`\n";
        return (StatusCode::NOT_FOUND, words).into_response();
    }
    if uri.path().starts_with("/api/") {
        return (StatusCode::NOT_FOUND, "there is no such page: / names those that there are\n").into_response();
    }
    let body = html! {
        p { "These are there:" }
        (endpoints())
    };
    (StatusCode::NOT_FOUND, Html(frame(None, "There is no such page", None, &body).into_string())).into_response()
}

fn frame(section: Option<Section>, title: &str, twin: Option<&str>, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · xds-relay" }
                link rel="stylesheet" href=(STYLE_PATH);
                @if let Some(twin) = twin {
                    link rel="alternate" type="application/json" href=(twin);
                }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    a.home href="/" { "xds-relay" }
                    nav aria-label="Pages" {
                        @for (of, path, name) in SECTIONS {
                            a href=(path) aria-current=[(section == Some(of)).then_some("page")] { (name) }
                        }
                    }
                    @if let Some(twin) = twin {
                        a.twin href=(twin) { "JSON" }
                    }
                }
                main id="main" tabindex="-1" {
                    h1 { bdi { (title) } }
                    (body)
                }
            }
        }
    }
}
