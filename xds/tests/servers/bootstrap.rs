use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::origin::{Origin, Scene, nobody};
use super::watch::Watching;
use super::{MEMBER, cli::Run, events, run, run_until};

const UNKNOWN: &str = "xdstp://unknown/envoy.config.cluster.v3.Cluster/x";
const ELSEWHERE: &str = "xdstp://elsewhere/envoy.config.cluster.v3.Cluster/x";

/// Two origins, and a bootstrap by which the second one is that of the authority `a`, and nobody that of `elsewhere` could
/// be spoken to.
struct Federation {
    directory: TempDir,
    top: Origin,
    of_a: Origin,
}

impl Federation {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let federation = Self {
            directory,
            top: Origin::play(&[Scene::clusters(&["web"])]),
            of_a: Origin::play(&[Scene::clusters(&[MEMBER])]),
        };
        fs::write(federation.file(), federation.bootstrap().to_string()).unwrap();
        federation
    }

    fn file(&self) -> String {
        self.directory.path().join("bootstrap.json").to_str().unwrap().to_owned()
    }

    fn bootstrap(&self) -> Value {
        let server = |uri: String, creds: &str| json!([{"server_uri": uri, "channel_creds": [{"type": creds}]}]);
        json!({
            "xds_servers": server(self.top.address(), "insecure"),
            "node": {"id": "me"},
            "authorities": {
                "a": {"xds_servers": server(format!("dns:///{}", self.of_a.address()), "insecure")},
                "elsewhere": {"xds_servers": server("example.com".into(), "google_default")},
            },
        })
    }
}

#[test]
fn names_decide_the_server_and_an_unknown_authority_is_an_error_of_its_name_alone() {
    let federation = Federation::new();
    let args = ["get", "--bootstrap", &federation.file(), "-o", "json", "cluster", "web", MEMBER, UNKNOWN, ELSEWHERE];
    let run = run(&args);
    assert_eq!(run.code, 1, "{}", run.err);
    let put = events(&run, "put");
    let said: Vec<_> = put.iter().map(|event| (&event["name"], &event["server"])).collect();
    let of_a = json!(format!("dns:///{}", federation.of_a.address()));
    assert_eq!(said, [(&json!("web"), &json!(federation.top.address())), (&json!(MEMBER), &of_a)]);
    let errors = events(&run, "error");
    let said: Vec<_> = errors.iter().map(|event| (&event["name"], &event["kind"])).collect();
    assert_eq!(said, [(&json!(ELSEWHERE), &json!("invalid")), (&json!(UNKNOWN), &json!("invalid"))]);
    assert!(
        run.err.contains(&format!("xds: {UNKNOWN}: authority \"unknown\" is not in the bootstrap\n")),
        "{}",
        run.err
    );
    assert!(run.err.contains("example.com: google_default is not supported"), "{}", run.err);
}

#[test]
fn the_table_says_which_server_has_what() {
    let federation = Federation::new();
    let run = run(&["get", "--bootstrap", &federation.file(), "cluster", "web", MEMBER]);
    let row = |line: &str| {
        let cells: Vec<_> = line.split_whitespace().collect();
        (cells[0].to_owned(), cells[3].to_owned())
    };
    let rows: Vec<_> = run.out.lines().map(row).collect();
    let expected = [
        ("NAME".to_owned(), "SERVER".to_owned()),
        ("web".to_owned(), federation.top.address()),
        (MEMBER.to_owned(), format!("dns:///{}", federation.of_a.address())),
    ];
    assert_eq!((run.code, rows), (0, expected.to_vec()));
}

#[test]
fn the_environment_may_have_it() {
    let federation = Federation::new();
    let get = |variable: &str, value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xds"));
        command.env_remove("GRPC_XDS_BOOTSTRAP").env_remove("GRPC_XDS_BOOTSTRAP_CONFIG").env(variable, value);
        let output = command.args(["get", "--bootstrap", "env", "cluster", "web"]).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(get("GRPC_XDS_BOOTSTRAP", &federation.file()), (0, String::new()));
    assert_eq!(get("GRPC_XDS_BOOTSTRAP_CONFIG", &federation.bootstrap().to_string()), (0, String::new()));
    let (code, words) = get("OTHER", "");
    assert!(code == 2 && words.starts_with("xds: no bootstrap: "), "{code} {words}");
}

#[test]
fn a_bootstrap_that_is_wrong_is_refused_with_its_place() {
    let federation = Federation::new();
    fs::write(federation.file(), "{\n \"xds_servers\": []}").unwrap();
    let run = run(&["get", "--bootstrap", &federation.file(), "cluster"]);
    let words = format!("xds: {}:2:17: xds_servers: it names no server\n", federation.file());
    assert_eq!((run.code, run.err), (2, words));
}

#[test]
fn parameters_are_those_of_the_bootstrap_and_the_arguments_count_before_them() {
    let variants = [("web", "env=prod and zone=a", "1"), ("web", "env=test and zone=a", "2")];
    let owned = |(name, constraint, version): (&str, &str, &str)| (name.into(), constraint.into(), version.into());
    let origin = Origin::play(&[Scene::Vary(variants.map(owned).to_vec())]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bootstrap.json");
    let bootstrap = json!({
        "xds_servers": [{"server_uri": origin.address(), "channel_creds": [{"type": "insecure"}]}],
        "dynamic_parameters": {"env": "prod", "zone": "a"},
    });
    fs::write(&file, bootstrap.to_string()).unwrap();
    for (arguments, version) in [(&[][..], "1"), (&["--param", "env=test"], "2")] {
        let args = [&["--bootstrap", file.to_str().unwrap(), "-o", "json"], arguments, &["cluster", "web"]].concat();
        let got = run(&[&["get"], &args[..]].concat());
        assert_eq!((got.code, &events(&got, "put")[0]["version"]), (0, &json!(version)), "{}", got.err);
        let watched: Value = serde_json::from_str(&Watching::start(&args).line()).unwrap();
        assert_eq!((&watched["event"], &watched["version"]), (&json!("put"), &json!(version)));
    }
}

#[test]
fn of_several_servers_that_are_away_the_one_is_named_whose_trouble_it_is() {
    let (first, second) = (nobody(), nobody());
    let server = |uri: &str| json!({"server_uri": uri, "channel_creds": [{"type": "insecure"}]});
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bootstrap.json");
    fs::write(&file, json!({"xds_servers": [server(&first), server(&second)]}).to_string()).unwrap();
    let tried = |run: &Run| run.err.contains("xds: no stream to ");
    let run = run_until(tried, &["get", "--bootstrap", file.to_str().unwrap(), "-o", "json", "cluster", "web"]);
    assert_eq!(run.code, 3);
    for error in events(&run, "error") {
        assert_eq!((&error["kind"], &error["server"]), (&json!("unreachable"), &json!(second)));
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("no stream to {second}: ")), "{message}");
    }
}
