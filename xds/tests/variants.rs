//! `xds variants lint` and `select`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, unreachable_pub, reason = "a test fails by panicking")]

mod cli;

use std::io::Write;

use cli::{Run, xds};
use tempfile::NamedTempFile;

const FINAL: &str = "\
form: final
variants:
- name: stable
  constraints: env=prod and version=v1
- name: canary
  constraints: env=prod and not version=v1 and exists(version)
- name: default
  constraints:
    and_constraints:
      constraints:
      - constraint: {key: env, value: prod}
      - not_constraints: {constraint: {key: version, exists: {}}}
";

const DRAFT: &str = "\
form: draft
variants:
- {name: s3, parameters: {env: prod, shard: 3}}
- {name: s5, parameters: {env: prod, shard: \"5\"}}
- {name: t5, parameters: {env: test, shard: 5}}
";

/// `xds variants <command> FILE …`; `FILE` in the output stands for the file.
fn variants(command: &str, text: &str, args: &[&str]) -> Run {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    let run = xds(&[&["variants", command, path], args].concat(), "");
    Run { err: run.err.replace(path, "FILE"), ..run }
}

fn final_file(variants: &[(&str, &str)]) -> String {
    let variant = |(name, constraints): &(&str, &str)| format!("- name: {name}\n  constraints: {constraints}\n");
    format!("form: final\nvariants:\n{}", variants.iter().map(variant).collect::<String>())
}

#[test]
fn a_set_without_fault_is_clean() {
    for text in [FINAL, DRAFT] {
        let run = variants("lint", text, &["--values", "env=prod", "--sent", "env,version,shard"]);
        assert_eq!((run.code, &*run.out, &*run.err), (0, "", ""));
    }
}

#[test]
fn both_variants_that_overlap_are_named() {
    let run = variants("lint", &final_file(&[("a", "env=prod or env=qa"), ("b", "env=qa"), ("c", "env=test")]), &[]);
    assert_eq!((run.code, &*run.out), (1, "overlap: \"a\" and \"b\" both match one subscriber, such as {env=qa}\n"));
    let draft = "form: draft\nvariants: [{name: a, parameters: {k: 1}}, {name: b, parameters: {k: '1'}}]";
    let run = variants("lint", draft, &[]);
    assert_eq!((run.code, &*run.out), (1, "overlap: \"a\" and \"b\" both match one subscriber\n"));
}

#[test]
fn different_keys_uncovered_values_and_unsent_keys_are_reported() {
    let run = variants("lint", &final_file(&[("a", "env=prod"), ("b", "env=test and zone=x")]), &[]);
    assert_eq!((run.code, &*run.out), (1, "keys: variants mention different keys: \"a\" env; \"b\" env, zone\n"));
    let run = variants("lint", FINAL, &["--values", "env=prod,test,version=v1"]);
    assert_eq!((run.code, &*run.out), (1, "uncovered: no variant is for env=test\n"));
    let run = variants("lint", FINAL, &["--sent", "env"]);
    let expected = "unsent: \"canary\", \"stable\" depend on version, which nobody sends yet\n";
    assert_eq!((run.code, &*run.out), (1, expected));
    assert_eq!(variants("lint", FINAL, &["--values", "prod"]).code, 2);
}

#[test]
fn the_variant_of_a_subscriber_is_shown() {
    let run = variants("select", FINAL, &["env=prod", "version=v2"]);
    assert_eq!((run.code, &*run.out), (0, "selected   canary\nmatches    canary\n"));
    let run = variants("select", FINAL, &["env=prod"]);
    assert_eq!((run.code, &*run.out), (0, "selected   default\nmatches    default\n"));
    let run = variants("select", FINAL, &["env=test"]);
    assert_eq!((run.code, &*run.out), (1, "no variant matches\n"));
    let run = variants("select", &final_file(&[("b", "true"), ("a", "true")]), &[]);
    let expected = "selected   a\nmatches    a, b\nambiguous  others are as good as the selected one\n";
    assert_eq!((run.code, &*run.out), (0, expected));
    assert_eq!(variants("select", FINAL, &["env"]).code, 2);
}

#[test]
fn a_client_of_the_draft_prefers_the_largest_integer() {
    for constraints in [
        "env=prod and shard in 0..5",
        "(not exists(env) or env=prod) and (not exists(shard) or shard in 0..5)",
        r#"{"key_constraints": {"env": {"constraints": [{"value": "prod"}]},
            "shard": {"constraints": [{"integer_range_list": {"range": [{"max_value": 5}]}}]}}}"#,
    ] {
        let run = variants("select", DRAFT, &["--constraints", constraints]);
        assert_eq!((run.code, &*run.out), (0, "selected   s5\nmatches    s3, s5\n"), "{constraints}");
    }
}

#[test]
fn clients_of_one_form_can_be_put_to_files_of_the_other() {
    let run = variants("select", FINAL, &["--constraints", "env=prod and version=v1"]);
    assert_eq!((run.code, &*run.out), (0, "selected   stable\nmatches    stable\n"));
    let run = variants("select", FINAL, &["--constraints", "shard in 1..2"]);
    let expected = "xds: --constraints: key_constraints[\"shard\"]: integer ranges exist in the draft form only\n";
    assert_eq!((run.code, &*run.err), (2, expected));
    let run = variants("select", DRAFT, &["env=test"]);
    assert_eq!((run.code, &*run.out), (0, "selected   t5\nmatches    t5\n"));
}

#[test]
fn an_error_in_constraints_is_underlined() {
    let run = variants("lint", &final_file(&[("a", "\"env=prod and version v1\"")]), &[]);
    let expected = "\
xds: FILE:4:16: constraints of \"a\": expected `=` or `in` after the key, at byte 21
  env=prod and version v1
                       ^
";
    assert_eq!((run.code, &*run.err), (2, expected));
    let run = variants("select", DRAFT, &["--constraints", "env=prod and shrd"]);
    let expected = "\
xds: --constraints: expected `=` or `in` after the key, at byte 17
  env=prod and shrd
                   ^
";
    assert_eq!((run.code, &*run.err), (2, expected));
}

#[test]
fn a_file_that_is_wrong_is_refused_with_its_place() {
    let deep = format!("form: final\nvariants: [{{name: a, constraints: {}", "[".repeat(100_000));
    for (text, start) in [
        ("form: fina\nvariants: []\n", "FILE:1:7: "),
        ("form: final\nvariants:\n- nam: x\n", "FILE:3:3: unknown field `nam`"),
        ("form: final\nvariants:\n- {name: x, constraints: [a]}\n", "FILE:3:13: "),
        (
            "form: final\nvariants:\n- {name: x, constraints: {constraint: {key: a, valu: b}}}\n",
            "FILE:3:26: constraints of \"x\": constraint.valu: no such field",
        ),
        ("form: final\nvariants:\n- {name: x, parameters: {a: b}}\n", "FILE:3:10: expected constraints"),
        ("form: draft\nvariants:\n- {name: x, constraints: a=b}\n", "FILE:3:10: expected parameters"),
        ("form: draft\nvariants:\n- {name: x}\n- {name: x}\n", "FILE:4:10: another variant has this name"),
        ("form: draft\nvariants: [\n", "FILE:"),
        ("", "FILE"),
        (&deep, "FILE:2:"),
    ] {
        let run = variants("lint", text, &[]);
        assert_eq!((run.code, &*run.out), (2, ""), "{start}");
        assert!(run.err.starts_with(&format!("xds: {start}")), "{start}: {}", run.err);
    }
    assert_eq!(xds(&["variants", "lint", "no/such/file"], "").code, 2);
}
