//! What a configuration takes from the environment: `${NAME}` and `${NAME:-default}` within values.
//!
//! It is put into values that are read already: whatever it is, it is text within one of them.

use std::env::VarError;

use crate::yaml::{Content, Error, Node, Position};

/// A value with something of the environment in it.
pub(crate) struct Filled {
    pub(crate) position: Position,
    pub(crate) written: String,
    pub(crate) value: String,
}

/// How many errors are told. Values are filled in no further then.
const MOST: usize = 100;
const EXPECTED: &str = "expected ${NAME} or ${NAME:-default}; $${ stands for ${ itself";

/// Fills in all values, and says which it were. What is wrong: a variable is not set and has no default, or something begins
/// like one and is none.
pub(crate) fn fill_in(
    node: &mut Node,
    variable: &dyn Fn(&str) -> Result<String, VarError>,
    filled: &mut Vec<Filled>,
) -> Vec<Error> {
    let position = node.position;
    match &mut node.content {
        Content::Plain(text) | Content::Text(text) if text.contains("${") => match expanded(text, variable) {
            Ok(value) => {
                filled.push(Filled { position, written: std::mem::replace(text, value.clone()), value });
                Vec::new()
            }
            Err(problem) => vec![Error::new(position, problem)],
        },
        Content::Plain(_) | Content::Text(_) => Vec::new(),
        Content::Sequence(items) => {
            let errors = items.iter_mut().enumerate().flat_map(|(index, item)| {
                fill_in(item, variable, filled).into_iter().map(move |error| error.under_index(index))
            });
            errors.take(MOST).collect()
        }
        Content::Mapping(entries) => {
            let errors = entries.iter_mut().flat_map(|(key, value)| {
                fill_in(value, variable, filled).into_iter().map(|error| error.under_key(&key.text))
            });
            errors.take(MOST).collect()
        }
    }
}

fn expanded(text: &str, variable: &dyn Fn(&str) -> Result<String, VarError>) -> Result<String, String> {
    let (mut value, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            value.extend([before, "${"]);
            rest = after;
            continue;
        }
        value.push_str(before);
        let (inside, after) = after.split_once('}').ok_or_else(|| format!("`${{` is never closed; {EXPECTED}"))?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            return Err(format!("`${{{inside}}}`: {EXPECTED}"));
        }
        // As shells have it: what is empty has the default, too.
        let found = match variable(name) {
            Ok(found) => Some(found),
            Err(VarError::NotPresent) => None,
            Err(VarError::NotUnicode(_)) => {
                return Err(format!("`${{{name}}}`: what the environment has as {name} is not UTF-8"));
            }
        };
        match (found.filter(|found| default.is_none() || !found.is_empty()), default) {
            (Some(found), _) => value.push_str(&found),
            (None, Some(default)) => value.push_str(default),
            (None, None) => {
                return Err(format!("`${{{name}}}`: the environment has no {name}, and there is no default"));
            }
        }
        rest = after;
    }
    value.push_str(rest);
    Ok(value)
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// What is wrong with a value, in the words of the file: what the environment has may be nobody's business.
pub(super) fn hide(mut error: Error, filled: &[Filled]) -> Error {
    for Filled { written, value, .. } in filled.iter().filter(|filled| error.position == Some(filled.position)) {
        let quoted = format!("`{value}`");
        if error.reason.contains(&quoted) {
            error.reason = error.reason.replace(&quoted, &format!("`{written}`"));
        } else if !value.is_empty() {
            error.reason = error.reason.replace(value, written);
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use std::env::VarError;

    use crate::Config;

    fn variable(name: &str) -> Result<String, VarError> {
        if name == "BYTES" {
            return Err(VarError::NotUnicode("?".into()));
        }
        let known =
            [("HOST", "up.example"), ("PORT", "18010"), ("EMPTY", ""), ("SECRET", "hunter2"), ("YAML", "x, y: [")];
        known.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()).ok_or(VarError::NotPresent)
    }

    fn config(text: &str) -> Result<Config, String> {
        Config::parse_in(&variable, "relay.yaml".as_ref(), text).map_err(|error| error.to_string())
    }

    #[test]
    fn values_take_what_the_environment_has() {
        let text = "
origins:
- name: ${NAME:-a}
  server: ${HOST}:${PORT}
  authorities: ['$${HOST}$', '${EMPTY:-b}${EMPTY}', '$1']
limits:
  streams: ${PORT}
node:
  id: ${YAML}
  metadata:
    port: ${PORT}
    text: '${PORT}'
";
        let config = config(text).unwrap();
        let origin = &config.origins[0];
        assert_eq!(
            (origin.name.as_str(), origin.authorities.as_slice()),
            ("a", &["${HOST}$", "b", "$1"].map(str::to_owned)[..])
        );
        assert!(serde_json::to_string(&config).unwrap().contains("up.example:18010"));
        assert_eq!((config.limits.streams, config.node.id.as_str()), (18010, "x, y: ["));
        assert_eq!(serde_json::to_string(&config.node.metadata).unwrap(), r#"{"port":18010,"text":"18010"}"#);
    }

    #[test]
    fn what_is_not_there_is_an_error_with_its_place() {
        for (value, problem) in [
            ("a:${NONE}", "`${NONE}`: the environment has no NONE, and there is no default"),
            ("${BYTES:-a}", "`${BYTES}`: what the environment has as BYTES is not UTF-8"),
            ("${NONE", "`${` is never closed; expected ${NAME} or ${NAME:-default}"),
            ("${}", "`${}`: expected ${NAME} or "),
            ("${A-b}", "`${A-b}`: expected ${NAME} or "),
            ("${1}", "`${1}`: expected ${NAME} or "),
            ("${A B:-c}", "`${A B:-c}`: expected ${NAME} or "),
        ] {
            let error = config(&format!("origins:\n- name: a\n  server: '{value}'\n")).unwrap_err();
            let expected = format!("relay.yaml:3:11: origins[0].server: {problem}");
            assert!(error.starts_with(&expected), "{error}");
        }
        let error = config("origins: [{ name: a, server: ${HOST:-a}:1 }]").unwrap_err();
        assert!(error.contains("; within { } and [ ] a value with ${ in it is written in quotes"), "{error}");
        let error = config("origins: [{ name: a, server: '${HOST:-a}:1' } b ]").unwrap_err();
        assert!(error.contains("quotes"), "the line may be that of another value: {error}");
        assert!(!config("origins: [{ name: a, server: a:1 } b ]").unwrap_err().contains("quotes"));
        // A key is what it is.
        let error = config("${HOST}: 1").unwrap_err();
        assert!(error.starts_with("relay.yaml:1:1: ${HOST}: unknown field `${HOST}`"), "{error}");
    }

    #[test]
    fn an_error_does_not_say_what_the_environment_has() {
        for (text, told) in [
            ("server: '${SECRET}'", "`${SECRET}`: expected"),
            ("server: 'x${SECRET}'", "`x${SECRET}`: expected"),
            ("files: '${SECRET}'", "no directory ${SECRET}"),
            ("server: 'a:1', keepalive: '${SECRET}'", "`${SECRET}`: expected a duration"),
        ] {
            let error = config(&format!("origins: [{{ name: a, {text} }}]")).unwrap_err();
            assert!(error.contains(told) && !error.contains("hunter"), "{error}");
        }
    }
}
