//! Files that need each other: then there is one subject in two files, or two in one.

use std::collections::{BTreeMap, BTreeSet};

use crate::house::source::{Source, bare};

/// A path, from the crate.
pub(super) type Path = Vec<String>;

/// What one file says of others.
#[derive(Default)]
pub(super) struct Uses {
    /// What each of its `use` brings in, and under which name.
    pub(super) imports: Vec<(String, Path)>,
    /// What it names elsewhere.
    pub(super) paths: Vec<Path>,
}

/// The circles among files, each with its members. A file that only hands on what others have is none of them: what it
/// hands on counts as taken from where it is.
pub(crate) fn circles(sources: &[Source]) -> Vec<String> {
    let sources = || sources.iter().filter(|source| !source.is_test());
    let modules: BTreeMap<&[String], &str> = sources().map(|source| (&*source.module, &*source.path)).collect();
    let uses: BTreeMap<&[String], Uses> = sources().map(|source| (&*source.module, uses(source, &modules))).collect();
    let needs: BTreeMap<&[String], BTreeSet<&[String]>> = uses
        .iter()
        .map(|(module, Uses { imports, paths })| {
            let paths = imports.iter().map(|(_, path)| path).chain(paths);
            let found = paths.map(|path| home(path, &uses, 0)).filter(|home| home != module);
            (*module, found.collect())
        })
        .collect();
    let all: BTreeMap<&[String], BTreeSet<&[String]>> =
        needs.keys().map(|module| (*module, reach(module, &needs))).collect();
    let has = |one: &[String], other: &[String]| all.get(one).is_some_and(|reached| reached.contains(other));
    let mut found = BTreeSet::new();
    for (module, reached) in &all {
        let circle: BTreeSet<&str> =
            reached.iter().filter(|other| has(other, module)).filter_map(|other| modules.get(other).copied()).collect();
        if !circle.is_empty() {
            found.insert(circle.into_iter().collect::<Vec<_>>().join(", "));
        }
    }
    found.into_iter().map(|circle| format!("files that need each other: {circle}")).collect()
}

/// All that a module needs, and what that needs.
fn reach<'a>(module: &'a [String], needs: &BTreeMap<&'a [String], BTreeSet<&'a [String]>>) -> BTreeSet<&'a [String]> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![module]);
    while let Some(module) = next.pop() {
        for needed in needs.get(module).into_iter().flatten() {
            if reached.insert(*needed) {
                next.push(needed);
            }
        }
    }
    reached
}

/// The file that a path leads to: by way of those that hand it on.
pub(super) fn home<'a>(path: &[String], uses: &'a BTreeMap<&'a [String], Uses>, steps: usize) -> &'a [String] {
    let length =
        (0..=path.len()).rev().find(|length| path.get(..*length).is_some_and(|module| uses.contains_key(module)));
    let (module, rest) = path.split_at(length.unwrap_or_default());
    let Some((module, own)) = uses.get_key_value(module) else { return &[] };
    let [item, rest @ ..] = rest else { return module };
    match own.imports.iter().find(|(name, _)| name == item) {
        Some((_, from)) if steps < 8 => home(&[from, rest].concat(), uses, steps + 1),
        _ => module,
    }
}

pub(super) fn uses(source: &Source, modules: &BTreeMap<&[String], &str>) -> Uses {
    let code = bare(source.code());
    let mut uses = Uses::default();
    let mut others = String::new();
    for statement in code.split_inclusive(';') {
        let begin = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
        let import = statement.lines().position(|line| begin.iter().any(|begin| line.trim_start().starts_with(begin)));
        let Some(import) = import else {
            others.push_str(statement);
            continue;
        };
        others.extend(statement.lines().take(import).flat_map(|line| [line, "\n"]));
        let import = statement.lines().skip(import).collect::<Vec<_>>().join(" ");
        let import = import.split_once("use ").map_or("", |(_, import)| import).trim_end_matches(';');
        for (name, path) in expand(import) {
            uses.imports.extend(absolute(&path, &source.module, modules).map(|path| (name, path)));
        }
    }
    let words = others.split(|character: char| !character.is_alphanumeric() && character != '_' && character != ':');
    let begins = |word: &&str| ["crate::", "super::", "self::"].iter().any(|begin| word.starts_with(begin));
    let paths = words.filter(begins).filter_map(|word| absolute(word, &source.module, modules));
    uses.paths = paths.collect();
    uses
}

