//! Having done what is ordered, however it was said: it is checked, noted with what the connection shows, and done to its end.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use tokio::task::spawn_blocking;

use super::look::{Pages, failed};
use super::peer::Shown;
use crate::api::{OrderDone, ReleaseOrder};
use crate::metrics::AUDIT;
use crate::relay_core::RolloutError;

/// Of a name, in bytes, and of a reason.
const LONGEST_NAME: usize = 64;
const LONGEST_REASON: usize = 1 << 10;

/// Whether it says who and why.
///
/// # Errors
/// What is wrong with that.
pub(super) fn check(order: &ReleaseOrder) -> Result<(), String> {
    for (field, text, longest) in [("by", &order.by, LONGEST_NAME), ("why", &order.why, LONGEST_REASON)] {
        if text.trim().is_empty() {
            return Err(format!("{field}: empty; expected who wants it, and why: that is kept"));
        }
        if text.len() > longest || text.chars().any(is_hidden) {
            return Err(format!("{field}: expected one line of up to {longest} bytes"));
        }
    }
    // What is noted beside is told from what somebody says of himself.
    if order.by.contains(['(', ')']) || order.by.trim_start().to_lowercase().starts_with("relay ") {
        return Err("by: expected a name without ( and ), that is not as one of a relay".to_owned());
    }
    Ok(())
}

/// Does it, if all is still as a mark says, where there is one.
///
/// # Errors
/// The relay fails: an answer that says so.
pub(super) async fn done(
    pages: Pages,
    shown: &Shown,
    order: ReleaseOrder,
    mark: Option<String>,
) -> Result<Result<OrderDone, RolloutError>, Response> {
    let by = format!("{} ({})", order.by, shown.words());
    let Ok(permit) = pages.orders.clone().try_acquire_owned() else {
        let words = "other orders wait for what is kept to be written; nothing is done about this one\n";
        return Err((StatusCode::SERVICE_UNAVAILABLE, words).into_response());
    };
    // Whoever hangs up before its turn does not want it any more. What is begun is done, whether anybody waits or not.
    let waits = Arc::new(());
    let wanted = Arc::downgrade(&waits);
    let doing = spawn_blocking(move || {
        let is_wanted = || wanted.strong_count() > 0;
        let done = pages.relay.order_releases(&order, &by, mark.as_deref(), &is_wanted);
        drop(permit);
        let (what, why) = (order.order, &order.why);
        match &done {
            Ok(OrderDone { scope, done, is_kept, .. }) => {
                tracing::info!(target: AUDIT, scope, by, order = ?what, why, is_kept, "{done}");
            }
            Err(error) => tracing::warn!(target: AUDIT, by, order = ?what, why, "an order is not done: {error}"),
        }
        done
    });
    let done = doing.await.map_err(|error| failed(&error.to_string()));
    drop(waits);
    done
}

/// What shows nothing, or has what is beside it read otherwise.
fn is_hidden(c: char) -> bool {
    let formats = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
    c.is_control() || matches!(c, '\u{ad}' | '\u{61c}' | '\u{feff}') || formats.iter().any(|some| some.contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_called_as_what_is_noted_of_others() {
        let problem = |by: &str, why: &str| {
            check(&ReleaseOrder { by: by.to_owned(), why: why.to_owned(), ..ReleaseOrder::default() }).err()
        };
        assert_eq!(problem("Ann Ünal, CI", "5xx (see #12)"), None);
        for by in ["root (uid 0)", "ann)", "relay 0000000000000001", "Relay 1", "a\u{202e}b", "a\u{200b}", "a\tb", " "]
        {
            assert!(problem(by, "why").is_some_and(|problem| problem.starts_with("by: ")), "{by:?}");
        }
        assert!(problem("ann", "a\u{2028}b").is_some_and(|problem| problem.starts_with("why: ")));
    }
}
