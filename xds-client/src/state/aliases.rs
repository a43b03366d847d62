//! The keys that what is kept may be asked for by, beside its own.

use std::collections::HashMap;

/// Of each such key what has it; there is nothing of what has none.
#[derive(Debug, Default)]
pub(crate) struct KeptAliases {
    owners: HashMap<String, String>,
    of: HashMap<String, Vec<String>>,
}

impl KeptAliases {
    /// What is kept under a key has these aliases from now on.
    pub(crate) fn set(&mut self, key: &str, aliases: &[String]) {
        for alias in self.of.remove(key).unwrap_or_default() {
            if self.owners.get(&alias).is_some_and(|owner| owner == key) {
                self.owners.remove(&alias);
            }
        }
        let Some((before, _)) = key.split_once('\0').filter(|_| !aliases.is_empty()) else { return };
        let keys: Vec<_> = aliases.iter().map(|alias| format!("{before}\0{alias}")).collect();
        self.owners.extend(keys.iter().map(|alias| (alias.clone(), key.to_owned())));
        self.of.insert(key.to_owned(), keys);
    }

    /// Under which key something is kept that has this one as another.
    pub(crate) fn owner(&self, alias: &str) -> Option<&String> {
        self.owners.get(alias)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_that_of_who_claimed_it_last_for_as_long_as_he_does() {
        let mut aliases = KeptAliases::default();
        aliases.set("T\0a", &["x".into(), "y".into()]);
        aliases.set("T\0b", &["y".into()]);
        aliases.set("U\0c", &["x".into()]);
        let owners = |aliases: &KeptAliases| ["T\0x", "T\0y", "U\0x", "U\0y"].map(|key| aliases.owner(key).cloned());
        let some = |key: &str| Some(key.to_owned());
        assert_eq!(owners(&aliases), [some("T\0a"), some("T\0b"), some("U\0c"), None]);
        aliases.set("T\0a", &[]);
        aliases.set("U\0c", &["y".into()]);
        assert_eq!(owners(&aliases), [None, some("T\0b"), None, some("U\0c")]);
        aliases.set("T\0b", &[]);
        aliases.set("U\0c", &[]);
        assert!(aliases.owners.is_empty() && aliases.of.is_empty());
    }
}
