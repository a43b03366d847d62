use std::fs;

use serde_json::{Value, json};
use tonic::Status;

use super::origin::{Origin, Scene, nobody};
use super::{CDS, GLOB, MEMBER, objects, run};

/// connect_timeout
fn seconds(seconds: u8) -> Vec<u8> {
    vec![0x22, 2, 8, seconds]
}

fn two() -> (Origin, Origin) {
    let a = Scene::with(&[("same", &seconds(1)), ("web", &seconds(1)), ("gone", &[])]);
    let b = Scene::with(&[("same", &seconds(1)), ("web", &seconds(2)), (MEMBER, &[])]);
    (Origin::play(&[a]), Origin::play(&[b]))
}

#[test]
fn what_two_servers_do_not_have_in_common_is_shown() {
    let (a, b) = two();
    let diff = |args: &[&str]| run(&[&["diff", &a.address(), &b.address()], args].concat());
    let run = diff(&["cluster", "*", MEMBER]);
    let expected =
        format!("only in A: gone\ndiffers: web\n  connect_timeout: A has \"1s\", B has \"2s\"\nonly in B: {MEMBER}\n");
    assert_eq!((run.code, &*run.out, &*run.err), (1, &*expected, ""));

    let run = diff(&["-o", "json", "cluster", "*", MEMBER]);
    let expected = [
        json!({"difference": "only_in_a", "type": CDS, "name": "gone"}),
        json!({
            "difference": "content", "type": CDS, "name": "web",
            "fields": [{"field": "connect_timeout", "a": "1s", "b": "2s"}],
        }),
        json!({"difference": "only_in_b", "type": CDS, "name": MEMBER}),
    ];
    assert_eq!((run.code, objects(&run)), (1, expected.to_vec()));
    let yaml = diff(&["-o", "yaml", "cluster", "*", MEMBER]);
    let documents: Vec<Value> =
        yaml.out.split("---\n").skip(1).map(|text| serde_saphyr::from_str(text).unwrap()).collect();
    assert_eq!((yaml.code, documents), (1, expected.to_vec()));

    let run = diff(&["cluster", "same"]);
    assert_eq!((run.code, &*run.out, &*run.err), (0, "", ""));
}

#[test]
fn a_server_and_files_are_compared() {
    let (server, _) = two();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.yaml");
    let text = format!(
        "resources:\n- {{'@type': {CDS}, name: same, connect_timeout: 1s}}\n- {{'@type': {CDS}, name: web}}\n\
         - {{'@type': type.googleapis.com/envoy.config.listener.v3.Listener, name: other}}\n\
         - {{'@type': {CDS}, name: '{MEMBER}'}}\n"
    );
    fs::write(&file, text).unwrap();
    let expected = "only in B: gone\ndiffers: web\n  connect_timeout: A has nothing, B has \"1s\"\n";
    for files in [directory.path(), &file] {
        let run = run(&["diff", files.to_str().unwrap(), &server.address(), "cluster"]);
        assert_eq!((run.code, &*run.out, &*run.err), (1, expected, ""));
    }
    let file = file.to_str().unwrap();
    // What has an authority is asked for by name or glob, of servers, too.
    let run_glob = run(&["diff", file, &server.address(), "cluster", GLOB]);
    assert_eq!((run_glob.code, run_glob.out), (1, format!("only in A: {MEMBER}\n")));
    assert_eq!(run(&["diff", file, file, "cluster", "same"]).code, 0);

    // Of variants the one counts that a server is asked for.
    let variant = |constraints: &str, seconds: u32| {
        format!(
            "- resource_name: {{ dynamic_parameter_constraints: {constraints} }}\n  \
             resource: {{'@type': {CDS}, name: same, connect_timeout: {seconds}s}}\n"
        )
    };
    fs::write(file, format!("resources:\n{}{}", variant("env=prod", 1), variant("not env=prod", 2))).unwrap();
    for (param, code) in [("env=prod", 0), ("env=test", 1)] {
        assert_eq!(run(&["diff", file, &server.address(), "--param", param, "cluster", "same"]).code, code, "{param}");
    }

    fs::write(file, "resources: [{name: x}]").unwrap();
    let run = run(&["diff", file, &server.address(), "cluster"]);
    let words = format!("xds: {file}:1:13: resources[0]: neither `@type` nor `resource` is given\n");
    assert_eq!((run.code, run.err), (2, words));
}

#[test]
fn of_who_does_not_answer_nothing_is_said() {
    let (a, _) = two();
    let silent = Origin::play(&[Scene::Silence]);
    let refusing = Origin::play(&[Scene::Refuse(Status::permission_denied("not you"))]);
    for b in [nobody(), silent.address(), refusing.address()] {
        let run = run(&["diff", &a.address(), &b, "--timeout", "0.5", "cluster"]);
        assert_eq!((run.code, &*run.out), (3, ""), "{b}");
        assert!(!run.err.is_empty());
    }
}
