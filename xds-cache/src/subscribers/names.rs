//! Names that are members of globs, as some are.

use xdstp_uri::ResourceName;

/// Names of which those that are members of a glob are found without the others.
pub(crate) trait Names {
    /// All of them.
    fn iter(&self) -> impl Iterator<Item = &ResourceName>;

    /// The names that are members of a glob.
    fn of_glob<'a>(&'a self, glob: &'a ResourceName) -> impl Iterator<Item = &'a ResourceName>;
}
