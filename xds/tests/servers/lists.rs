//! What TP1 has a client look for in several places, from the command line.

use serde_json::json;

use super::origin::{Origin, Scene, nobody};
use super::watch::Watching;
use super::{CDS, MEMBER, events, run};

const LISTS: &str = "type.googleapis.com/envoy.config.cluster.v3.ClusterCollection";
const LIST: &str = "xdstp://a/envoy.config.cluster.v3.ClusterCollection/all";

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    prost::encoding::encode_varint(content.len() as u64, &mut bytes);
    [&bytes, content].concat()
}

/// An inline entry `web`, and the locator of a member that is elsewhere.
fn list() -> (String, String, Vec<u8>) {
    let any = [field(1, CDS.as_bytes()), field(2, &field(1, b"web"))].concat();
    let inline = [field(1, b"web"), field(2, b"v7"), field(3, &any)].concat();
    let entries = [field(1, &field(2, &inline)), field(1, &field(1, MEMBER.as_bytes()))].concat();
    (LISTS.to_owned(), LIST.to_owned(), entries)
}

/// A list, and its member that is elsewhere.
fn scene((type_url, name, entries): (String, String, Vec<u8>)) -> Scene {
    let Scene::Serve(mut resources) = Scene::clusters(&[MEMBER]) else { unreachable!() };
    resources.push((type_url, name, entries));
    Scene::Serve(resources)
}

fn origin() -> Origin {
    Origin::play(&[scene(list())])
}

/// A list of one member, which is elsewhere.
fn list_of(member: &str) -> (String, String, Vec<u8>) {
    (LISTS.to_owned(), LIST.to_owned(), field(1, &field(1, member.as_bytes())))
}

#[test]
fn a_list_is_printed_as_its_members_wherever_these_are() {
    let origin = origin();
    let run = run(&["get", "--server", &origin.address(), "-o", "json", "cluster", LIST]);
    assert_eq!(run.code, 0, "{}", run.err);
    let mut put: Vec<_> = events(&run, "put").iter().map(|event| event["name"].clone()).collect();
    put.sort_by_key(ToString::to_string);
    assert_eq!(put, [json!("web"), json!(MEMBER)]);
    assert_eq!(events(&run, "answered").len(), 1);
}

#[test]
fn an_entry_of_a_list_is_there_or_is_not() {
    let origin = origin();
    let (web, none) = (format!("{LIST}#entry=web"), format!("{LIST}#entry=none"));
    let there = run(&["get", "--server", &origin.address(), "-o", "json", "cluster", &web]);
    assert_eq!((there.code, events(&there, "put").len()), (0, 1), "{}", there.err);
    let absent = run(&["get", "--server", &origin.address(), "cluster", &none]);
    assert_eq!(absent.code, 1, "{}", absent.err);
    assert!(absent.err.contains(&format!("there is no {none}")), "{}", absent.err);
}

#[test]
fn a_list_that_is_not_there_is_said_to_be_absent() {
    let origin = Origin::play(&[Scene::clusters(&["web"])]);
    let run = run(&["get", "--server", &origin.address(), "cluster", LIST]);
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.err.contains(&format!("there is no {LIST}")), "{}", run.err);
}

#[test]
fn of_a_bootstrap_the_alternative_and_the_next_server_are_asked_when_the_first_is_away() {
    let origin = Origin::play(&[Scene::clusters(&[MEMBER, "web"])]);
    let server = |uri: &str| json!({ "server_uri": uri, "channel_creds": [{ "type": "insecure" }] });
    let (away, there) = (nobody(), origin.address());
    let bootstrap = json!({
        "xds_servers": [server(&away), server(&there)],
        "authorities": {
            "cloud": { "xds_servers": [server(&away)] },
            "a": { "xds_servers": [server(&there)] },
        },
    });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bootstrap.json");
    std::fs::write(&file, bootstrap.to_string()).unwrap();
    let cloud = "xdstp://cloud/envoy.config.cluster.v3.Cluster/x";
    let with_alternative = format!("{cloud}#alt={MEMBER}");
    let args = ["get", "--bootstrap", file.to_str().unwrap(), "-o", "json", "cluster", "web", &with_alternative];
    let run = run(&args);
    assert_eq!(run.code, 0, "{}", run.err);
    let mut put: Vec<_> = events(&run, "put").iter().map(|event| event["name"].clone()).collect();
    put.sort_by_key(ToString::to_string);
    assert_eq!(put, [json!("web"), json!(cloud)]);
    let of_web = events(&run, "put").into_iter().find(|event| event["name"] == "web").unwrap();
    assert_eq!(of_web["server"], json!(there), "the server that answered");
}

