//! What is released to whom, and how far that is; with what can be done about it, as commands, and as buttons where orders are taken.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::frame::{Page, Section, show};
use super::words::{at, facts, pill, release, said, said_by, table};
use crate::admin::look::Pages;
use crate::api::{CandidateState, CandidateStatus, KeptRelease, ReleasedScope, query};

const TWIN: &str = "/api/v1/releases";

pub(super) async fn page(State(pages): State<Pages>) -> Response {
    let takes_orders = pages.takes_orders;
    show(pages, move |relay| {
        let releases = relay.releases();
        let body = html! {
            @for scope in &releases.scopes {
                (section(scope, takes_orders))
            }
            @if releases.scopes.is_empty() {
                p { "All is served at once: " code { "rollout" } " of the configuration has it released by stages." }
            }
            @if let Some(orders) = releases.orders.filter(|_| !takes_orders) {
                p.aside { "Orders are taken at " (said(&orders)) ", and not here." }
            }
        };
        Some(Page { section: Section::Releases, title: "Releases".to_owned(), twin: TWIN.to_owned(), body })
    })
    .await
}

const RECALLED: &str =
    "The store has not answered since this relay began: this is what the relay had of it before, and what it serves.";
const OTHER_STAGES: &str = "The relay that said last who is served which release goes on by other stages than this one: they are to be the same.";

fn section(scope: &ReleasedScope, takes_orders: bool) -> Markup {
    let ReleasedScope { scope: name, stable, candidate, frozen, kept, clients, damaged, publisher, recalled, .. } =
        scope;
    let kept: Vec<_> = kept.iter().map(|of| row(scope, of, takes_orders)).collect();
    html! {
        section id=(name) {
            h2 { (said(name)) " " @if frozen.is_some() { (pill("odd", "frozen")) } }
            (facts(&[
                ("Stable", html! {
                    @match stable {
                        Some(stable) => { (release(stable)) ", served to " (clients.stable) }
                        None => "no release yet: nothing is served",
                    }
                }),
                ("Frozen", html! { @if let Some(by) = frozen { (said_by(by)) } }),
                ("Under way", html! { @if let Some(candidate) = candidate { (under_way(candidate, clients.candidate)) } }),
                ("Not taken", html! {
                    @if let Some(of) = &scope.not_taken {
                        (release(&of.release)) " at " (at(of.at)) ": a rollback left it"
                    }
                }),
                ("Published by", html! { @if let Some(relay) = publisher { "relay " (relay) } }),
                ("What is wrong", html! {
                    @if *recalled { p.wrong { (RECALLED) } }
                    @if scope.other_stages { p.wrong { (OTHER_STAGES) } }
                    @if let Some(words) = scope.unsaved_words() { p.wrong { (words) } }
                    @for damage in damaged { p.wrong { (said(damage)) } }
                }),
            ]))
            @if let Some(candidate) = candidate {
                (steps(scope, candidate))
            }
            h3 { "What can be done" }
            (actions(scope, takes_orders))
            h3 { "Kept" }
            (table(["Release", "Is", "Taken", "Resources", "From", "Differs", "Go back to it"], &kept))
            p { a href={ "/audit" (query(&[("scope", Some(name))])) } { "What was done, by whom and why" } }
        }
    }
}

fn under_way(candidate: &CandidateStatus, clients: usize) -> Markup {
    let class = match candidate.state {
        CandidateState::Open => "good",
        CandidateState::Halted => "bad",
        CandidateState::Held | CandidateState::Frozen => "odd",
    };
    html! {
        (release(&candidate.release)) " " (pill(class, &candidate.state.to_string())) ", served to " (clients)
        @if let Some(due) = candidate.due { ", goes on at " (at(due)) }
        @if let Some(check) = &candidate.check { p { "check: " (said(check)) } }
        @if let Some(by) = &candidate.said { p { (said_by(by)) } }
    }
}

/// The stages, and in which one it is.
fn steps(scope: &ReleasedScope, candidate: &CandidateStatus) -> Markup {
    html! {
        ol.steps {
            @for (number, stage) in (1..).zip(&scope.stages) {
                li aria-current=[(number == candidate.stage).then_some("step")] {
                    (said(&stage.who)) " " span.aside { "for " (crate::api::short_time(stage.hold_seconds)) }
                }
            }
            li { "everybody" }
        }
    }
}

