//! Having done what is ordered, however it was said: it is checked, noted with what the connection shows, and done to its end.

use axum::response::Response;
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
        if text.len() > longest || text.chars().any(char::is_control) {
            return Err(format!("{field}: expected one line of up to {longest} bytes"));
        }
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
    let by = shown.words().map_or_else(|| order.by.clone(), |shown| format!("{} ({shown})", order.by));
    // A store takes its time; what was ordered is done, whether anybody waits for the answer or not.
    let doing = spawn_blocking(move || {
        let done = pages.relay.order_releases(&order, &by, mark.as_deref());
        let (what, why) = (order.order, &order.why);
        match &done {
            Ok(OrderDone { scope, done, is_kept, .. }) => {
                tracing::info!(target: AUDIT, scope, by, order = ?what, why, is_kept, "{done}");
            }
            Err(error) => tracing::warn!(target: AUDIT, by, order = ?what, why, "an order is not done: {error}"),
        }
        done
    });
    doing.await.map_err(|error| failed(&error.to_string()))
}
