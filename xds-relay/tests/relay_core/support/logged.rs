//! What is logged on a thread: relays here have no others.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

thread_local! {
    /// Nothing is noted where nobody reads it.
    static LINES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

struct Lines;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        LINES.with_borrow_mut(|lines| {
            let Some(lines) = lines else { return };
            let mut line = Line(event.metadata().level().to_string());
            event.record(&mut line);
            lines.push(line.0);
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The lines that are logged meanwhile, each with its level and its fields.
pub(crate) fn logged(act: impl FnOnce()) -> Vec<String> {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| tracing::subscriber::set_global_default(Lines).unwrap());
    LINES.set(Some(Vec::new()));
    act();
    LINES.take().unwrap_or_default()
}
