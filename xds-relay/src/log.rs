//! What is logged, and how much of it: what strangers say in it can neither look like lines of its own nor fill a disk.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::Field;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::{FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use xds_relay::config::LogFilter;

/// How many lines of a kind there are in [`PERIOD`]: further ones are counted.
const LINES: u32 = 20;
const PERIOD: Duration = Duration::from_secs(1);
/// The longest value in a line, in characters.
const LONGEST: usize = 1000;

/// Logs what passes the filter to standard error; and what has another filter count.
pub(crate) fn to_stderr(
    filter: &LogFilter,
) -> (impl Subscriber + Send + Sync + use<>, impl Fn(&LogFilter) + Send + Sync + use<>) {
    let layer = tracing_subscriber::fmt::layer().with_ansi(io::stderr().is_terminal());
    let lines = Lines::new(io::stderr, Instant::now);
    tell_in_time(io::stderr, Arc::downgrade(&lines.kinds), Instant::now);
    let (filter, handle) = reload::Layer::new(targets(filter));
    let subscriber =
        tracing_subscriber::registry().with(layer.fmt_fields(plain_fields()).with_writer(lines)).with(filter);
    // It fails where nothing is logged any more.
    (subscriber, move |filter: &LogFilter| drop(handle.reload(targets(filter))))
}

/// It was looked at when it was read.
fn targets(filter: &LogFilter) -> Targets {
    filter.as_str().parse().unwrap_or_else(|_| Targets::new().with_default(LevelFilter::INFO))
}

fn plain_fields() -> impl for<'a> FormatFields<'a> + 'static {
    debug_fn(write_field).delimited(" ")
}

fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    if field.name() != "message" {
        write!(writer, "{field}=")?;
    }
    write!(Plain { inner: writer, left: LONGEST }, "{value:?}")
}

/// Writes text without what a terminal or a reader of lines would take for more than text, up to a length.
struct Plain<'a, 'w> {
    inner: &'a mut Writer<'w>,
    left: usize,
}

impl fmt::Write for Plain<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match self.left {
                0 => return Ok(()),
                1 => self.inner.write_char('…')?,
                _ if c.is_control() || changes_lines(c) => write!(self.inner, "{}", c.escape_default())?,
                _ => self.inner.write_char(c)?,
            }
            self.left -= 1;
        }
        Ok(())
    }
}

/// Whether a character is one of those that change the direction of text, or end a line without being a control.
fn changes_lines(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes so many lines of each kind in a second. A kind is a place in the code.
struct Lines<W> {
    to: W,
    clock: fn() -> Instant,
    kinds: Arc<Mutex<Kinds>>,
}

/// What was written lately of each.
#[derive(Default)]
struct Kinds(HashMap<Identifier, Kind>);

struct Kind {
    since: Instant,
    lines: u32,
    /// Those that were not written.
    unwritten: u64,
    target: String,
}

impl<W> Lines<W> {
    fn new(to: W, clock: fn() -> Instant) -> Self {
        Self { to, clock, kinds: Arc::default() }
    }

    /// Whether one more line of a kind is written, and what is to be said of those that were not, of any kind.
    fn admit(&self, metadata: &Metadata<'_>) -> (bool, String) {
        let now = (self.clock)();
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let unwritten = kinds.take_unwritten(now);
        let first = || Kind { since: now, lines: 0, unwritten: 0, target: metadata.target().to_owned() };
        let kind = kinds.0.entry(metadata.callsite()).or_insert_with(first);
        let admitted = kind.lines < LINES;
        if admitted {
            kind.lines += 1;
        } else {
            kind.unwritten += 1;
        }
        (admitted, unwritten)
    }
}

impl Kinds {
    /// What is to be said of lines that were not written, whose period is over.
    fn take_unwritten(&mut self, now: Instant) -> String {
        let mut unwritten = String::new();
        for kind in self.0.values_mut().filter(|kind| now.saturating_duration_since(kind.since) >= PERIOD) {
            if kind.unwritten > 0 {
                let _ = writeln!(unwritten, "{}: and {} more lines like the last", kind.target, kind.unwritten);
            }
            (kind.since, kind.lines, kind.unwritten) = (now, 0, 0);
        }
        unwritten
    }
}

/// Has it said of lines that were not written though nothing else is logged, in a thread of its own.
fn tell_in_time<W: Write>(to: impl Fn() -> W + Send + 'static, kinds: Weak<Mutex<Kinds>>, clock: fn() -> Instant) {
    let telling = move || {
        while let Some(kinds) = kinds.upgrade() {
            let unwritten = kinds.lock().unwrap_or_else(PoisonError::into_inner).take_unwritten(clock());
            drop(kinds);
            if !unwritten.is_empty() {
                let _ = to().write_all(unwritten.as_bytes());
            }
            thread::sleep(PERIOD);
        }
    };
    // Where there can be no thread it is said with what is logged next.
    let _ = thread::Builder::new().name("log".to_owned()).spawn(telling);
}

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for Lines<W> {
    type Writer = Line<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Line(Some(self.to.make_writer()))
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        let (admitted, unwritten) = self.admit(metadata);
        if !unwritten.is_empty() {
            let _ = self.to.make_writer_for(metadata).write_all(unwritten.as_bytes());
        }
        Line(admitted.then(|| self.to.make_writer_for(metadata)))
    }
}

