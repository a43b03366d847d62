//! What is at `file:` and `http:` locators, and that nobody reads it who did not say so.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use serde_json::json;

use super::origin::{Origin, Scene};
use super::{CDS, events, run};

const LISTS: &str = "type.googleapis.com/envoy.config.cluster.v3.ClusterCollection";
const LIST: &str = "xdstp://a/envoy.config.cluster.v3.ClusterCollection/all";

fn clusters(names: &[&str]) -> String {
    let of = |name: &&str| format!("- {{'@type': {CDS}, name: {name}}}\n");
    format!("resources:\n{}", names.iter().map(of).collect::<String>())
}

/// A server that has a list at one path and nothing elsewhere, for as long as the tests run.
fn site() -> String {
    let (address, serving) = mpsc::channel();
    std::thread::spawn(move || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        address.send(listener.local_addr().unwrap()).unwrap();
        for io in listener.incoming() {
            let mut io = io.unwrap();
            let head: Vec<_> =
                BufReader::new(&io).lines().map_while(|line| line.ok().filter(|line| !line.is_empty())).collect();
            let body = clusters(&["web", "mail"]);
            let answer = match head.first().is_some_and(|line| line.contains("Collection/all ")) {
                true => format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/yaml\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                ),
                false => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            };
            // Who was told enough may be gone.
            _ = io.write_all(answer.as_bytes());
        }
    });
    serving.recv().unwrap().to_string()
}

#[test]
fn files_are_read_of_directories_that_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let (path, file) = (directory.path().to_str().unwrap(), directory.path().join("x.yaml"));
    fs::write(&file, clusters(&["web", "mail"])).unwrap();
    let at = format!("file://{}", file.display());
    let entry = format!("{at}#entry=web");
    let run = run(&["get", "--files", path, "-o", "json", "cluster", &at, &entry]);
    assert_eq!(run.code, 0, "{}", run.err);
    let put = events(&run, "put");
    let mut named: Vec<_> =
        put.iter().map(|event| ["name", "server"].map(|key| event[key].as_str().unwrap())).collect();
    named.sort_unstable();
    assert_eq!(named, [["mail", &at], ["web", &at], ["web", &entry]]);
    let no_directory = super::run(&["get", "--files", file.to_str().unwrap(), "cluster", &at]);
    assert_eq!(no_directory.code, 2, "{}", no_directory.err);
}

#[test]
fn whoever_serves_a_list_has_no_file_read_but_those_of_the_directories() {
    let directory = tempfile::tempdir().unwrap();
    let (path, file) = (directory.path().to_str().unwrap(), directory.path().join("x.yaml"));
    fs::write(&file, clusters(&["web"])).unwrap();
    let at = format!("file://{}", file.display());
    let other = tempfile::tempdir().unwrap();
    let field = |number: u8, content: &[u8]| {
        let mut bytes = vec![number << 3 | 2];
        prost::encoding::encode_varint(content.len() as u64, &mut bytes);
        [&bytes, content].concat()
    };
    let list = field(1, &field(1, at.as_bytes()));
    let origin = Origin::play(&[Scene::Serve(vec![(LISTS.to_owned(), LIST.to_owned(), list)])]);
    let server = origin.address();
    let get = |more: &[&str]| {
        run(&[&["get", "--timeout", "5", "--server", &server, "-o", "json"], more, &["cluster", LIST]].concat())
    };
    let nobody = get(&[]);
    assert!(events(&nobody, "put").is_empty() && nobody.err.contains("nothing that reads file:"), "{}", nobody.err);
    let elsewhere = get(&["--files", other.path().to_str().unwrap()]);
    assert!(events(&elsewhere, "put").is_empty(), "{}", elsewhere.out);
    assert!(elsewhere.out.contains("it is not in a directory of which files are read"), "{}", elsewhere.out);
    let read = get(&["--files", path]);
    assert_eq!((read.code, events(&read, "put").len()), (0, 1), "{}", read.err);
    // To a server it is a name.
    let name = run(&["get", "--server", &server, "cluster", &at]);
    assert_eq!((name.code, name.err), (1, format!("xds: there is no {at}\n")));
}

#[test]
fn documents_are_fetched_of_servers_that_are_named() {
    let site = site();
    let server = format!("http://{site}");
    let [all, none] = ["all", "none"].map(|id| format!("{server}/envoy.config.cluster.v3.ClusterCollection/{id}"));
    let get = |more: &[&str]| run(&[&["get", "--timeout", "5", "-o", "json", "--http"], more].concat());
    let found = get(&[&server, "cluster", &all]);
    assert_eq!(found.code, 0, "{}", found.err);
    let put: Vec<_> = events(&found, "put").iter().map(|event| event["name"].clone()).collect();
    assert_eq!(put, [json!("mail"), json!("web")]);
    assert_eq!(events(&found, "answered").len(), 1);
    let absent = get(&[&server, "cluster", &none]);
    assert_eq!((absent.code, absent.err), (1, format!("xds: there is no {none}\n")));
    let of_another = get(&["http://localhost:1", "cluster", &all]);
    assert_eq!(of_another.code, 3);
    assert!(of_another.err.contains("it is not on a server of which documents are fetched"), "{}", of_another.err);
    let secure = get(&[&server, "cluster", &all.replace("http:", "https:")]);
    assert_eq!(secure.code, 1);
    assert!(secure.err.contains("locators have no https: (TP1)"), "{}", secure.err);
    for wrong in [&["cdn", "cluster", &*all][..], &[&server, "--http-ca", "/no/ca.pem", "cluster", &all]] {
        assert_eq!(get(wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_file_that_is_in_no_directory_that_may_be_read_is_said_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join("files");
    fs::create_dir(&files).unwrap();
    let files = files.to_str().unwrap();
    for name in ["file:///elsewhere.yaml".to_owned(), format!("file://{files}s/a.yaml")] {
        let told = run(&["get", "--files", files, "cluster", &name]);
        assert_eq!(told.code, 2, "{name}: {}", told.err);
        assert!(told.err.contains("it is in no directory of --files"), "{}", told.err);
    }
}
