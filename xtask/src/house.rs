//! The rules of the house that a compiler does not know: short files, short functions, and no two files that need each other.

mod apart;
mod imports;
mod lengths;
mod source;

use std::collections::BTreeSet;
use std::error::Error;

use self::apart::Apart;
use self::lengths::Bound;
use self::source::Source;
use crate::workspace;

/// The sources that are held to the rules: a package, and the files of it whose paths begin so.
const HELD: [(&str, &str); 4] = [
    ("xds-cache", "xds-cache/src"),
    ("xds-transport", "xds-transport/src"),
    ("xds-transport", "xds-transport/tests"),
    ("xds-client", "xds-client/src/federation"),
];

/// Folders that name nothing of each other, and who joins them.
const APART: [Apart; 1] = [Apart {
    package: "xds-cache",
    folders: ["store", "subscribers"],
    joined_by: &["cache", "wake", "subscribe", "pull", "resume", "visit"],
}];

/// What is broken on purpose: in which file, how far, and why. One that breaks nothing any more is an error.
const EXCEPTIONS: &[(&str, Bound, &str)] = &[
    (
        "xds-client/src/federation/routes/contested.rs",
        Bound::Function("settle_contested", 83),
        "one pass over names that two scopes have",
    ),
    (
        "xds-client/src/federation/routes/pull.rs",
        Bound::Function("pull_round", 104),
        "one pass over the parts of a subscriber",
    ),
    (
        "xds-client/src/federation/scope/store.rs",
        Bound::Function("store", 123),
        "what comes from an origin is one change, in one order",
    ),
    (
        "xds-client/src/federation/subscriber.rs",
        Bound::Function("counts", 67),
        "one decision, with all that it is made by",
    ),
];

/// Fails unless the rules are kept, and names each place where they are not.
pub(crate) fn check() -> Result<String, Box<dyn Error>> {
    let (mut broken, mut excused, mut files) = (Vec::new(), BTreeSet::new(), 0);
    for (package, held) in HELD {
        let mut sources = Source::read_all(&workspace::root(), package)?;
        sources.retain(|source| source.path.starts_with(held));
        files += sources.len();
        broken.extend(imports::circles(&sources));
        let apart = APART.iter().filter(|apart| apart.package == package);
        broken.extend(apart.flat_map(|apart| apart.broken(&sources)));
        for source in &sources {
            for long in lengths::of(source) {
                let exception =
                    EXCEPTIONS.iter().position(|(path, bound, _)| *path == source.path && bound.excuses(&long));
                match exception {
                    Some(exception) => _ = excused.insert(exception),
                    None => broken.push(long.said_of(&source.path)),
                }
            }
        }
    }
    let stale = EXCEPTIONS.iter().enumerate().filter(|(at, _)| !excused.contains(at));
    broken.extend(stale.map(|(_, (path, bound, _))| format!("{path}: nothing needs the exception {bound:?}")));
    if broken.is_empty() {
        return Ok(format!("{files} files keep the rules of the house, with {} exceptions", excused.len()));
    }
    Err(format!("the rules of the house are broken:\n{}", broken.join("\n")).into())
}
