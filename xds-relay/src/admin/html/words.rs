//! What pages are made of.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};

use crate::api::{ClientState, OriginState, Rejection, SaidOf, query, short_time, short_type};

/// The last one whose year has four digits.
const LAST_MOMENT: u64 = 253_402_300_799_000;

/// A table; on narrow screens each row is a card, where each cell has its head beside it. A column in which nothing stands is left out.
pub(super) fn table<const N: usize>(heads: [&str; N], rows: &[[Markup; N]]) -> Markup {
    let says = |at: usize| rows.iter().any(|row| row.get(at).is_some_and(|cell| !cell.0.is_empty()));
    let columns: Vec<(usize, &str)> = heads.into_iter().enumerate().filter(|(at, _)| says(*at)).collect();
    html! {
        table role="table" {
            thead role="rowgroup" {
                tr role="row" {
                    @for (_, head) in &columns {
                        th role="columnheader" scope="col" { (head) }
                    }
                }
            }
            tbody role="rowgroup" {
                @for row in rows {
                    tr role="row" {
                        @for (at, head) in &columns {
                            td role="cell" data-head=(head) { @if let Some(cell) = row.get(*at) { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

/// What is said of one thing; of what there is nothing to say is left out.
pub(super) fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (what, is) in facts.iter().filter(|(_, is)| !is.0.is_empty()) {
                dt { (what) }
                dd { (is) }
            }
        }
    }
}

/// What somebody else wrote: in its own direction, wherever it breaks.
pub(super) fn said(text: &str) -> Markup {
    html! {
        @if !text.is_empty() {
            code { bdi { (text) } }
        }
    }
}

pub(super) fn said_if(text: Option<&str>) -> Markup {
    said(text.unwrap_or_default())
}

pub(super) fn pill(class: &str, text: &str) -> Markup {
    html! { span.pill.(class) { (text) } }
}

pub(super) fn client_state(state: ClientState) -> Markup {
    let class = match state {
        ClientState::Synced => "good",
        ClientState::Waiting => "quiet",
        ClientState::Silent => "odd",
        ClientState::Rejected => "bad",
    };
    pill(class, &state.to_string())
}

/// A state, and for how long.
pub(super) fn state_since(state: ClientState, seconds: u64) -> Markup {
    html! { span.whole { (client_state(state)) " " span.aside { (short_time(seconds)) } } }
}

pub(super) fn origin_state(state: OriginState) -> Markup {
    let class = match state {
        OriginState::Idle => "quiet",
        OriginState::Up => "good",
        OriginState::Partly => "odd",
        OriginState::Down => "bad",
    };
    pill(class, &state.to_string())
}

pub(super) fn rejection(rejection: &Rejection) -> Markup {
    html! {
        span.wrong { (said(&rejection.message)) } " "
        span.aside { (short_time(rejection.seconds_ago)) " ago" }
    }
}

/// The end of a type URL; all of it is shown to who points at it.
pub(super) fn type_name(type_url: &str) -> Markup {
    html! { code title=(type_url) { bdi { (short_type(type_url)) } } }
}

/// A name, with what is held of it behind it.
pub(super) fn resource_link(type_url: &str, name: &str) -> Markup {
    let to = query(&[("type", Some(type_url)), ("name", Some(name))]);
    html! { a href={ "/resource" (to) } { (said(name)) } }
}

/// A text, with why a client has what it has of a name behind it.
pub(super) fn explain_link(client: u64, type_url: &str, name: &str, text: &str) -> Markup {
    let to = query(&[("type", Some(type_url)), ("name", Some(name))]);
    html! { a href={ "/clients/" (client) (to) } { (said(text)) } }
}

/// A release, by the beginning of its id; all of it is shown to who points at it, and copied.
pub(super) fn release(id: &str) -> Markup {
    html! { code title=(id) { (id.get(..12).unwrap_or(id)) } }
}

/// A moment, in milliseconds since 1970.
pub(super) fn at(millis: u64) -> Markup {
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(millis.min(LAST_MOMENT));
    let text = humantime::format_rfc3339_seconds(time).to_string();
    html! { time.whole datetime=(text) { (text.replacen('T', " ", 1).trim_end_matches('Z')) " UTC" } }
}

/// Who did something, and why.
pub(super) fn said_by(SaidOf { by, why, at: when }: &SaidOf) -> Markup {
    html! { (said(why)) " " span.aside { "by " (said(by)) " at " (at(*when)) } }
}

/// Where there are several pages: the first, and the one behind this.
pub(super) fn pager(first: Option<&str>, next: Option<&str>) -> Markup {
    html! {
        @if first.is_some() || next.is_some() {
            nav.pager aria-label="Parts of the list" {
                @if let Some(first) = first {
                    a href=(first) { "From the beginning" }
                }
                @if let Some(next) = next {
                    a rel="next" href=(next) { "Next" }
                }
            }
        }
    }
}

/// A field of a form.
pub(super) fn field(label: &str, name: &str, value: Option<&str>, hint: &str) -> Markup {
    html! {
        label {
            span { (label) }
            input name=(name) value=(value.unwrap_or_default()) placeholder=(hint) autocomplete="off" spellcheck="false";
        }
    }
}

/// A form that asks for a page.
pub(super) fn form(action: &str, fields: &Markup, button: &str) -> Markup {
    html! {
        form action=(action) {
            (fields)
            button { (button) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_date_whatever_is_kept_of_it() {
        assert!(at(0).into_string().contains("1970-01-01 00:00:00 UTC"));
        assert!(at(u64::MAX).into_string().contains("9999-12-31 23:59:59 UTC"));
    }
}
