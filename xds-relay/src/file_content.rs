//! What an origin of files holds, in numbers.

use std::collections::BTreeMap;
use std::fmt;

/// What the files of an origin hold. Displayed as `2 Cluster, 1 Listener`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileContent {
    /// The origin's name in the configuration.
    pub origin: String,
    /// Type URL → number of resources.
    pub resources: BTreeMap<String, usize>,
    /// What they refer to that comes from this origin and is in no file, with its place: that is no error, as clients may have it in
    /// their own files. Only a [check](crate::check()) looks for it.
    pub dangling: Vec<String>,
    /// Variants whose constraints have other keys than the others of their name, with their places: TP2 advises against it. Only a
    /// [check](crate::check()) looks for it.
    pub other_keys: Vec<String>,
}

impl FileContent {
    pub(crate) fn new<'a>(origin: &str, type_urls: impl Iterator<Item = &'a str>) -> Self {
        let mut resources = BTreeMap::new();
        for type_url in type_urls {
            *resources.entry(type_url.to_owned()).or_default() += 1;
        }
        Self { origin: origin.to_owned(), resources, dangling: Vec::new(), other_keys: Vec::new() }
    }
}

impl fmt::Display for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.resources.is_empty() {
            return f.write_str("no resources");
        }
        for (index, (type_url, count)) in self.resources.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{count} {}", type_url.rsplit(['.', '/']).next().unwrap_or_default())?;
        }
        Ok(())
    }
}
