//! A README as a registry renders it: plain Markdown, away from the repository and without rustdoc.

use std::collections::BTreeSet;

/// What rustdoc or a repository would render but a registry does not, each with its line.
pub(crate) fn problems(text: &str) -> Vec<String> {
    let (prose, mut problems) = prose_of(text);
    let anchors: BTreeSet<String> = prose.lines().filter(|line| line.starts_with('#')).map(anchor).collect();
    let prose = without_code(&prose);
    let links = links(&prose);
    let defined: BTreeSet<String> =
        links.iter().filter(|link| matches!(link.kind, Kind::Definition(_))).map(|link| label(link.text)).collect();
    for Link { line, text, kind } in links {
        match kind {
            Kind::Inline(target) | Kind::Definition(target) => {
                let resolves = match target.strip_prefix('#') {
                    Some(fragment) => anchors.contains(fragment),
                    None => ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)),
                };
                if !resolves {
                    problems.push((line, format!("a link that leads nowhere from outside: {target}")));
                }
            }
            Kind::Reference(to) if !defined.contains(&label(to)) => {
                problems.push((line, format!("a link that only rustdoc resolves: [{text}]")));
            }
            Kind::Reference(_) => {}
        }
    }
    problems.sort();
    problems.into_iter().map(|(line, problem)| format!("{line}: {problem}")).collect()
}

/// A text without its blocks of code, which leave empty lines, and the lines in them that only rustdoc hides.
fn prose_of(text: &str) -> (String, Vec<(usize, String)>) {
    let (mut prose, mut hidden) = (String::new(), Vec::new());
    // What a block says of itself, while in one.
    let mut block: Option<&str> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.trim();
        match (code.strip_prefix("```"), block) {
            (Some(info), None) => block = Some(info),
            (Some(_), Some(_)) => block = None,
            (None, Some(info)) if is_rust(info) && (code == "#" || code.starts_with("# ")) => {
                hidden.push((number, format!("a line that only rustdoc hides: {code}")));
            }
            (None, Some(_)) => {}
            (None, None) => prose.push_str(line),
        }
        prose.push('\n');
    }
    (prose, hidden)
}

/// Whether rustdoc takes a block for Rust: one that says nothing else.
fn is_rust(info: &str) -> bool {
    let first = info.split([',', ' ']).next().unwrap_or_default();
    first.is_empty() || ["rust", "no_run", "ignore", "should_panic", "compile_fail"].contains(&first)
}

/// The same text with nothing between marks of code that looks like a link.
fn without_code(prose: &str) -> String {
    let mut out = String::new();
    let mut rest = prose;
    while let Some(start) = rest.find('`') {
        let (before, from) = rest.split_at(start);
        let marks = from.len() - from.trim_start_matches('`').len();
        let (mark, code) = from.split_at(marks);
        let Some(end) = code.find(mark) else { break };
        let (code, after) = code.split_at(end);
        out.extend([before, mark]);
        out.extend(code.chars().map(|char| if "[]()".contains(char) { ' ' } else { char }));
        out.push_str(mark);
        rest = after.get(marks..).unwrap_or_default();
    }
    out + rest
}

struct Link<'a> {
    line: usize,
    text: &'a str,
    kind: Kind<'a>,
}

enum Kind<'a> {
    /// `[text](target)`
    Inline(&'a str),
    /// `[text]: target`
    Definition(&'a str),
    /// `[text][to]`, or `[to]`
    Reference(&'a str),
}

/// All that is between brackets, also inside of another.
fn links(prose: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (at, _) in prose.match_indices('[') {
        let (before, from) = prose.split_at(at);
        let Some((text, after)) = enclosed(from, '[', ']') else { continue };
        let is_task = before.ends_with("- ") && [" ", "x"].contains(&text);
        // The rest of another, or an escape.
        if before.ends_with([']', '\\']) || text.is_empty() || is_task {
            continue;
        }
        let until_space = |text: &str| text.find(char::is_whitespace).unwrap_or(text.len());
        let kind = match enclosed(after, '(', ')') {
            Some((target, _)) => Kind::Inline(target.get(..until_space(target)).unwrap_or_default()),
            None => match (after.strip_prefix(':'), before.is_empty() || before.ends_with('\n')) {
                (Some(target), true) => {
                    let target = target.trim_start();
                    Kind::Definition(target.get(..until_space(target)).unwrap_or_default())
                }
                _ => match enclosed(after, '[', ']') {
                    Some((to, _)) if !to.is_empty() => Kind::Reference(to),
                    _ => Kind::Reference(text),
                },
            },
        };
        links.push(Link { line: 1 + before.matches('\n').count(), text, kind });
    }
    links
}

/// What is between the first character, which must be `open`, and the `close` that belongs to it; and what follows.
fn enclosed(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, char) in text.char_indices() {
        if char == open {
            depth += 1;
        } else if char == close {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return text.get(1..at).zip(text.get(at + 1..)).filter(|_| char == close && at > 0);
        }
    }
    None
}

/// What a definition and a reference to it have in common.
fn label(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_registry_renders_is_good() {
        let text = "\
# A `crate`: of *use*

[![badge](https://a/b.svg)](https://a/b), [one], [two
words][one] and [below](#a-crate-of-use \"title\"). `origins[].files` and `[a](b)` are code, \\[this] is text.

- [ ] a task

```yaml
# a comment
```

```rust
#[derive(Debug)]
struct A([u8; 4]);
```

[one]: https://a
";
        assert_eq!(problems(text), [""; 0]);
    }

    #[test]
    fn what_it_does_not_is_named_with_its_line() {
        let text = "\
[Foo](crate::Foo), [`Bar`] and [Baz](Baz::new)
[source](src/lib.rs#L1), [gone](#gone), [x][Foo]

```
# use a::B;
#
```
[d]: ../x
";
        let expected = [
            "1: a link that leads nowhere from outside: Baz::new",
            "1: a link that leads nowhere from outside: crate::Foo",
            "1: a link that only rustdoc resolves: [`Bar`]",
            "2: a link that leads nowhere from outside: #gone",
            "2: a link that leads nowhere from outside: src/lib.rs#L1",
            "2: a link that only rustdoc resolves: [x]",
            "5: a line that only rustdoc hides: # use a::B;",
            "6: a line that only rustdoc hides: #",
            "8: a link that leads nowhere from outside: ../x",
        ];
        assert_eq!(problems(text), expected);
    }
}
