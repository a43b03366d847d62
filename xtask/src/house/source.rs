//! The files of a package, as far as they are code.

use std::error::Error;
use std::path::Path;

/// A source file.
pub(crate) struct Source {
    /// From the root of the workspace.
    pub(crate) path: String,
    /// Its module: one segment for each `mod` on the way from the crate.
    pub(crate) module: Vec<String>,
    /// All of it.
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &str, module: &str, text: &str) -> Self {
        let module = module.split("::").filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
        Self { path: path.into(), module, text: text.into() }
    }

    /// The sources of a package and of its tests, but for those that a program wrote.
    pub(crate) fn read_all(root: &Path, package: &str) -> Result<Vec<Self>, Box<dyn Error>> {
        let mut found = Vec::new();
        read(&root.join(package).join("src"), &format!("{package}/src"), "", &mut found)?;
        let tests = root.join(package).join("tests");
        if tests.is_dir() {
            read(&tests, &format!("{package}/tests"), "tests", &mut found)?;
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// Whether all of it is tests.
    pub(crate) fn is_test(&self) -> bool {
        self.module.iter().any(|segment| segment == "tests")
    }

    /// What is no test: all before the module at its end.
    pub(crate) fn code(&self) -> &str {
        self.text.split_once("\nmod tests {").map_or(&*self.text, |(code, _)| code)
    }
}

fn read(folder: &Path, path: &str, module: &str, found: &mut Vec<Source>) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let at = format!("{path}/{name}");
        if entry.file_type()?.is_dir() {
            if name != "generated" {
                read(&entry.path(), &at, &format!("{module}::{name}"), found)?;
            }
        } else if let Some(stem) = name.strip_suffix(".rs") {
            let module = if stem == "lib" { String::new() } else { format!("{module}::{stem}") };
            found.push(Source::new(&at, &module, &std::fs::read_to_string(entry.path())?));
        }
    }
    Ok(())
}

/// The same text with comments, and what stands in quotes, left out.
pub(crate) fn bare(code: &str) -> String {
    let mut bare = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(next) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.find('\n').map_or("", |end| comment.split_at(end).1);
        } else if let Some(text) = rest.strip_prefix('"') {
            rest = after_text(text);
        } else if let Some(after) = after_character(rest) {
            rest = after;
        } else {
            bare.push(next);
            rest = rest.split_at(next.len_utf8()).1;
        }
    }
    bare
}

/// What follows a character in quotes, if it is one and no lifetime: `'"'` begins no text.
fn after_character(code: &str) -> Option<&str> {
    let quoted = code.strip_prefix('\'')?;
    let mut characters = quoted.chars();
    let end = match characters.next()? {
        // What follows the backslash may be a quote itself.
        '\\' => 1 + characters.next()?.len_utf8() + characters.as_str().find('\'')?,
        character => character.len_utf8(),
    };
    quoted.get(end..)?.strip_prefix('\'')
}

/// What follows the end of a text.
fn after_text(text: &str) -> &str {
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => _ = characters.next(),
            '"' => return text.split_at(at + 1).1,
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_no_code() {
        assert_eq!(bare("a(\"b \\\" // c\") // d\n/// e\nf"), "a() \n\nf");
    }

    #[test]
    fn a_quote_in_quotes_begins_no_text() {
        assert_eq!(bare("a('\"') b // c"), "a() b ");
        assert_eq!(bare(r#"a('\'', '\\', '\u{22}', b'"') "c" d"#), "a(, , , b)  d");
        assert_eq!(bare("fn f<'a>(b: &'a str, c: &'static str) { '/' }"), "fn f<'a>(b: &'a str, c: &'static str) {  }");
    }

    #[test]
    fn the_tests_of_a_package_are_read_with_it() {
        let sources = Source::read_all(&crate::workspace::root(), "xds-transport").unwrap();
        let mut tests = sources.iter().filter(|source| source.path.starts_with("xds-transport/tests/")).peekable();
        assert!(tests.peek().is_some() && tests.all(Source::is_test));
    }

    #[test]
    fn tests_are_no_code() {
        for cfg in ["#[cfg(test)]", "#[cfg(all(test, feature = \"testing\"))]"] {
            let code = format!("fn f() {{}}\n\n{cfg}");
            let source = Source::new("p", "a::b", &format!("{code}\nmod tests {{\n    fn g() {{}}\n}}\n"));
            assert_eq!((source.code(), source.is_test()), (&*code, false));
        }
        assert!(Source::new("p", "a::tests::b", "").is_test());
    }
}
