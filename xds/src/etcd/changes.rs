//! What is to be done to keys, and what comes of it.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use bytes::Bytes;
use xds_relay::etcd_origin::Key;
use xdstp_client::state::{Commit, Compare, Limits, Op, Revision, Store, StoreError};

use super::cluster;
use crate::exit;
use crate::show::{complain, unless_closed, visible};

/// How often it is begun anew because somebody else wrote meanwhile.
const ATTEMPTS: usize = 5;

/// What keys are to have: nothing, if they are to go.
pub(super) type Wanted = Vec<(Key, Option<Bytes>)>;

/// How it is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct How<'a> {
    /// What the keys begin with, for people.
    pub(super) prefix: &'a str,
    pub(super) dry_run: bool,
    /// In several transactions, if one does not take all.
    pub(super) in_pieces: bool,
}

/// One change: an op, and how the key was before.
type Change = (Op, Compare);

/// Why it is not done, or not all of it.
enum Failure {
    Print(io::Error),
    Store(StoreError),
    TooLarge {
        changes: usize,
        pieces: usize,
    },
    Conflict,
    /// Somebody else wrote a key meanwhile.
    Changed(String),
    /// No transaction takes it.
    ValueTooLarge {
        key: String,
        most: usize,
    },
}

/// What is done, in numbers.
#[derive(Default)]
struct Count {
    put: usize,
    removed: usize,
    unchanged: usize,
    /// The keys that are removed.
    gone: BTreeSet<String>,
    /// The keys that were to go, and were not there.
    absent: BTreeSet<String>,
    revision: Option<Revision>,
}

/// Does it in a cluster, if it is good what is wanted; what is not is wrong usage.
pub(super) fn run_on(
    cluster: &cluster::Args,
    wanted: Result<Wanted, Box<dyn Error>>,
    how: How<'_>,
) -> Result<ExitCode, Box<dyn Error>> {
    match wanted.and_then(|wanted| Ok((wanted, cluster.open()?))) {
        Ok((wanted, store)) => unless_closed(make(&store, &wanted, how)),
        Err(error) => Ok(exit::usage(&*error)),
    }
}

/// Does it, and says so. 0: it is so now; 1: it is not, or what was to go was not there; 3: nobody answers, and it may be so.
fn make(store: &impl Store, wanted: &Wanted, how: How<'_>) -> io::Result<ExitCode> {
    let (mut out, mut count) = (io::stdout().lock(), Count::default());
    let made = try_make(store, wanted, how, (&mut out, &mut count));
    // What is too large is found before anything is sent.
    let is_unsent = matches!(made, Err(Failure::TooLarge { .. } | Failure::ValueTooLarge { .. }));
    let is_some_done = count.put + count.removed > 0 && !how.dry_run;
    let (words, code) = match made {
        Ok(()) => {
            writeln!(out, "{}", count.words(how))?;
            for key in &count.absent {
                complain(format_args!("{}{} is not there", visible(how.prefix), visible(key)));
            }
            return Ok(if count.absent.is_empty() { ExitCode::SUCCESS } else { exit::wrong() });
        }
        Err(Failure::Print(error)) => return Err(error),
        Err(Failure::TooLarge { changes, pieces }) => {
            let words = format!(
                "{changes} changes are more than one transaction of etcd takes; with --in-pieces they are {pieces}, one after the other"
            );
            (words, exit::wrong())
        }
        Err(Failure::Changed(key)) => {
            (format!("somebody else wrote {}{key} meanwhile: look at it, and begin anew", how.prefix), exit::wrong())
        }
        Err(Failure::ValueTooLarge { key, most }) => (
            format!("{}{key}: etcd takes {most} bytes in one transaction, and this is more", how.prefix),
            exit::wrong(),
        ),
        Err(Failure::Conflict) => ("others write these keys at the same time".to_owned(), exit::wrong()),
        Err(Failure::Store(error @ (StoreError::Away(_) | StoreError::Unsure(_)))) => {
            (format!("etcd: {error}"), exit::unknown())
        }
        Err(Failure::Store(error)) => (format!("etcd: {error}"), exit::wrong()),
    };
    complain(visible(&words));
    complain(match (is_some_done, is_unsent) {
        (true, _) => "what is said above is done",
        (false, true) => "nothing is done",
        (false, false) => "nothing is known to be done",
    });
    Ok(code)
}

