//! The checks, by what they are about.

/// A check as a table has it.
macro_rules! check {
    ($rule:literal, $group:literal, $methods:expr, $run:path, $title:literal, $consequence:literal $(,)?) => {
        check!(@ None, $rule, $group, $methods, $run, $title, $consequence)
    };
    ($dialect:ident: $rule:literal, $group:literal, $methods:expr, $run:path, $title:literal, $consequence:literal $(,)?) => {
        check!(@ Some(xds_transport::Dialect::$dialect), $rule, $group, $methods, $run, $title, $consequence)
    };
    (@ $dialect:expr, $rule:literal, $group:literal, $methods:expr, $run:path, $title:literal, $consequence:literal) => {
        Check {
            rule: $rule,
            group: $group,
            title: $title,
            consequence: $consequence,
            methods: $methods,
            dialect: $dialect,
            run: |lab| Box::pin($run(lab)),
        }
    };
}
mod absence;
mod flow;
mod lifetime;
mod names;
mod nonces;
mod order;
mod parameters;
mod reconnect;
mod streams;
mod subscriptions;
mod wildcards;

use super::check::Check;

/// All of them, a group after the other.
pub(crate) fn all() -> impl Iterator<Item = &'static Check> {
    [
        streams::CHECKS,
        nonces::CHECKS,
        wildcards::CHECKS,
        subscriptions::CHECKS,
        absence::CHECKS,
        reconnect::CHECKS,
        names::CHECKS,
        lifetime::CHECKS,
        order::CHECKS,
        flow::CHECKS,
        parameters::CHECKS,
    ]
    .into_iter()
    .flatten()
}