/// What a tree of `use` names: under which name, and the path.
fn expand(tree: &str) -> Vec<(String, String)> {
    let tree = tree.trim();
    let Some((before, branches)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree.rsplit("::").next().unwrap_or_default()));
        return vec![(name.trim().to_owned(), path.trim().trim_end_matches("::self").to_owned())];
    };
    let branches = branches.rsplit_once('}').map_or(branches, |(branches, _)| branches);
    let (mut depth, mut branch, mut found) = (0_u32, String::new(), Vec::new());
    for character in branches.chars().chain([',']) {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if character == ',' && depth == 0 {
            let whole = std::mem::take(&mut branch);
            if !whole.trim().is_empty() {
                found.extend(expand(&format!("{}{}", before.trim(), whole.trim())));
            }
        } else {
            branch.push(character);
        }
    }
    found
}

/// A path from the crate, if it stays within that.
fn absolute(path: &str, module: &[String], modules: &BTreeMap<&[String], &str>) -> Option<Path> {
    let mut segments = path.split("::").filter(|segment| !segment.is_empty()).peekable();
    let mut base = module.to_vec();
    match segments.peek().copied()? {
        "crate" => base.clear(),
        "self" => {}
        "super" => {
            while segments.next_if_eq(&"super").is_some() {
                base.pop();
            }
            base.extend(segments.map(str::to_owned));
            return Some(base);
        }
        child => {
            base.push(child.to_owned());
            modules.get(&*base)?;
            base.pop();
            base.extend(segments.map(str::to_owned));
            return Some(base);
        }
    }
    segments.next();
    base.extend(segments.map(str::to_owned));
    Some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> = files.iter().map(|(module, text)| Source::new(module, module, text)).collect();
        circles(&sources)
    }

    #[test]
    fn a_circle_is_found_however_it_is_written() {
        for back in ["use crate::a::A;", "use super::a::{A, B};", "use crate::{a::A};", "fn f() -> super::a::A {}"] {
            let found = found(&[("a", "use crate::b::B;\n"), ("b", &format!("{back}\n"))]);
            assert_eq!(found, ["files that need each other: a, b"], "{back}");
        }
        let three = [("a", "use crate::b::B;"), ("b", "use crate::c::C;"), ("c", "use crate::a::A;")];
        assert_eq!(found(&three), ["files that need each other: a, b, c"]);
        let parent = [("a", "mod b;\nuse self::b::B;"), ("a::b", "use super::A;")];
        assert_eq!(found(&parent), ["files that need each other: a, a::b"]);
        assert_eq!(found(&[("a", "mod b;\nuse b::B;"), ("a::b", "use super::A;")]), found(&parent));
    }

    #[test]
    fn what_is_handed_on_comes_from_where_it_is() {
        // A crate, or a module, that hands on what its files have is no part of a circle.
        let facade = [("", "mod a;\nmod b;\npub use a::A;\npub use b::B;"), ("a", "struct A;"), ("b", "use crate::A;")];
        assert!(found(&facade).is_empty());
        let circle =
            [("", "mod a;\nmod b;\npub use a::A as C;\npub use b::B;"), ("a", "use crate::B;"), ("b", "use crate::C;")];
        assert_eq!(found(&circle), ["files that need each other: a, b"]);
    }

    #[test]
    fn words_and_tests_need_nobody() {
        let tests = "/// [`A`](crate::a::A)\nfn f() { \"crate::a::A\" }\n\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
        assert!(found(&[("a", "use crate::b::B;"), ("b", tests)]).is_empty());
        assert!(found(&[("a", "use std::fmt;\nuse bytes::Bytes;"), ("b", "use crate::a::A;")]).is_empty());
    }
}
