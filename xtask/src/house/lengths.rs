//! How long a file is, and each of its functions.

use crate::house::source::Source;

const FILE: usize = 400;
const FUNCTION: usize = 60;

/// What is too long: a file, or a function of it.
pub(crate) struct Long<'a> {
    /// The function, and the line it begins at; or else it is the file.
    function: Option<(&'a str, usize)>,
    lines: usize,
}

impl Long<'_> {
    pub(crate) fn said_of(&self, path: &str) -> String {
        let lines = self.lines;
        match self.function {
            None => format!("{path}: {lines} lines, {FILE} are enough"),
            Some((name, at)) => format!("{path}:{at}: fn {name} has {lines} lines, {FUNCTION} are enough"),
        }
    }
}

/// What of a file is too long. Tests are files like others; their functions are scenarios, and as long as these take.
pub(crate) fn of(source: &Source) -> Vec<Long<'_>> {
    let lines = source.text.lines().count();
    let mut found = Vec::new();
    if lines > FILE {
        found.push(Long { function: None, lines });
    }
    if !source.is_test() {
        let long = functions(source.code()).into_iter().filter(|(.., lines)| *lines > FUNCTION);
        found.extend(long.map(|(at, name, lines)| Long { function: Some((name, at)), lines }));
    }
    found
}

/// Line, name and length of each function with a body of its own lines. As rustfmt leaves it, that ends with the first
/// brace that is indented as its head.
fn functions(code: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (at, head) in lines.iter().enumerate() {
        let Some(name) = name_of(head) else { continue };
        let indent = head.len() - head.trim_start().len();
        let rest = lines.iter().skip(at);
        let end = rest.enumerate().find(|(more, line)| {
            let (own, text) = line.split_at_checked(indent).unwrap_or(("", ""));
            let ends = text == "}" || text.ends_with(';') && !text.starts_with(' ');
            own.trim().is_empty() && (ends || *more == 0 && text.ends_with('}'))
        });
        found.extend(end.map(|(more, _)| (at + 1, name, more + 1)));
    }
    found
}

/// The name of the function whose head begins with this line.
fn name_of(line: &str) -> Option<&str> {
    let mut words = line.trim_start();
    loop {
        if let Some(name) = words.strip_prefix("fn ") {
            return name.split(|character: char| !character.is_alphanumeric() && character != '_').next();
        }
        let (word, rest) = words.split_once(' ')?;
        if !["async", "const", "pub", "unsafe"].contains(&word) && !word.starts_with("pub(") {
            return None;
        }
        words = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_ends_with_its_own_brace() {
        let code = "fn a() {\n    if b {\n    }\n}\n\nimpl C {\n    pub(crate) async fn d(\n        e: F,\n    ) -> G {\n        \
                    h();\n    }\n\n    fn i() {}\n\n    fn j(&self);\n}\n";
        assert_eq!(functions(code), [(1, "a", 4), (7, "d", 5), (13, "i", 1), (15, "j", 1)]);
    }

    #[test]
    fn what_is_too_long_is_named() {
        let long = format!("fn a() {{\n{}}}\n", "    b();\n".repeat(59));
        let said = |module: &str, text: &str| -> Vec<String> {
            of(&Source::new("p.rs", module, text)).iter().map(|long| long.said_of("p.rs")).collect()
        };
        assert_eq!(said("p", &long), ["p.rs:1: fn a has 61 lines, 60 are enough"]);
        assert!(of(&Source::new("p.rs", "p::tests", &long)).is_empty());
        let file = "\n".repeat(401);
        assert_eq!(said("p::tests", &file), ["p.rs: 401 lines, 400 are enough"]);
    }
}
