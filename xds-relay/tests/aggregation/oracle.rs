//! Any bytes, as a file of rules and a request: what must be so whatever they are. The fuzz target has it from here.

use xds_relay::aggregation::{Key, KeyError, Reading, RequestJson, Rules, RulesError, Verdict};

/// The rules, and after a zero byte the request.
pub(crate) fn aggregation(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (rules, request) = text.split_once('\0').unwrap_or((&text, "{}"));
    let request: Option<RequestJson> = serde_json::from_str(request).ok();
    for reading in [Reading::Documented, Reading::LegacyAllMatches] {
        match Rules::parse("f", rules, reading) {
            Ok(parsed) => {
                let lines = 1..=lines(rules);
                assert!(parsed.warnings().iter().all(|warning| lines.contains(&warning.line)));
                if let Some(request) = &request {
                    let key = applied(&parsed, request, reading);
                    let again = Rules::parse("f", rules, reading).map(|parsed| applied(&parsed, request, reading));
                    assert!(again.is_ok_and(|again| again == key), "another key by the same rules");
                }
            }
            Err(error) => refused(&error, rules),
        }
    }
}

fn applied(rules: &Rules, request: &RequestJson, reading: Reading) -> Result<Key, KeyError> {
    let request = request.as_request();
    let (key, explanation) = (rules.key(&request), rules.explain(&request));
    assert_eq!(key, explanation.key);
    assert!(explanation.to_string().lines().count() > explanation.fragments.iter().map(Vec::len).sum::<usize>());
    let matched = |verdict: &Verdict| match verdict {
        Verdict::Matched(value) => Some(value.clone()),
        _ => None,
    };
    let mut pieces = Vec::new();
    for rules in &explanation.fragments {
        let of_fragment: Vec<_> = rules.iter().filter_map(|rule| matched(&rule.verdict)).collect();
        assert!(reading == Reading::LegacyAllMatches || of_fragment.len() < 2, "more than the first");
        pieces.extend(of_fragment);
    }
    if let Ok(key) = &key {
        assert_eq!(key.label(), pieces.join("_"));
    }
    key
}

/// An error says where, and what the file has there; no pattern that Go compiles is written anew wrongly.
fn refused(error: &RulesError, rules: &str) {
    let RulesError::Invalid { line, column, problem, .. } = error else { panic!("{error}: no file was read") };
    assert!((1..=lines(rules)).contains(line) && *column >= 1, "{error}");
    assert!(!problem.is_empty());
    if let Some((_, why)) = problem.split_once("not supported, although RE2 has it: ") {
        assert!(why.starts_with("compiled it takes more") || why.starts_with("it nests deeper"), "{problem}");
    }
}

/// As YAML counts them, and one more, which the end is in for its parser.
fn lines(text: &str) -> usize {
    text.matches(['\n', '\r']).count() + 2
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    #[test]
    fn aggregation_corpus() {
        let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let corpus = fs::read_dir(fuzz.join("corpus/aggregation")).into_iter().flatten().flatten();
        let replayed = corpus.map(|entry| super::aggregation(&fs::read(entry.path()).unwrap())).count();
        assert!(replayed > 0 || !fuzz.join("fuzz_targets").exists(), "nothing to replay");
    }
}
