//! `xds names parse`, `match` and `listener`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, unreachable_pub, reason = "a test fails by panicking")]

mod cli;

use std::io::Write;
use std::process::{Command, Stdio};

use cli::xds;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// gRFC A47, *Example: Multiple Authorities*, without the brace it has too many.
const BOOTSTRAP: &str = include_str!("data/bootstrap_a47.json");
const BOOTSTRAP_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bootstrap_a47.json");

fn file(text: &str) -> (NamedTempFile, String) {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

#[test]
fn the_parts_of_a_name_are_shown() {
    let run = xds(&["names", "parse", "xdstp://a/some.Type/x%20y?b=1&a=%26"], "");
    let expected = "\
name xdstp://a/some.Type/x%20y?b=1&a=%26
  scheme         xdstp
  authority      a
  resource type  some.Type
  id             x y
  parameter      a = &
  parameter      b = 1
  canonical      xdstp://a/some.Type/x%20y?a=%26&b=1
";
    assert_eq!((run.code, &*run.out), (0, expected));
}

#[test]
fn the_parts_of_a_locator_are_shown() {
    let run = xds(&["names", "parse", "xdstp://a/T/*#alt=xdstp://b/T/%252Fx,entry=m"], "");
    let expected = "\
locator xdstp://a/T/*#alt=xdstp://b/T/%252Fx,entry=m
  scheme         xdstp
  authority      a
  resource type  T
  id             *
  glob           all resources one level deep
  canonical      xdstp://a/T/*#alt=xdstp://b/T//x,entry=m
  alternative    xdstp://b/T//x
    scheme         xdstp
    authority      b
    resource type  T
    id             /x
  entry          m
  not the name of one resource: expected a name without directives ('#…'), at byte 13
";
    assert_eq!((run.code, &*run.out), (0, expected));
}

#[test]
fn an_error_is_underlined() {
    for (name, expected) in [
        (
            "xdstp://authority/T%2Fq/x",
            "\
invalid: expected a resource type of letters, digits, '.', '_' and '-', at byte 19
  xdstp://authority/T%2Fq/x
                     ^^^
",
        ),
        (
            "xdstp://ä日/T/\u{1b}[2J",
            "\
invalid: expected no control character and, in a fragment, no '#' unless percent-encoded, at byte 16
  xdstp://ä日/T/\\u{1b}[2J
                ^^^^^^
",
        ),
        ("xdstp://a", "invalid: expected '/' and a resource type, at byte 9\n  xdstp://a\n           ^\n"),
        ("XDSTP://a/T/x", "opaque name: expected the scheme 'xdstp:', at byte 0\n  XDSTP://a/T/x\n  ^\n"),
    ] {
        let run = xds(&["names", "parse", name], "");
        assert_eq!((run.code, &*run.out), (1, expected));
    }
}

#[test]
fn names_are_lines_of_standard_input_or_end_with_nul() {
    let kinds = |args: &[&str], input: &str| -> Vec<Value> {
        let run = xds(args, input);
        run.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone()).collect()
    };
    let lines = "xdstp://a/T/x\n\nxdstp://a/T/*\nweb";
    assert_eq!(kinds(&["names", "parse", "--json"], lines), ["urn", "invalid", "url", "invalid"]);
    assert_eq!(kinds(&["names", "parse", "--json", "-0"], "xdstp://a/T/x\ny\0xdstp://a/T/x\0"), ["invalid", "urn"]);
    assert_eq!(xds(&["names", "parse"], "").code, 0);
    assert_eq!(xds(&["names", "parse"], "xdstp://a/T/x\nhttp://a/T\n").code, 0);
    assert_eq!(xds(&["names", "parse"], "xdstp://a/T/x\nhttp://a\n").code, 1);
    assert_eq!(xds(&["names", "parse", "-0", "web"], "").code, 2, "usage");
}

#[test]
fn any_bytes_get_an_answer() {
    let long = format!("xdstp://a/T/{}\n", "日".repeat(30_000));
    let run = xds(&["names", "parse", "--json"], [b"xdstp://a/T/\xff\n", long.as_bytes(), b"xdstp://a/T/x\n"].concat());
    let found: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found[0], json!({"kind": "invalid", "error": "invalid_utf8", "offset": 12}));
    // The character that is not all within the bound.
    assert_eq!(found[1], json!({"kind": "invalid", "error": "too_long", "offset": 65_535}));
    assert_eq!((&found[2]["kind"], &found[2]["offset"]), (&json!("urn"), &Value::Null));

    let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let run = xds(&["names", "parse"], bytes);
    assert_eq!((run.code, &*run.err), (1, ""));
}

