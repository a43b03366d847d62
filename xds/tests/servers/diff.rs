use std::fs;

use serde_json::{Value, json};
use tonic::Status;
use xds_relay::file_origin::{Descriptors, load_embedded};

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

#[test]
fn of_a_list_the_members_are_compared_wherever_they_are() {
    const LDS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
    let list = "xdstp://a/envoy.config.listener.v3.ListenerCollection/all";
    let of = |id: &str| format!("xdstp://a/envoy.config.listener.v3.Listener/{id}");
    let text = |inline: &str, port: &str| {
        format!(
            "resources:\n- name: {list}\n  resource:\n    '@type': {LDS}Collection\n    entries:\n    \
             - inline_entry: {{name: {inline}, resource: {{'@type': {LDS}, name: web}}}}\n    \
             - locator: {{scheme: XDSTP, authority: a, resource_type: envoy.config.listener.v3.Listener, id: x}}\n    \
             - locator: {{scheme: XDSTP, authority: b, resource_type: envoy.config.listener.v3.Listener, id: none}}\n\
             - {{'@type': {LDS}, name: '{}'{port}}}\n- {{'@type': {LDS}, name: '{}'}}\n",
            of("x"),
            of("no-member"),
        )
    };
    // What the file has, served.
    let resources = load_embedded(&[("a.yaml", &text("web", ""))], &Descriptors::built_in().unwrap()).unwrap();
    let served = resources.into_iter().map(|resource| (resource.type_url, resource.name, resource.value.to_vec()));
    let server = Origin::play(&[Scene::Serve(served.collect())]).address();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("list.yaml");
    let diff = |asked: &str| run(&["diff", &server, file.to_str().unwrap(), "listener", asked]);
    fs::write(&file, text("web", "")).unwrap();
    for asked in [list, &format!("{list}#entry=web")] {
        let same = diff(asked);
        assert_eq!((same.code, &*same.out, &*same.err), (0, "", ""), "{asked}");
    }
    fs::write(&file, text("mail", ", stat_prefix: x")).unwrap();
    let member = format!("differs: {}\n  stat_prefix: A has nothing, B has \"x\"\n", of("x"));
    let expected = format!("only in B: mail\nonly in A: web\n{member}");
    let differs = diff(list);
    assert_eq!((differs.code, &*differs.out, &*differs.err), (1, &*expected, ""));
    assert_eq!(diff(&format!("{list}#entry=web")).out, "only in A: web\n");
}
