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
        // Most have none, and keys are long.
        if self.of.is_empty() && aliases.is_empty() {
            return;
        }
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

    /// What has to go, so that what is kept under a key has none but these aliases and nothing else has them: under which keys, and
    /// which.
    pub(crate) fn parted(&self, key: &str, last: &[String]) -> Vec<(String, String)> {
        let Some((before, _)) = key.split_once('\0') else { return Vec::new() };
        let is_last = |alias: &str| last.iter().any(|name| alias.strip_prefix(before) == Some(&format!("\0{name}")));
        let lost = self.of.get(key).into_iter().flatten().filter(|alias| !is_last(alias));
        lost.map(|alias| (key.to_owned(), alias.clone())).chain(self.taken(key, last)).collect()
    }

    /// The same, where what is kept under the key is written with these aliases.
    pub(crate) fn taken(&self, key: &str, aliases: &[String]) -> Vec<(String, String)> {
        let Some((before, _)) = key.split_once('\0').filter(|_| !self.owners.is_empty()) else { return Vec::new() };
        let aliases = aliases.iter().map(|alias| format!("{before}\0{alias}"));
        let taken = aliases.filter_map(|alias| Some((self.owner(&alias)?.clone(), alias)));
        taken.filter(|(owner, _)| owner != key).collect()
    }

    /// Whether what is kept under a key has an alias, be it that something else claimed that since.
    pub(crate) fn has(&self, key: &str, alias: &str) -> bool {
        self.of.get(key).is_some_and(|of| of.iter().any(|of| of == alias))
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

    #[test]
    fn what_something_has_or_had_at_last_goes_from_all_others_and_nothing_else_of_it_stays() {
        let mut aliases = KeptAliases::default();
        aliases.set("T\0a", &["x".into(), "y".into(), "ay".into()]);
        aliases.set("T\0b", &["z".into()]);
        aliases.set("U\0c", &["x".into(), "z".into()]);
        let pairs =
            |of: &[(&str, &str)]| of.iter().map(|(key, alias)| ((*key).into(), (*alias).into())).collect::<Vec<_>>();
        assert_eq!(
            aliases.parted("T\0a", &["y".into(), "z".into()]),
            pairs(&[("T\0a", "T\0x"), ("T\0a", "T\0ay"), ("T\0b", "T\0z"),])
        );
        assert_eq!(aliases.parted("T\0d", &["x".into()]), pairs(&[("T\0a", "T\0x")]));
        assert_eq!(aliases.taken("T\0a", &["x".into(), "z".into(), "new".into()]), pairs(&[("T\0b", "T\0z")]));
        assert!(aliases.has("T\0a", "T\0ay") && !aliases.has("T\0b", "T\0ay"));
    }
}
