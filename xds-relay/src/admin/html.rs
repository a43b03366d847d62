//! The pages for people. They show what the JSON beside them tells, of the same structs, and nothing else: without script, and
//! with every text from outside escaped.

mod asked;
mod client;
mod clients;
mod endpoints;
mod explained;
mod frame;
mod guard;
mod origins;
mod overview;
mod resource;
mod resources;
mod words;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse as _;
use axum::routing::get;

pub(super) use self::frame::no_such_page;
pub(super) use self::guard::guard;
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
        .route(frame::STYLE_PATH, get(style))
}