/// An order that makes sense now: its name here, what it does, and as a command.
struct Action {
    order: &'static str,
    does: &'static str,
    command: String,
    stage: Option<usize>,
    to: Option<String>,
}

fn possible(scope: &ReleasedScope) -> Vec<Action> {
    let action =
        |order, does, command: &str| Action { order, does, command: command.to_owned(), stage: None, to: None };
    let mut possible = Vec::new();
    match &scope.frozen {
        Some(_) => possible.push(action("unfreeze", "What waits goes on, from the first stage", "unfreeze")),
        None if scope.stable.is_some() => {
            possible.push(action("freeze", "Everybody is served what is stable; what is new waits", "freeze"));
        }
        None => {}
    }
    let Some(candidate) = &scope.candidate else { return possible };
    possible.push(action("rollback", "The release under way is taken back, and not taken again", "rollback"));
    if scope.frozen.is_some() {
        return possible;
    }
    if candidate.state == CandidateState::Open {
        possible.push(action("hold", "It stays in its stage", "rollout hold"));
    }
    if candidate.stage < candidate.stages {
        let stage = candidate.stage + 1;
        let command = format!("rollout stage {stage}");
        possible.push(Action {
            order: "stage",
            does: "It is in the next stage now",
            command,
            stage: Some(stage),
            to: None,
        });
    }
    possible.push(action("promote", "Everybody is served it now", "rollout promote"));
    possible
}

fn actions(scope: &ReleasedScope, takes_orders: bool) -> Markup {
    let rows: Vec<_> = possible(scope)
        .iter()
        .map(|action| {
            let button = html! { @if takes_orders { (button(scope, action)) } };
            [html! { (action.does) }, command(scope, action), button]
        })
        .collect();
    table(["What it does", "Command", "Here"], &rows)
}

fn command(scope: &ReleasedScope, action: &Action) -> Markup {
    html! { code { "xds relay " (action.command) " --scope " (scope.scope) " --mark " (scope.mark) " --why …" } }
}

/// It is of the mark that was looked at: nothing is done about what has changed since.
fn button(scope: &ReleasedScope, action: &Action) -> Markup {
    html! {
        form method="post" action="/releases" {
            input type="hidden" name="scope" value=(scope.scope);
            input type="hidden" name="mark" value=(scope.mark);
            input type="hidden" name="order" value=(action.order);
            @if let Some(stage) = action.stage {
                input type="hidden" name="stage" value=(stage);
            }
            @if let Some(to) = &action.to {
                input type="hidden" name="to" value=(to);
            }
            label { span { "Who" } input name="by" required maxlength="64" autocomplete="username"; }
            label { span { "Why" } input name="why" required maxlength="1024" autocomplete="off"; }
            button { (action.order) }
        }
    }
}

fn row(scope: &ReleasedScope, kept: &KeptRelease, takes_orders: bool) -> [Markup; 7] {
    let KeptRelease { release: id, at: taken, from, resources } = kept;
    let is = [(scope.stable.as_ref(), "stable"), (scope.candidate.as_ref().map(|of| &of.release), "under way")];
    let is = is.into_iter().find(|(of, _)| *of == Some(id)).map(|(_, word)| word);
    let is = is.or_else(|| scope.refused.contains(id).then_some("not taken again"));
    let is_earlier = scope.stable.is_some() && !matches!(is, Some("stable" | "under way"));
    let back = is_earlier.then(|| Action {
        order: "rollback",
        does: "It is stable again, and what is left is not taken again",
        command: format!("rollback --to {id}"),
        stage: None,
        to: Some(id.clone()),
    });
    let differs = scope
        .stable
        .as_ref()
        .filter(|stable| *stable != id)
        .map(|_| query(&[("scope", Some(&*scope.scope)), ("to", Some(id))]));
    [
        release(id),
        html! { (is.unwrap_or_default()) },
        at(*taken),
        html! { (resources) },
        html! { (from) },
        html! { @if let Some(query) = differs { a href={ "/releases/diff" (query) } { "from what is stable" } } },
        html! {
            @if let Some(action) = &back {
                (command(scope, action))
                @if takes_orders { (button(scope, action)) }
            }
        },
    ]
}
