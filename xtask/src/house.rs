//! The rules of the house that a compiler does not know: short files, short functions, and no two files that need each other.

mod imports;
mod lengths;
mod source;

use std::error::Error;

use self::source::Source;
use crate::workspace;

/// The sources that are held to the rules: a package, and the files of it whose paths begin so.
const HELD: [(&str, &str); 3] = [
    ("xds-cache", "xds-cache/src"),
    ("xds-transport", "xds-transport/src"),
    ("xds-client", "xds-client/src/federation"),
];

/// Folders that name nothing of each other: a package, and their modules.
const APART: [(&str, [&str; 2]); 1] = [("xds-cache", ["store", "subscribers"])];

/// What is broken on purpose: the path of a file, and why. One that breaks nothing any more is an error.
const EXCEPTIONS: [(&str, &str); 9] = [
    ("xds-cache/src/tests.rs", "one world that all tests of the cache share, and the first of them"),
    ("xds-cache/src/tests/model.rs", "a model of the whole cache, to be read beside it"),
    ("xds-cache/src/tests/removals.rs", "one line too long is no second subject"),
    ("xds-client/src/federation/routes/contested.rs", "one pass over names that two scopes have"),
    ("xds-client/src/federation/routes/pull.rs", "one pass over the parts of a subscriber"),
    ("xds-client/src/federation/scope/store.rs", "what comes from an origin is one change, in one order"),
    ("xds-client/src/federation/subscriber.rs", "one decision, with all that it is made by"),
    ("xds-transport/src/client/tests/delta.rs", "scenarios: each stands alone, and none is easier to find elsewhere"),
    ("xds-transport/src/client/tests/sotw.rs", "scenarios: each stands alone, and none is easier to find elsewhere"),
];

/// Fails unless the rules are kept, and names each place where they are not.
pub(crate) fn check() -> Result<String, Box<dyn Error>> {
    let (mut broken, mut excused, mut files) = (Vec::new(), Vec::new(), 0);
    for (package, held) in HELD {
        let mut sources = Source::read_all(&workspace::root(), package)?;
        sources.retain(|source| source.path.starts_with(held));
        files += sources.len();
        broken.extend(imports::circles(&sources));
        let apart = APART.iter().filter(|(of, _)| *of == package);
        broken.extend(apart.flat_map(|(_, folders)| imports::between(&sources, *folders)));
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
