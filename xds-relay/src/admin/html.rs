//! The pages for people. They show what the JSON beside them tells, of the same structs, and nothing else: without script, and
//! with every text from outside escaped.

mod asked;
mod audit;
mod client;
mod clients;
mod endpoints;
mod explained;
mod frame;
mod guard;
mod ordered;
mod origins;
mod overview;
mod release_diff;
mod releases;
mod resource;
mod resources;
mod words;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse as _;
use axum::routing::get;

pub(super) use self::frame::no_such_page;
pub(super) use self::guard::guard;
pub(super) use self::ordered::order;
use super::look::Pages;

pub(super) fn routes() -> Router<Pages> {
    let style = || async { ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], frame::STYLE).into_response() };
    Router::new()
        .route("/", get(overview::page))
        .route("/clients", get(clients::page))
        .route("/clients/{id}", get(client::page))
        .route("/resources", get(resources::page))
        .route("/resource", get(resource::page))
        .route("/origins", get(origins::page))
        .route("/releases", get(releases::page))
        .route("/releases/diff", get(release_diff::page))
        .route("/audit", get(audit::page))
        .route(frame::STYLE_PATH, get(style))
}
