//! The grammar: what Go compiles and what it says of the rest, by its documentation and its parser (1.19).

use regex::Regex;

use super::translate;

fn error(pattern: &str) -> String {
    translate(pattern).unwrap_err().to_string()
}

fn found(pattern: &str, text: &str) -> Option<String> {
    let translated = translate(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    let regex = Regex::new(&translated.pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    regex.find(text).map(|found| found.as_str().to_owned())
}

/// Patterns, a text, and what is found in it.
#[track_caller]
fn finds(cases: &[(&str, &str, Option<&str>)]) {
    for (pattern, text, expected) in cases {
        assert_eq!(found(pattern, text).as_deref(), *expected, "{pattern} in {text:?}");
    }
}

#[test]
fn what_go_does_not_compile_is_said_in_its_words() {
    for (pattern, expected) in [
        ("(", "missing closing ): `(`"),
        ("a(b", "missing closing ): `a(b`"),
        ("(?:a", "missing closing ): `(?:a`"),
        ("a)b", "unexpected ): `a)b`"),
        ("[a", "missing closing ]: `[a`"),
        ("x[", "missing closing ]: `[`"),
        ("x[]", "missing closing ]: `[]`"),
        ("[^]", "missing closing ]: `[^]`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a|*", "missing argument to repetition operator: `*`"),
        ("(+)", "missing argument to repetition operator: `+`"),
        ("(?i)?", "missing argument to repetition operator: `?`"),
        ("{2}", "missing argument to repetition operator: `{2}`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a*+b", "invalid nested repetition operator: `*+`"),
        ("a*??", "invalid nested repetition operator: `*??`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{1001}?", "invalid repeat count: `{1001}`"),
        ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(a{100}){11}", "invalid repeat count: `{11}`"),
        ("((a{10}){10}){11}?", "invalid repeat count: `{11}?`"),
        (r"\", "trailing backslash at end of expression: ``"),
        (r"a\", "trailing backslash at end of expression: ``"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"a\Z", r"invalid escape sequence: `\Z`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\é", r"invalid escape sequence: `\é`"),
        (r"\u0041", r"invalid escape sequence: `\u`"),
        (r"\x4g", r"invalid escape sequence: `\x4g`"),
        (r"\x", r"invalid escape sequence: `\x`"),
        (r"\x{}", r"invalid escape sequence: `\x{}`"),
        (r"\x{41", r"invalid escape sequence: `\x{41`"),
        (r"\x{110000}z", r"invalid escape sequence: `\x{110000`"),
        (r"[\b]", r"invalid escape sequence: `\b`"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        (r"\p{greek}", r"invalid character class range: `\p{greek}`"),
        (r"\p{Letter}", r"invalid character class range: `\p{Letter}`"),
        (r"\p{Grek}", r"invalid character class range: `\p{Grek}`"),
        (r"\p{L", r"invalid character class range: `\p{L`"),
        (r"\pX", r"invalid character class range: `\pX`"),
        (r"\p", r"invalid character class range: `\p`"),
        ("(?<n>a)", "invalid or unsupported Perl syntax: `(?<`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?u:a)", "invalid or unsupported Perl syntax: `(?u`"),
        ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?i-s-m)", "invalid or unsupported Perl syntax: `(?i-s-`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
        ("(?P<", "invalid or unsupported Perl syntax: `(?P`"),
        ("(?P<>a)", "invalid named capture: `(?P<>`"),
        ("(?P<a b>c)", "invalid named capture: `(?P<a b>`"),
        ("a(?P<n", "invalid named capture: `(?P<n`"),
    ] {
        assert_eq!(error(pattern), format!("error parsing regexp: {expected}"), "{pattern}");
    }
}

#[test]
fn classes_by_a_letter_are_ascii() {
    finds(&[
        (r"\d+", "٣4", Some("4")),
        (r"^\D$", "٣", Some("٣")),
        (r"\w+", "é_a1", Some("_a1")),
        (r"^\W$", "é", Some("é")),
        (r"\s", "\u{a0}", None),
        (r"\s", "\u{b}", None),
        (r"^\S$", "\u{2003}", Some("\u{2003}")),
        (r"[\d]", "٣", None),
        (r"^[^\d]$", "٣", Some("٣")),
        (r"^[\D]$", "٣", Some("٣")),
        (r"[[:space:]]", "\u{b}", Some("\u{b}")),
        (r"^[[:^alpha:]]$", "é", Some("é")),
        (r"[[:word:]]+", "-a_9é", Some("a_9")),
        // Folded they hold what folds into them.
        (r"(?i)^\w$", "ſ", Some("ſ")),
        (r"(?i)^[[:upper:]]$", "\u{212a}", Some("\u{212a}")),
        (r"(?i)^\W$", "ſ", None),
    ]);
}

#[test]
fn boundaries_of_words_are_ascii() {
    finds(&[
        (r"\bb", "éb", Some("b")),
        (r"\bb", "ab", None),
        (r"a\b", "aé", Some("a")),
        (r"\Bb", "ab", Some("b")),
        (r"é\Bé", "éé", Some("éé")),
        (r"é\B", "é", Some("é")),
        (r"\B", "", Some("")),
    ]);
}

#[test]
fn what_means_something_to_another_crate_is_text() {
    finds(&[
        ("a{,2}", "a{,2}", Some("a{,2}")),
        ("a{x}", "a{x}", Some("a{x}")),
        ("a{01}", "a{01}", Some("a{01}")),
        ("a{", "a{", Some("a{")),
        ("a{1", "a{1", Some("a{1")),
        ("[[]", "[", Some("[")),
        ("^[[a]$", "[", Some("[")),
        ("^[a&&b]+$", "&ab&", Some("&ab&")),
        ("^[+--]+$", "+,-", Some("+,-")),
        ("^[a~~b]+$", "~", Some("~")),
        ("^[]a]+$", "]a", Some("]a")),
        ("[^]a]", "]ab", Some("b")),
        ("^[a-]+$", "-a", Some("-a")),
        ("^[-a]+$", "-a", Some("-a")),
        (r"^[\d-z]+$", "1-z", Some("1-z")),
        (r"\<a\>", "<a>", Some("<a>")),
        (r"\_\-\/", "_-/", Some("_-/")),
        ("# a", "# a", Some("# a")),
        ("]}", "]}", Some("]}")),
        (r"\Qa.b*\E+", "a.b**", Some("a.b**")),
        (r"\Qa.(", "a.(", Some("a.(")),
        (r"\Q\E", "", Some("")),
        (r"a\Q\E*", "aa", Some("aa")),
        ("a(?i)*b", "aaB", Some("aaB")),
        ("^*-", "a-", Some("-")),
        ("$*", "a", Some("")),
        ("a{0}b", "b", Some("b")),
        ("(a{1000}){0}", "", Some("")),
        ("((a{1000}){0}){2}", "", Some("")),
        ("(?:a{500}){2}", "", None),
        ("(?)a", "a", Some("a")),
        ("a||b", "b", Some("")),
        ("()", "a", Some("")),
        ("(|a)*", "aa", Some("")),
        ("(?:a|(b))+c", "bac", Some("bac")),
    ]);
    assert_eq!(error("^[a--b]$"), "error parsing regexp: invalid character class range: `a--`");
}

#[test]
fn flags_hold_until_their_group_ends() {
    finds(&[
        ("(?i)é", "É", Some("É")),
        ("(?i)k", "\u{212a}", Some("\u{212a}")),
        ("(?i:a)b", "AB", None),
        ("((?i)a)b", "Ab", Some("Ab")),
        ("((?i)a)b", "AB", None),
        ("(?i)a(?-i)b", "Ab", Some("Ab")),
        ("(?i)[^k]", "K", None),
        (r"(?i)\x4B", "k", Some("k")),
        ("a.b", "a\nb", None),
        ("(?s)a.b", "a\nb", Some("a\nb")),
        ("^b", "a\nb", None),
        ("(?m)^b$", "a\nb\nc", Some("b")),
        ("a$", "a\n", None),
        (r"(?m)a\z", "a\nb", None),
        ("[^a]", "\n", Some("\n")),
        ("(?U)a+", "aa", Some("a")),
        ("(?U)a+?", "aa", Some("aa")),
        ("a+?", "aa", Some("a")),
        ("a{1,}?", "aa", Some("a")),
    ]);
}

#[test]
fn escapes_stand_for_characters() {
    finds(&[
        (r"\a\f\t\n\r\v", "\u{7}\u{c}\t\n\r\u{b}", Some("\u{7}\u{c}\t\n\r\u{b}")),
        (r"\101", "A", Some("A")),
        (r"\0", "\0", Some("\0")),
        (r"\08", "\u{0}8", Some("\u{0}8")),
        (r"\1011", "A1", Some("A1")),
        (r"\12", "\n", Some("\n")),
        (r"\x41\x{1F600}", "A😀", Some("A😀")),
        (r"[\x{D7FF}-\x{E000}]", "\u{e000}", Some("\u{e000}")),
        (r"[\x{D900}-\x{E001}]", "\u{e001}", Some("\u{e001}")),
        (r"[\x{D7FE}-\x{D900}]", "\u{d7ff}", Some("\u{d7ff}")),
        (r"\x{D800}", "\u{fffd}", None),
        (r"[\x{D800}]", "\u{fffd}", None),
        (r"[^\x{D800}]", "a", Some("a")),
    ]);
}

#[test]
fn categories_and_scripts_are_those_of_go() {
    finds(&[
        (r"\p{Greek}+", "aλόγος", Some("λόγος")),
        (r"\pL+", "1é2", Some("é")),
        (r"\PL+", "é12", Some("12")),
        (r"\p{^L}+", "é12", Some("12")),
        (r"\P{^L}+", "1é", Some("é")),
        (r"^\p{Nd}$", "٣", Some("٣")),
        (r"^[\p{Lu}\d]+$", "É1", Some("É1")),
        (r"^[^\P{Lu}]$", "É", Some("É")),
        (r"(?i)^\p{Lu}$", "é", Some("é")),
        (r"(?s)^\p{Any}$", "\n", Some("\n")),
        (r"\P{Any}", "a", None),
        (r"\p{Cs}", "a", None),
        (r"^\PC$", "\u{378}", Some("\u{378}")),
        (r"\pC", "\u{378}", None),
        (r"\p{C}", "\u{1}", Some("\u{1}")),
    ]);
}

#[test]
fn groups_have_numbers_and_names_of_their_own() {
    let translated = translate("(?P<a>x)(?:y)(z)(?P<a>w)(?P<1>v)").unwrap();
    assert_eq!(translated.names, ["", "a", "", "a", "1"]);
    assert!(Regex::new(&translated.pattern).is_ok_and(|regex| regex.captures_len() == translated.names.len()));
}

#[test]
fn all_scripts_are_known_to_the_crate() {
    for script in include_str!("scripts.txt").split_ascii_whitespace() {
        found(&format!(r"\p{{{script}}}"), "");
    }
}
