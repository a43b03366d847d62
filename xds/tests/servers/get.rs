use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::origin::{Origin, Scene};
use super::{CDS, GLOB, MEMBER, cli::Run, events, objects, run};

/// connect_timeout: 1s
const ONE_SECOND: &[u8] = &[0x22, 2, 8, 1];

/// `xds get` of clusters `web` and `MEMBER`.
fn get(args: &[&str]) -> Run {
    let origin = Origin::play(&[Scene::clusters(&["web", MEMBER])]);
    run(&[&["get", "--server", &origin.address(), "cluster"], args].concat())
}

#[test]
fn for_people_there_is_a_table_in_which_what_two_names_cover_is_once() {
    let web = "NAME  VERSION  BYTES\nweb   v1       60\n";
    let run = get(&["web"]);
    assert_eq!((run.code, &*run.out, &*run.err), (0, web, ""));
    for names in [&["web", MEMBER][..], &["*", GLOB], &[MEMBER, "*", GLOB]] {
        let run = get(names);
        let rows: Vec<_> = run.out.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
        assert_eq!((run.code, rows, &*run.err), (0, vec!["NAME", "web", MEMBER], ""));
    }
}

#[test]
fn a_name_that_does_not_exist_is_a_failure_with_words_and_an_empty_collection_is_none() {
    let run = get(&["web", "wbe"]);
    assert_eq!((run.code, run.out.lines().count(), &*run.err), (1, 2, "xds: there is no wbe\n"));
    let run = get(&[&GLOB.replace("dir", "other")]);
    assert_eq!((run.code, &*run.out, &*run.err), (0, "", ""));
}

#[test]
fn json_is_an_object_an_event_with_the_content_decoded() {
    let origin = Origin::play(&[Scene::with(&[("web", ONE_SECOND)])]);
    let server = origin.address();
    let run = run(&["get", "--server", &server, "--output", "json", "cluster", "web", "wbe", GLOB]);
    assert_eq!((run.code, &*run.err), (1, "xds: there is no wbe\n"));
    let put = json!({
        "event": "put", "type": CDS, "name": "web", "version": "v1", "server": server, "stale": false,
        "resource": {"@type": CDS, "name": "web", "connect_timeout": "1s"},
    });
    assert_eq!(events(&run, "put"), [put]);
    let line = run.out.lines().find(|line| line.contains("\"put\"")).unwrap();
    let shown = line.replace(&server, "127.0.0.1:18000");
    assert!(include_str!("../../README.md").contains(&shown), "README.md does not show {shown}");
    let absent = json!({
        "event": "error", "kind": "absent", "message": "there is no wbe", "type": CDS, "name": "wbe", "server": server,
    });
    assert_eq!(events(&run, "error"), [absent]);
    let answered = json!({"event": "answered", "type": CDS, "name": GLOB, "server": server});
    assert_eq!(events(&run, "answered"), [answered]);
    assert_eq!(objects(&run).len(), 3);
}

#[test]
fn yaml_has_the_same_objects_as_documents() {
    let origin = Origin::play(&[Scene::with(&[("web", ONE_SECOND)])]);
    let of = |form| run(&["get", "--server", &origin.address(), "-o", form, "cluster", "web"]);
    let (json, yaml) = (of("json"), of("yaml"));
    let documents: Vec<Value> =
        yaml.out.split("---\n").skip(1).map(|text| serde_saphyr::from_str(text).unwrap()).collect();
    assert_eq!((json.code, yaml.code, documents), (0, 0, objects(&json)));
}

#[test]
fn what_is_of_no_known_type_is_base64() {
    let type_url = "example.com/who.Knows";
    let origin = Origin::play(&[Scene::Serve(vec![(type_url.into(), "x".into(), b"\x08\x01".into())])]);
    let run = run(&["get", "--server", &origin.address(), "--output", "json", type_url, "x"]);
    assert_eq!(events(&run, "put")[0]["resource"], json!({"@type": type_url, "value": "CAE="}));
}

#[test]
fn both_protocols_are_spoken() {
    for protocol in ["delta", "sotw"] {
        let run = get(&["--protocol", protocol, "web", "--output", "json"]);
        assert_eq!((run.code, events(&run, "put").len()), (0, 1), "{protocol}: {}", run.err);
    }
}

#[test]
fn attributes_are_parameters_of_what_is_asked_for() {
    let name = format!("{MEMBER}?k=v&xds.resource.vip=10.0.0.1");
    let origin = Origin::play(&[Scene::clusters(&[&name])]);
    let get = |asked: &[&str]| {
        let args = ["get", "--server", &origin.address(), "--attribute", "vip=10.0.0.1", "-o", "json", "cluster"];
        run(&[&args[..], asked].concat())
    };
    let there = get(&[&format!("{MEMBER}?k=v")]);
    assert_eq!((there.code, &events(&there, "put")[0]["name"]), (0, &json!(name)), "{}", there.err);
    // A name that has no parameters cannot be asked for like this; the others can.
    let run = get(&["web", &format!("{MEMBER}?k=v")]);
    assert_eq!((run.code, events(&run, "put").len()), (1, 1));
    assert_eq!(events(&run, "error")[0]["kind"], "invalid");
    assert_eq!(run.err, "xds: web: only xdstp: names have attributes\n");
}

#[test]
fn a_name_that_cannot_be_asked_for_is_an_error_at_once_and_the_others_go_on() {
    let listener = "xdstp://a/envoy.config.listener.v3.Listener/x";
    let run = get(&["--output", "json", "web", "xdstp://a", listener]);
    assert_eq!((run.code, events(&run, "put").len()), (1, 1));
    let errors = events(&run, "error");
    let said: Vec<_> = errors.iter().map(|error| (&error["kind"], &error["name"])).collect();
    assert_eq!(said, [(&json!("invalid"), &json!("xdstp://a")), (&json!("invalid"), &json!(listener))]);
    assert!(errors.iter().all(|error| error.get("server").is_none()));
}

#[test]
fn it_is_quiet_when_nobody_reads_any_more() {
    let origin = Origin::play(&[Scene::clusters(&["web"])]);
    for form in ["text", "json", "yaml"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_xds"))
            .args(["get", "--server", &origin.address(), "--output", form, "cluster", "web"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
    }
}

#[test]
fn dynamic_parameters_select_among_variants() {
    let variants = [("web", "env=prod", "1"), ("web", "env=test", "2"), ("cart", "env=prod", "3")];
    let owned = |(name, constraint, version): (&str, &str, &str)| (name.into(), constraint.into(), version.into());
    for protocol in ["delta", "sotw"] {
        let origin = Origin::play(&[Scene::Vary(variants.map(owned).to_vec())]);
        let get = |parameter: &str, names: &[&str]| {
            let args =
                ["get", "--server", &origin.address(), "--protocol", protocol, "-o", "json", "--param", parameter];
            run(&[&args[..], &["cluster"], names].concat())
        };
        let there = get("env=test", &["web"]);
        assert_eq!((there.code, &events(&there, "put")[0]["version"]), (0, &json!("2")), "{}", there.err);
        let all = get("env=prod", &["*"]);
        assert_eq!((all.code, events(&all, "put").len()), (0, 2), "{protocol}: {}", all.err);
    }
    let origin = Origin::play(&[Scene::Vary(variants.map(owned).to_vec())]);
    let absent = run(&["get", "--server", &origin.address(), "--param", "env=qa", "cluster", "web"]);
    assert_eq!(absent.code, 1, "{}", absent.err);
    assert_eq!(run(&["get", "--server", &origin.address(), "--param", "env", "cluster", "web"]).code, 2);
}
