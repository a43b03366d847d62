//! The rules of the house that a compiler does not know: short files, short functions, and no two files that need each other.

mod apart;
mod imports;
mod lengths;
mod source;

use std::error::Error;

use self::apart::Apart;
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

/// Fails unless the rules are kept, and names each place where they are not.
pub(crate) fn check() -> Result<String, Box<dyn Error>> {
    let (mut broken, mut files) = (Vec::new(), 0);
    for (package, held) in HELD {
        let mut sources = Source::read_all(&workspace::root(), package)?;
        sources.retain(|source| source.path.starts_with(held));
        files += sources.len();
        broken.extend(imports::circles(&sources));
        let apart = APART.iter().filter(|apart| apart.package == package);
        broken.extend(apart.flat_map(|apart| apart.broken(&sources)));
        for source in &sources {
            broken.extend(lengths::of(source).iter().map(|long| long.said_of(&source.path)));
        }
    }
    if broken.is_empty() {
        return Ok(format!("{files} files keep the rules of the house"));
    }
    Err(format!("the rules of the house are broken:\n{}", broken.join("\n")).into())
}
