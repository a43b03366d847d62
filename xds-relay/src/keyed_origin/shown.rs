//! What others wrote, for people.

/// How long a reason is kept, in characters: it may quote what somebody wrote.
const LONGEST: usize = 500;

/// As much of a reason as fits a line, without what a terminal would obey.
pub(crate) fn shown(why: &str) -> String {
    let mut shown = String::new();
    for c in why.chars().take(LONGEST) {
        match c.is_control() {
            true => shown.extend(c.escape_debug()),
            false => shown.push(c),
        }
    }
    if why.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_of_text_that_has_an_end() {
        assert_eq!(shown("a `b`: \u{1b}[2J\nü"), "a `b`: \\u{1b}[2J\\nü");
        assert_eq!(shown(&"ü".repeat(LONGEST)), "ü".repeat(LONGEST));
        assert_eq!(shown(&"ü".repeat(LONGEST + 1)), "ü".repeat(LONGEST) + "…");
    }
}
