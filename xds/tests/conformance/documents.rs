//! What continuous integration reads of a server that breaks a rule: one document, as a program behind `command:` changed the
//! server.

use std::io::Write as _;

use xds_transport::Dialect;

use super::cli::xds;
use super::defects::Defect;
use super::plane::Plane;

/// Carries lines between its standard input and output and an adapter that listens: what reads there is what is ended.
const BETWEEN: &str = "exec 3<>/dev/tcp/127.0.0.1/$1 || exit 1\ncat <&0 >&3 &\nexec cat <&3\n";

/// What stands between two texts, and what comes behind.
fn between<'a>(text: &'a str, before: &str, behind: &str) -> (&'a str, &'a str) {
    let (_, text) = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}"));
    text.split_once(behind).unwrap_or_else(|| panic!("no {behind} in {text}"))
}

/// As a reader of XML has it.
fn read(text: &str) -> String {
    assert!(!text.contains(['<', '>']), "{text}");
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

#[test]
fn a_rule_that_is_broken_is_a_failed_case_that_says_what_was_expected_and_what_was_seen() {
    let Plane { server, adapter, .. } = Plane::with(Some(Defect::OneNonce), Dialect::Final);
    let mut program = tempfile::NamedTempFile::new().unwrap();
    program.write_all(BETWEEN.as_bytes()).unwrap();
    let adapter = format!("command:bash {} {}", program.path().display(), adapter.port());
    let server = server.to_string();
    let args = ["conformance", &server, "--adapter", &adapter, "--only", "3,13", "--method", "delta-ads"];
    let run = xds(&[&args[..], &["--timeout", "60", "--output", "junit"]].concat(), "");
    assert_eq!((run.code, &*run.err), (1, ""), "{}", run.out);
    let (suite, cases) = between(&run.out, "<testsuite ", ">");
    assert!(suite.contains(" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\" "), "{suite}");
    assert!(suite.contains(&format!(" hostname=\"{server}\" ")), "{suite}");
    assert_eq!((cases.matches("<testcase ").count(), cases.matches("<failure ").count()), (2, 1), "{cases}");
    let (case, _) = between(cases, "<testcase classname=\"rule 013\" ", "</testcase>");
    assert!(case.starts_with("name=\"nonces are not empty and do not repeat on a stream (delta-ads)\" "), "{case}");
    let (message, behind) = between(case, "<failure message=\"", "\">");
    let (said, _) = between(behind, "", "</failure>");
    let (message, said) = (read(message), read(said));
    assert_eq!(message, "expected a nonce for each response; seen [\"one\", \"one\", \"one\", \"one\", \"one\"]");
    assert!(said.contains("clients: "), "{said}");
}
