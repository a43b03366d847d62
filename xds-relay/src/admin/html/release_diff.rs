//! What one release has otherwise than another.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::asked::Asked;
use super::frame::{Page, Section, show};
use super::words::{facts, release, said, table, type_name};
use crate::admin::look::Pages;
use crate::api::{ChangedResource, DiffQuery, ReleaseDiff, ReleasedResource};

pub(super) async fn page(State(pages): State<Pages>, asked: Asked<DiffQuery>) -> Response {
    let twin = asked.at("/api/v1/releases/diff");
    show(pages.of_past(), move |relay| {
        let body = match relay.release_diff(&asked.query) {
            Ok(diff) => difference(&diff),
            Err(error) => html! { p.wrong { (error) } },
        };
        Some(Page { section: Section::Releases, title: "What differs".to_owned(), twin, body })
    })
    .await
}

fn difference(diff: &ReleaseDiff) -> Markup {
    html! {
        (facts(&[
            ("Scope", said(&diff.scope)),
            ("Before", release(&diff.from)),
            ("After", release(&diff.to)),
            ("Removes much", html! { @if diff.removes_much { "it waits for somebody to say that it goes on" } }),
        ]))
        @if diff.is_empty() { p { "Nothing differs." } }
        @if !diff.changed.is_empty() {
            h2 { "Changed" }
            (table(["Type", "Name", "Variant", "What"], &diff.changed.iter().map(changed).collect::<Vec<_>>()))
        }
        @for (what, resources) in [("Added", &diff.added), ("Removed", &diff.removed)] {
            @if !resources.is_empty() {
                h2 { (what) }
                (table(["Type", "Name", "Variant", "Version"], &resources.iter().map(alone).collect::<Vec<_>>()))
            }
        }
        @if diff.more > 0 { p.aside { "and " (diff.more) " others" } }
    }
}

fn alone(ReleasedResource { type_url, name, variant, version }: &ReleasedResource) -> [Markup; 4] {
    [type_name(type_url), said(name), said(variant), said(version)]
}

fn changed(resource: &ChangedResource) -> [Markup; 4] {
    let [type_url, name, variant, _] = alone(&resource.after);
    let difference = &resource.difference;
    let what = html! {
        @if !difference.fields.is_empty() {
            ul { @for field in &difference.fields { li { (said(&field.to_string())) } } }
        }
        @if difference.more > 0 { p.aside { "and " (difference.more) " other fields" } }
        @if resource.is_wrapped_otherwise { p { "its aliases, or how long it lives" } }
        @match &resource.hidden {
            Some(why) => p.aside { "not shown: " (why) },
            None => @if difference.is_hidden { p.aside { "in fields that are not shown" } },
        }
    };
    [type_url, name, variant, what]
}