/// One line, if it is written.
struct Line<W>(Option<W>);

impl<W: Write> Write for Line<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Ok(buf.len()), |to| to.write(buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static LATER: Cell<Duration> = const { Cell::new(Duration::ZERO) };
        static START: Instant = Instant::now();
    }

    fn clock() -> Instant {
        START.with(|start| *start) + LATER.get()
    }

    /// What is logged of events, without the time.
    fn logged(events: impl FnOnce()) -> String {
        let written = Arc::new(Mutex::new(Vec::new()));
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).without_time();
        let lines = Lines::new(Writing(written.clone()), clock);
        let log = tracing_subscriber::registry().with(layer.fmt_fields(plain_fields()).with_writer(lines));
        tracing::subscriber::with_default(log, events);
        String::from_utf8(std::mem::take(&mut *written.lock().unwrap())).unwrap()
    }

    struct Writing(Arc<Mutex<Vec<u8>>>);

    impl<'a> MakeWriter<'a> for Writing {
        type Writer = Shared;

        fn make_writer(&'a self) -> Shared {
            Shared(self.0.clone())
        }
    }

    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(buf);
            Ok(buf.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_strangers_say_is_one_line_of_plain_text_whatever_it_is() {
        let said = "x\n ERROR all is lost\r\u{1b}[2J\u{202e}\u{2028}\u{0}";
        let log = logged(|| tracing::warn!(peer = %said, name = said, "refused: {said}"));
        assert_eq!(log.lines().count(), 1, "{log:?}");
        assert!(log.contains(r"refused: x\n ERROR all is lost\r\u{1b}[2J\u{202e}\u{2028}\u{0}"), "{log}");
        let plain = |c: char| c == '\n' || !c.is_control() && !changes_lines(c);
        assert!(log.chars().all(plain), "{log:?}");
    }

    #[test]
    fn what_strangers_say_is_cut() {
        let log = logged(|| tracing::warn!("refused: {}", "é".repeat(100_000)));
        assert_eq!(log.matches('é').count(), LONGEST - "refused: …".chars().count());
        assert!(log.ends_with("é…\n"), "{log}");
    }

    #[test]
    fn lines_of_a_kind_are_counted_where_they_are_too_many() {
        let log = logged(|| {
            for at in 0..1000 {
                tracing::warn!("a stranger, {at}");
            }
            tracing::info!("another kind");
            LATER.set(PERIOD);
            tracing::info!("later");
            LATER.set(2 * PERIOD);
            tracing::info!("later still");
        });
        let lines: Vec<_> = log.lines().collect();
        assert_eq!(lines.len(), LINES as usize + 4, "{log}");
        assert!(lines[19].ends_with("a stranger, 19"), "{log}");
        assert!(lines[20].ends_with("another kind"), "{log}");
        assert!(lines[21].ends_with("log::tests: and 980 more lines like the last"), "{log}");
        assert!(lines[23].ends_with("later still"), "{log}");
    }

    /// Nothing else is logged; the thread gets a clock that is a period ahead.
    #[test]
    fn lines_that_were_not_written_are_counted_though_nothing_else_is_logged() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let lines = Lines::new(Writing(written.clone()), Instant::now);
        let (kinds, said) = (Arc::downgrade(&lines.kinds), written.clone());
        let log = tracing_subscriber::registry().with(tracing_subscriber::fmt::layer().with_writer(lines));
        tracing::subscriber::with_default(log, || {
            for at in 0..1000 {
                tracing::warn!("a stranger, {at}");
            }
            tell_in_time(move || Shared(said.clone()), kinds, || Instant::now() + PERIOD);
            let text = || String::from_utf8_lossy(&written.lock().unwrap()).into_owned();
            while !text().ends_with("more lines like the last\n") {
                thread::yield_now();
            }
            assert_eq!(text().matches("a stranger, ").count(), LINES as usize, "{}", text());
        });
    }
}