#[test]
fn it_stops_when_nobody_reads_any_more() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_xds"))
        .args(["names", "parse"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    while stdin.write_all(b"xdstp://a/T/x\n").is_ok() {}
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn a_name_matches_a_subscription() {
    for (subscription, name, code, out) in [
        ("xdstp://a/T/*", "xdstp://a/T/x", 0, "matches\n"),
        ("xdstp://a/T/x?k=1&j=2", "xdstp://a/T/x?j=2&k=%31", 0, "matches\n"),
        ("web", "web", 0, "matches\n"),
        ("web", "mail", 1, "does not match: the opaque names differ\n"),
        ("web", "xdstp://a/T/x", 1, "does not match: one is an opaque name, the other an xdstp name\n"),
        ("xdstp://a/T/*", "xdstp://b/T/x", 1, "does not match: expected the authority \"a\", found \"b\"\n"),
        ("xdstp://a/T/*", "xdstp://a/T/x/y", 1, "does not match: expected the id \"*\", found \"x/y\"\n"),
        (
            "xdstp://a/T/*?k=v",
            "xdstp://a/T/x",
            1,
            "does not match: expected the context parameters \"k=v\", found \"\"\n",
        ),
    ] {
        let run = xds(&["names", "match", subscription, name], "");
        assert_eq!((run.code, &*run.out), (code, out), "{subscription} {name}");
    }
    let run = xds(&["names", "match", "xdstp://a/T/*", "xdstp://a"], "");
    let error = "xds: NAME: expected '/' and a resource type, at byte 9\n  xdstp://a\n           ^\n";
    assert_eq!((run.code, &*run.out, &*run.err), (2, "", error));
}

#[test]
fn a47_example_multiple_authorities() {
    let listener = |args: &[&str]| xds(&[&["names", "listener", "--bootstrap", BOOTSTRAP_FILE], args].concat(), "");
    let top_level =
        "authority  \"xds.authority.com\"\nserver     xds-server.authority.com  google_default  (top level)\n";
    for target in ["xds:server.example.com", "xds://xds.authority.com/server.example.com"] {
        let run = listener(&[target]);
        let name = "xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/client/server.example.com?project_id=1234";
        assert_eq!((run.code, run.out), (0, format!("name       {name}\n{top_level}")));
    }
    let run = listener(&["xds://xds.other.com/server.other.com"]);
    let expected = "\
name       xdstp://xds.other.com/envoy.config.listener.v3.Listener/server.other.com
authority  \"xds.other.com\"
server     xds-server.other.com  google_default  (of the authority)
";
    assert_eq!((run.code, &*run.out), (0, expected));
    let run = listener(&["--server", "0.0.0.0:8080"]);
    let name = "xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/server/0.0.0.0:8080?project_id=1234";
    assert_eq!((run.code, run.out), (0, format!("name       {name}\n{top_level}")));

    let run = listener(&["xds://xds.unknown.com/x"]);
    assert_eq!((run.code, &*run.err), (1, "xds: authority \"xds.unknown.com\" is not in the bootstrap\n"));
    assert_eq!(listener(&["dns:x"]).code, 1);
    assert_eq!(listener(&[]).code, 2, "usage");
    assert_eq!(listener(&["xds:x", "--server", "y"]).code, 2, "usage");
}

#[test]
fn a47_example_as_it_is_printed_has_a_brace_too_many() {
    let printed = BOOTSTRAP.replacen("project_id=1234\"\n    },", "project_id=1234\"\n      }\n    },", 1);
    assert_ne!(printed, BOOTSTRAP);
    let (_file, path) = file(&printed);
    let run = xds(&["names", "listener", "--bootstrap", &path, "xds:server.example.com"], "");
    assert_eq!((run.code, run.err), (1, format!("xds: {path}:24:1: trailing characters\n  }}\n  ^\n")));
}

#[test]
fn a_bootstrap_of_the_wrong_shape_is_refused_with_its_place() {
    let (_file, path) = file(&BOOTSTRAP.replace("\"xds-server.other.com\"", "5"));
    let run = xds(&["names", "listener", "--bootstrap", &path, "xds:x"], "");
    assert_eq!(run.code, 1);
    assert!(
        run.err.starts_with(&format!("xds: {path}:17:25: invalid type: integer `5`, expected a string\n")),
        "{}",
        run.err
    );
}

#[test]
fn the_template_of_every_authority_is_checked() {
    let entries = r#"{"authorities": {
        "a": {"client_listener_resource_name_template": "xdstp://a.evil/T/%s"},
        "b": {"client_listener_resource_name_template": "xdstp://b/T/%s"},
        "c": {"client_listener_resource_name_template": "c/%s"}
    }}"#;
    let (_file, path) = file(entries);
    let run = xds(&["names", "listener", "--bootstrap", &path, "xds://b/x"], "");
    assert_eq!((run.code, &*run.out, run.err.lines().count()), (1, "", 2));
    assert!(
        run.err.contains("authority \"a\": expected the template \"xdstp://a.evil/T/%s\" to start with"),
        "{}",
        run.err
    );
    assert!(run.err.contains("authority \"c\""), "{}", run.err);
}

#[test]
fn an_old_style_name_needs_no_authority() {
    let (_file, path) =
        file(r#"{"xds_servers": [{"server_uri": "s"}], "server_listener_resource_name_template": "grpc/%s"}"#);
    let run = xds(&["names", "listener", "--bootstrap", &path, "--server", "[::1]:80"], "");
    let expected = "name       grpc/[::1]:80\nauthority  none: an opaque name\nserver     s  (top level)\n";
    assert_eq!((run.code, &*run.out), (0, expected));
}
