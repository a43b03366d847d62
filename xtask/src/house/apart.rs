//! Folders that are to know nothing of each other, and the files that may know both.

use std::collections::{BTreeMap, BTreeSet};

use crate::house::imports::{Uses, home, uses};
use crate::house::source::{Source, bare};

/// Two folders of a package, and who may name both.
pub(crate) struct Apart {
    pub(crate) package: &'static str,
    /// The modules that name nothing of each other. What the crate has of them goes by the same names.
    pub(crate) folders: [&'static str; 2],
    /// The modules at the top, with all below them, that may see both. The crate itself may.
    pub(crate) joined_by: &'static [&'static str],
}

impl Apart {
    /// Where one sees the other, and where somebody sees both who may not.
    pub(crate) fn broken(&self, sources: &[Source]) -> Vec<String> {
        let mut found = between(sources, self.folders);
        found.extend(self.joined_elsewhere(sources));
        found
    }

    fn joined_elsewhere(&self, sources: &[Source]) -> impl Iterator<Item = String> {
        let may = |module: &[String]| {
            let allowed = self.folders.iter().chain(self.joined_by);
            module.first().is_none_or(|top| allowed.into_iter().any(|allowed| allowed == top))
        };
        let strangers = sources.iter().filter(move |source| !source.is_test() && !may(&source.module));
        let both = strangers.filter(|source| {
            let code = bare(source.code());
            let words: BTreeSet<&str> =
                code.split(|character: char| !character.is_alphanumeric() && character != '_').collect();
            self.folders.iter().all(|folder| words.contains(folder))
        });
        let [one, other] = self.folders;
        both.map(move |source| format!("{}: sees {one} and {other}", source.path))
    }
}

/// What one of two folders names of the other, each given by its module: they are to know nothing of each other.
fn between(sources: &[Source], folders: [&str; 2]) -> Vec<String> {
    let sources = || sources.iter().filter(|source| !source.is_test());
    let modules: BTreeMap<&[String], &str> = sources().map(|source| (&*source.module, &*source.path)).collect();
    let all: BTreeMap<&[String], Uses> = sources().map(|source| (&*source.module, uses(source, &modules))).collect();
    let is_in = |path: &[String], folder: &str| path.first().is_some_and(|first| first == folder);
    let [one, other] = folders;
    let mut found = BTreeSet::new();
    for (module, Uses { imports, paths }) in &all {
        let away = if is_in(module, one) {
            other
        } else if is_in(module, other) {
            one
        } else {
            continue;
        };
        for path in imports.iter().map(|(_, path)| path).chain(paths) {
            // Either as it is written, or where it comes from.
            if is_in(path, away) || is_in(home(path, &all, 0), away) {
                let file = modules.get(module).copied().unwrap_or_default();
                found.insert(format!("{file}: names {}, which it is to know nothing of", path.join("::")));
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_apart_is_found_to_be_named_however_it_is_written() {
        let planted = |text: &str| {
            let files =
                [("", "mod a;\nmod b;\npub use b::B;"), ("a", "mod c;"), ("a::c", text), ("b", "mod d;"), ("b::d", "")];
            let sources: Vec<_> = files.iter().map(|(module, text)| Source::new(module, module, text)).collect();
            [between(&sources, ["a", "b"]), between(&sources, ["b", "a"])]
        };
        let written = [
            ("use crate::b::B;", "b::B"),
            ("use crate::{b::{d::D}};", "b::d::D"),
            ("fn f() -> super::super::b::B {}", "b::B"),
            ("use crate::B;", "B"),
        ];
        for (text, path) in written {
            let found = vec![format!("a::c: names {path}, which it is to know nothing of")];
            assert_eq!(planted(text), [found.clone(), found], "{text}");
        }
        assert_eq!(
            planted("/// [`B`](crate::b::B)\nuse crate::a::A;\nuse crate::e::E;"),
            [const { Vec::<String>::new() }; 2]
        );
    }

    #[test]
    fn who_sees_both_is_found_unless_it_may() {
        let apart = Apart { package: "p", folders: ["a", "b"], joined_by: &["c"] };
        let sees = |module: &str, text: &str| apart.broken(&[Source::new(module, module, text)]);
        for text in
            ["fn f() { self.a.g(&self.b) }", "use crate::a::A;\nfn f() { self.b.g() }", "let Self { a, b, .. } = self;"]
        {
            assert_eq!(sees("d", text), ["d: sees a and b"], "{text}");
            assert_eq!(sees("d::c", text), ["d::c: sees a and b"], "{text}");
            for may in ["", "c", "c::d"] {
                assert!(sees(may, text).is_empty(), "{may}: {text}");
            }
        }
        assert!(sees("d", "fn f() { self.a.b_of() } // self.b").is_empty());
    }
}
