//! Files that the configuration names, and that are read as the relay starts only: what is in them by now needs a restart, too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::config::{Config, Secrets};
use crate::text_file;

/// What is in the files that a configuration names and that a relay reads as it starts, and never again: a program that follows a
/// configuration [applies](crate::Reloader::apply) it again when something else is in them, so that it is told.
// None where one cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOnce(BTreeMap<PathBuf, Option<[u8; 32]>>);

impl ReadOnce {
    /// As they are now.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self(files(config).into_iter().map(|(_, file)| (file.to_owned(), content(file))).collect())
    }

    /// Which they are.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// The fields of a configuration whose files are the same, and have something else in them. That a field names another file
    /// is told by the field itself.
    pub(super) fn differ(&self, config: &Config) -> Vec<String> {
        let differs = |file: &Path| self.0.get(file).is_some_and(|before| *before != content(file));
        files(config).into_iter().filter(|(_, file)| differs(file)).map(|(field, _)| field).collect()
    }
}

/// All that is followed while the relay runs is left out: certificates, tokens, resources.
fn files(config: &Config) -> Vec<(String, &Path)> {
    let mut files = Vec::new();
    if let Some(aggregation) = &config.aggregation {
        files.push(("aggregation.rules".to_owned(), aggregation.rules.as_path()));
    }
    if let Some(Secrets::Encrypted(keys)) = config.state.as_ref().map(|state| &state.secrets) {
        files.push(("state.secrets.encrypted".to_owned(), keys.as_path()));
    }
    for origin in &config.origins {
        if let Some((_, Some(descriptors))) = origin.kind.files() {
            files.push((config.field_of(origin, "descriptors"), descriptors));
        }
    }
    files
}

fn content(file: &Path) -> Option<[u8; 32]> {
    text_file::bytes(file).ok().map(|bytes| Sha256::digest(bytes).into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_file_that_is_read_at_the_start_alone_is_named_if_it_says_something_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let names = ["rules", "keys", "types"];
        names.iter().for_each(|name| fs::write(path(name), "as it was").unwrap());
        let text = "origins: [{ name: a, server: 'a:1' }, { name: f, files: ., descriptors: types }]\ndefault_origin: a\n\
                    aggregation: rules\nstate: { path: state, secrets: { encrypted: keys } }\n";
        let config = Config::parse(path("relay.yaml"), text).unwrap();
        let before = ReadOnce::of(&config);
        assert_eq!(before.differ(&config), [""; 0]);
        let fields = ["aggregation.rules", "state.secrets.encrypted", "origins[1].descriptors"];
        for (name, field) in names.iter().zip(fields) {
            fs::write(path(name), "otherwise").unwrap();
            assert_eq!(before.differ(&config), [field], "{name}");
            fs::remove_file(path(name)).unwrap();
            assert_eq!(before.differ(&config), [field], "it is gone: {name}");
            fs::write(path(name), "as it was").unwrap();
            assert_eq!(before.differ(&config), [""; 0], "nothing is new in it: {name}");
        }
        fs::write(path("others"), "others").unwrap();
        let other = Config::parse(path("relay.yaml"), &text.replace("aggregation: rules", "aggregation: others"));
        assert_eq!(before.differ(&other.unwrap()), [""; 0], "the field is another, which is told of that");
    }
}
