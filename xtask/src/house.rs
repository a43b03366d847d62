//! The rules of the house that a compiler does not know: short files, short functions, and no two files that need each other.

mod imports;
mod lengths;
mod source;

use std::error::Error;

use self::source::Source;
use crate::workspace;

/// The packages that are held to the rules, as folders.
const HELD: [&str; 2] = ["xds-cache", "xds-transport"];

/// What is broken on purpose: the path of a file, and why. One that breaks nothing any more is an error.
const EXCEPTIONS: [(&str, &str); 5] = [
    ("xds-cache/src/tests.rs", "one world that all tests of the cache share, and the first of them"),
    ("xds-cache/src/tests/model.rs", "a model of the whole cache, to be read beside it"),
    ("xds-cache/src/tests/removals.rs", "one line too long is no second subject"),
    ("xds-transport/src/client/tests/delta.rs", "scenarios: each stands alone, and none is easier to find elsewhere"),
    ("xds-transport/src/client/tests/sotw.rs", "scenarios: each stands alone, and none is easier to find elsewhere"),
];

/// Fails unless the rules are kept, and names each place where they are not.
pub(crate) fn check() -> Result<String, Box<dyn Error>> {
    let (mut broken, mut excused, mut files) = (Vec::new(), Vec::new(), 0);
    for package in HELD {
        let sources = Source::read_all(&workspace::root(), package)?;
        files += sources.len();
        broken.extend(imports::circles(&sources));
        for source in &sources {
            let found = lengths::of(source);
            match EXCEPTIONS.iter().find(|(path, _)| *path == source.path) {
                Some((path, _)) if !found.is_empty() => excused.push(*path),
                _ => broken.extend(found),
            }
        }
    }
    let stale = EXCEPTIONS.iter().filter(|(path, _)| !excused.contains(path));
    broken.extend(stale.map(|(path, _)| format!("{path}: an exception that nothing needs")));
    if broken.is_empty() {
        return Ok(format!("{files} files keep the rules of the house, {} of them by an exception", excused.len()));
    }
    Err(format!("the rules of the house are broken:\n{}", broken.join("\n")).into())
}