impl Count {
    fn words(&self, how: How<'_>) -> String {
        let Self { put, removed, unchanged, gone: _, absent, revision } = self;
        let would = if how.dry_run { "would be " } else { "" };
        let counts = [(*put, "put"), (*removed, "removed"), (*unchanged, "unchanged"), (absent.len(), "not there")];
        let said = counts.into_iter().filter(|(count, _)| *count > 0);
        let said: Vec<_> = said
            .map(|(count, words)| match words {
                "put" | "removed" => format!("{count} {would}{words}"),
                _ => format!("{count} {words}"),
            })
            .collect();
        let said = if said.is_empty() { "nothing to do".to_owned() } else { said.join(", ") };
        revision.map_or(said.clone(), |revision| format!("{said}, at revision {revision}"))
    }
}

fn try_make(
    store: &impl Store,
    wanted: &Wanted,
    how: How<'_>,
    (out, count): (&mut impl Write, &mut Count),
) -> Result<(), Failure> {
    let mut first = HashMap::new();
    for _ in 0..ATTEMPTS {
        let mut changes = Vec::new();
        count.unchanged = 0;
        count.absent.clear();
        for (key, value) in wanted {
            match change(store, key, value.as_ref()).map_err(Failure::Store)? {
                Some(change) => {
                    // Whoever wrote it since did not know of this, and this not of that.
                    let Compare { key, revision, .. } = &change.1;
                    if *first.entry(key.clone()).or_insert(*revision) != *revision {
                        return Err(Failure::Changed(key.clone()));
                    }
                    changes.push(change);
                }
                None if value.is_some() => count.unchanged += 1,
                None => _ = count.absent.insert(key.to_string()),
            }
        }
        let all = changes.len();
        // What an attempt before did is not unchanged.
        count.unchanged = count.unchanged.saturating_sub(count.put);
        count.absent.retain(|key| !count.gone.contains(key));
        let most = store.limits().bytes;
        if let Some((op, _)) = changes.iter().find(|change| size(change) > most) {
            return Err(Failure::ValueTooLarge { key: op.key().to_owned(), most });
        }
        let pieces = pieces(changes, store.limits());
        if pieces.len() > 1 && !how.in_pieces {
            return Err(Failure::TooLarge { changes: all, pieces: pieces.len() });
        }
        if commit_all(store, pieces, how, (&mut *out, &mut *count))? {
            return Ok(());
        }
    }
    Err(Failure::Conflict)
}

/// Whether nobody else wrote meanwhile.
fn commit_all(
    store: &impl Store,
    pieces: Vec<Vec<Change>>,
    how: How<'_>,
    (out, count): (&mut impl Write, &mut Count),
) -> Result<bool, Failure> {
    for piece in pieces {
        let (ops, compares): (Vec<_>, Vec<_>) = piece.into_iter().unzip();
        if !how.dry_run {
            match store.commit(&ops, &compares).map_err(Failure::Store)? {
                Commit::Done(revision) => count.revision = Some(revision),
                Commit::Conflict => return Ok(false),
            }
        }
        for op in &ops {
            let done = match op {
                Op::Put(..) => (&mut count.put, "put"),
                Op::Delete(key) => {
                    count.gone.insert(key.to_string());
                    (&mut count.removed, "rm ")
                }
            };
            *done.0 += 1;
            writeln!(out, "{} {}{}", done.1, visible(how.prefix), visible(op.key())).map_err(Failure::Print)?;
        }
    }
    Ok(true)
}

/// What is to be done to a key, if anything.
fn change(store: &impl Store, key: &Key, value: Option<&Bytes>) -> Result<Option<Change>, StoreError> {
    let key = key.to_string();
    let there = store.read(&key)?;
    Ok(match (value, there) {
        (Some(value), Some(there)) if there.value == value => None,
        (Some(value), Some(there)) => Some((Op::put(&*key, value.clone()), Compare::unchanged(key, there.revision))),
        (Some(value), None) => Some((Op::put(&*key, value.clone()), Compare::absent(key))),
        (None, Some(there)) => Some((Op::delete(&*key), Compare::unchanged(key, there.revision))),
        (None, None) => None,
    })
}

