//! What goes to the registry: the files of each package, which are committed as a list, and its README.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

use crate::workspace::Package;
use crate::{readme, workspace};

/// What cargo adds by itself, not the same in each of its versions.
const OF_CARGO: &[&str] = &[".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml.orig"];

/// Writes the committed lists anew.
pub(crate) fn write() -> Result<String, Box<dyn Error>> {
    let packages = workspace::published()?;
    fs::create_dir_all(lists())?;
    for package in &packages {
        fs::write(list_of(&package.name), files(&package.name)?)?;
    }
    Ok(format!("{} lists in {}", packages.len(), lists().display()))
}

/// Compares the committed lists with what cargo packages, and reads the READMEs as the registry does.
pub(crate) fn check() -> Result<String, Box<dyn Error>> {
    let packages = workspace::published()?;
    let mut problems = Vec::new();
    for package in &packages {
        let (found, list) = (files(&package.name)?, list_of(&package.name));
        let committed = fs::read_to_string(&list).unwrap_or_default();
        let changes = changes(&committed, &found);
        if !changes.is_empty() {
            problems.push(format!(
                "{} packages other files than {} lists:{changes}\n  `cargo xtask package` lists them anew",
                package.name,
                list.display()
            ));
        }
        problems.extend(lacking(package, &found).map(|what| format!("{} has no {what}", package.name)));
        let file = package.directory.join("README.md");
        let said = readme::problems(&fs::read_to_string(&file)?);
        problems.extend(said.iter().map(|problem| format!("{}:{problem}", file.display())));
    }
    if problems.is_empty() {
        Ok(format!("{} packages: files as listed, READMEs as the registry renders them", packages.len()))
    } else {
        Err(problems.join("\n").into())
    }
}

fn lists() -> PathBuf {
    workspace::root().join("ci/package")
}

fn list_of(package: &str) -> PathBuf {
    lists().join(format!("{package}.txt"))
}

/// One a line. What is not committed yet is there, too.
fn files(package: &str) -> Result<String, Box<dyn Error>> {
    let listed = workspace::cargo(&["package", "--list", "--allow-dirty", "--package", package])?;
    // Of another separator where cargo prints the system's own.
    let listed = listed.lines().map(|file| file.replace('\\', "/"));
    let files: BTreeSet<String> = listed.filter(|file| !OF_CARGO.contains(&file.as_str())).collect();
    Ok(files.into_iter().map(|file| file + "\n").collect())
}

/// What whoever looks for it, or has it, needs and it does not have.
fn lacking(package: &Package, files: &str) -> impl Iterator<Item = &'static str> {
    let has = [
        ("keywords", package.keywords > 0),
        ("categories", package.categories > 0),
        ("CHANGELOG.md", files.lines().any(|file| file == "CHANGELOG.md")),
    ];
    has.into_iter().filter(|(_, is_there)| !is_there).map(|(what, _)| what)
}

/// The lines that only one of two lists has, each on a line of its own.
fn changes(committed: &str, found: &str) -> String {
    let (committed, found): (BTreeSet<&str>, BTreeSet<&str>) = (committed.lines().collect(), found.lines().collect());
    let gone = committed.difference(&found).map(|file| format!("\n  - {file}"));
    gone.chain(found.difference(&committed).map(|file| format!("\n  + {file}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_what_it_is_found_by_and_says_what_changed() {
        let lacks = |keywords, categories, files| {
            let package = Package { name: "a".to_owned(), directory: PathBuf::new(), keywords, categories };
            lacking(&package, files).collect::<Vec<_>>()
        };
        assert!(lacks(1, 1, "CHANGELOG.md\nsrc/lib.rs\n").is_empty());
        assert_eq!(lacks(0, 1, "CHANGELOG.md\n"), ["keywords"]);
        assert_eq!(lacks(5, 0, "old/CHANGELOG.md\n"), ["categories", "CHANGELOG.md"]);
    }

    #[test]
    fn changes_are_what_only_one_list_has() {
        assert_eq!(changes("a\nb\n", "a\nb\n"), "");
        assert_eq!(changes("a\nb\n", "b\nc\n"), "\n  - a\n  + c");
        assert_eq!(changes("", "a\n"), "\n  + a");
    }
}