#[test]
fn a_list_that_goes_while_it_is_watched_is_told_and_so_is_its_return() {
    let origin = Origin::play(&[scene(list()), Scene::clusters(&[MEMBER]), scene(list())]);
    let server = origin.address();
    let mut watching = Watching::start(&["--server", &server, "-o", "json", "cluster", LIST]);
    watching.next(3);
    let of_list = json!({"event": "ambient", "type": CDS, "name": LIST, "server": server});
    let told = |stale: bool, kind: Option<&str>| {
        let mut event = of_list.clone();
        event["stale"] = stale.into();
        if let Some(kind) = kind {
            event["kind"] = kind.into();
            event["message"] = format!("there is no {LIST}").into();
        }
        [event]
    };
    origin.end_stream();
    assert_eq!(watching.next(1), told(true, Some("absent")));
    origin.end_stream();
    assert_eq!(watching.next(1), told(false, None));
}

#[test]
fn an_entry_of_a_list_that_goes_is_removed_and_put_when_the_list_is_back() {
    let origin = Origin::play(&[scene(list()), Scene::clusters(&[MEMBER]), scene(list())]);
    let web = format!("{LIST}#entry=web");
    let mut watching = Watching::start(&["--server", &origin.address(), "-o", "json", "cluster", &web]);
    for event in ["put", "removed", "put"] {
        let told = watching.next(1).remove(0);
        assert_eq!((&told["event"], &told["name"]), (&json!(event), &json!("web")));
        origin.end_stream();
    }
}

#[test]
fn a_member_that_does_not_exist_is_1_and_one_that_cannot_be_reached_3() {
    let absent = MEMBER.replace("/x", "/none");
    let origin = Origin::play(&[scene(list_of(&absent))]);
    let get = run(&["get", "--server", &origin.address(), "-o", "json", "cluster", LIST]);
    assert_eq!((get.code, &*get.err), (1, &*format!("xds: there is no {absent}\n")));
    assert_eq!((&events(&get, "error")[0]["name"], events(&get, "answered").len()), (&json!(absent), 1));

    let there = "xdstp://away/envoy.config.cluster.v3.Cluster/x";
    let (origin, away) = (Origin::play(&[scene(list_of(there))]), nobody());
    let server = |uri: &str| json!([{ "server_uri": uri, "channel_creds": [{ "type": "insecure" }] }]);
    let bootstrap = json!({
        "xds_servers": server(&origin.address()),
        "authorities": { "a": {}, "away": { "xds_servers": server(&away) } },
    });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bootstrap.json");
    std::fs::write(&file, bootstrap.to_string()).unwrap();
    let get = ["get", "--timeout", "1", "--bootstrap", file.to_str().unwrap(), "-o", "json", "cluster", LIST];
    let get = run(&get);
    assert_eq!(get.code, 3, "{}", get.err);
    let error = events(&get, "error").remove(0);
    assert_eq!((&error["name"], &error["kind"]), (&json!(there), &json!("unreachable")));
    assert_eq!(error["server"], json!(away), "who has the member, not who has the list");

    let of_members = Origin::play(&[Scene::clusters(&[there])]).address();
    std::fs::write(&file, bootstrap.to_string().replace(&away, &of_members)).unwrap();
    let get = run(&["get", "--bootstrap", file.to_str().unwrap(), "-o", "json", "cluster", LIST]);
    assert_eq!((get.code, &events(&get, "put")[0]["server"]), (0, &json!(of_members)), "{}", get.err);
    assert_eq!(events(&get, "answered")[0]["server"], json!(origin.address()));
}