/// As few as there can be in this order, each as large as a transaction may be; what is larger itself is one by itself.
fn pieces(changes: Vec<Change>, limits: Limits) -> Vec<Vec<Change>> {
    let mut pieces: Vec<Vec<Change>> = Vec::new();
    let most = limits.ops.min(limits.compares);
    let mut bytes = usize::MAX;
    for change in changes {
        let size = size(&change);
        match pieces.last_mut() {
            Some(piece) if piece.len() < most && bytes.saturating_add(size) <= limits.bytes => {
                bytes += size;
                piece.push(change);
            }
            _ => {
                bytes = size;
                pieces.push(vec![change]);
            }
        }
    }
    pieces
}

fn size((op, compare): &Change) -> usize {
    let value = if let Op::Put(_, value) = op { value.len() } else { 0 };
    op.key().len() + value + compare.key.len()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use xdstp_client::state::{Entry, Listing, Memory, Watch};

    use super::*;

    fn limits(ops: usize, bytes: usize) -> Limits {
        let mut limits = Limits::default();
        (limits.ops, limits.compares, limits.bytes) = (ops, ops, bytes);
        limits
    }

    /// A store in which somebody else puts a key before each commit, so many times.
    struct Busy {
        inner: Memory,
        key: &'static str,
        left: Mutex<usize>,
    }

    impl Store for Busy {
        fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
            panic!("all that begins with {prefix} is listed, for one key")
        }

        fn read(&self, key: &str) -> Result<Option<Entry>, StoreError> {
            self.inner.read(key)
        }

        fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
            self.inner.watch(prefix, after)
        }

        fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
            let mut left = self.left.lock().unwrap();
            if *left > 0 {
                *left -= 1;
                let _ = self.inner.commit(&[Op::put(self.key, "theirs")], &[])?;
            }
            self.inner.commit(ops, compares)
        }

        fn limits(&self) -> Limits {
            limits(5, 100)
        }
    }

    fn made(key: &'static str, busy: &'static str, value: &'static [u8]) -> (Result<(), Failure>, Option<Bytes>) {
        let key: Key = key.parse().unwrap();
        let store = Busy { inner: Memory::default(), key: busy, left: Mutex::new(1) };
        let how = How { prefix: "", dry_run: false, in_pieces: true };
        let wanted = vec![(key.clone(), Some(Bytes::from_static(value)))];
        let made = try_make(&store, &wanted, how, (&mut Vec::new(), &mut Count::default()));
        let there = store.inner.list(&key.to_string()).unwrap().entries.pop();
        (made, there.map(|entry| entry.value))
    }

    #[test]
    fn what_somebody_else_wrote_meanwhile_is_not_written_over() {
        const KEY: &str = "res/envoy.config.cluster.v3.Cluster/a";
        let (done, there) = made(KEY, KEY, b"mine");
        assert!(matches!(done, Err(Failure::Changed(key)) if key == KEY));
        assert_eq!(there.as_deref(), Some(&b"theirs"[..]));
        let (done, there) = made(KEY, "elsewhere", b"mine");
        assert!(done.is_ok() && there.as_deref() == Some(b"mine"));
        let (done, there) = made(KEY, KEY, b"theirs");
        assert!(done.is_ok() && there.as_deref() == Some(b"theirs"), "it is as it is to be");
        let (done, there) = made(KEY, "elsewhere", &[b'x'; 100]);
        assert!(matches!(done, Err(Failure::ValueTooLarge { .. })) && there.is_none());
    }

    #[test]
    fn a_piece_is_as_large_as_may_be_and_all_is_in_one_in_its_order() {
        let change =
            |number: usize| (Op::put(format!("k{number}"), vec![0; 10]), Compare::absent(format!("k{number}")));
        let sizes = |limits| {
            let pieces = pieces((0..5).map(change).collect(), limits);
            let all: Vec<_> = pieces.iter().flatten().map(|(op, _)| op.key().to_owned()).collect();
            assert_eq!(all, ["k0", "k1", "k2", "k3", "k4"]);
            pieces.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(limits(5, 1000)), [5]);
        assert_eq!(sizes(limits(2, 1000)), [2, 2, 1]);
        assert_eq!(sizes(limits(5, 3 * 14)), [3, 2]);
        assert_eq!(sizes(limits(5, 1)), [1; 5]);
        assert!(pieces(Vec::new(), limits(1, 1)).is_empty());
    }
}
