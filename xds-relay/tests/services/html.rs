//! The pages for people, as a browser without script gets them: what is on them, and what is on none of them.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::wire::{Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node, Resource, Status};

use crate::Running;
use crate::pages::{page, page_of};
use crate::stream::{Call, Origin, framed, in_time};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const LDS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

const NODE: &str = "<script>alert(1)</script>";
const NAME: &str = "web\"><i>&'";
const WORDS: &str = "<img src=x onerror=alert(2)>";

/// Every page that links lead to from the first, by its path: each is there, and is as strict as all are.
async fn crawl(relay: &Running) -> BTreeMap<String, String> {
    let (mut pages, mut to_see) = (BTreeMap::new(), BTreeSet::from(["/".to_owned()]));
    while let Some(path) = to_see.pop_first() {
        let (status, head, body) = page_of(relay, "localhost", &path).await;
        assert_eq!(status, 200, "{path}: {body}");
        for strict in [
            "\ncontent-security-policy: default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; \
             frame-ancestors 'none'\r",
            "\nx-content-type-options: nosniff\r",
            "\ncache-control: no-store\r",
        ] {
            assert!(head.contains(strict), "{path}: {head}");
        }
        if head.contains("content-type: text/html") {
            for link in links(&body) {
                assert!(link.starts_with(['/', '#']), "{path} leads to {link}");
                let link = link.split('#').next().unwrap().to_owned();
                if !link.is_empty() && !pages.contains_key(&link) && link != path {
                    to_see.insert(link);
                }
            }
        }
        pages.insert(path, body);
        assert!(pages.len() < 200, "it does not end");
    }
    pages
}

fn links(body: &str) -> Vec<String> {
    let links = body.split(" href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    links.map(|link| link.replace("&amp;", "&")).collect()
}

/// What is in a page, without its tags.
fn text(body: &str) -> String {
    let after_tags = body.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    after_tags.collect::<Vec<_>>().join(" ")
}

fn request(of: DeltaDiscoveryRequest) -> Bytes {
    framed(&DeltaDiscoveryRequest { type_url: CDS.into(), ..of }.encode_to_vec())
}

fn response(version: &str) -> Bytes {
    let resource =
        Some(Any { type_url: CDS.into(), value: [&[0x0a, NAME.len() as u8], NAME.as_bytes()].concat().into() });
    let resource = Resource { name: NAME.into(), version: version.into(), resource, ..Resource::default() };
    let response = DeltaDiscoveryResponse {
        type_url: CDS.into(),
        nonce: version.into(),
        resources: vec![resource],
        ..DeltaDiscoveryResponse::default()
    };
    framed(&response.encode_to_vec())
}

/// A client that rejected what it was sent, of an origin that is there as long as this is.
async fn rejecting(relay: &Running, origin: &Origin) -> impl Sized {
    let mut client = Call::open(relay.address, Protocol::Delta.aggregated_method()).await;
    let node = Node { id: NODE.into(), cluster: "mesh".into(), ..Node::default() }.encode_to_vec().into();
    let first = DeltaDiscoveryRequest { node, resource_names_subscribe: vec![NAME.into()], ..Default::default() };
    client.send(request(first)).await;
    let mut served = origin.accept().await;
    let mut answers = served.respond();
    answers.send_data(response("<7>"), false).unwrap();
    let sent = DeltaDiscoveryResponse::decode(client.message().await.unwrap()).unwrap();
    let error_detail = Some(Status { code: 3, message: WORDS.into() });
    client
        .send(request(DeltaDiscoveryRequest { response_nonce: sent.nonce, error_detail, ..Default::default() }))
        .await;
    in_time(async { while !page(relay, "/clients?state=REJECTED").await.1.contains("/clients/") {} }).await;
    (client, served, answers)
}

#[tokio::test]
async fn a_client_is_found_and_explained_and_whatever_it_wrote_is_text() {
    let origin = Origin::listen().await;
    let relay = Running::start(&format!("[{{ name: up, server: '{}' }}]", origin.address())).await;
    let held = rejecting(&relay, &origin).await;
    let pages = crawl(&relay).await;
    for (path, body) in pages.iter().filter(|(path, _)| !path.starts_with("/api") && !path.starts_with("/config")) {
        for tag in ["<script", "<i>", "<img", "<7>", "style=", "javascript:"] {
            assert!(!body.contains(tag), "{tag} is on {path}: {body}");
        }
    }
    let explained = pages.iter().find(|(path, _)| path.starts_with("/clients/") && path.contains("name=web"));
    let (path, body) = explained.expect("nothing leads to why a client has what it has");
    let said = text(body);
    for words in [
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "REJECTED",
        "web&quot;&gt;&lt;i&gt;&amp;'",
        "The client asked for it by its name.",
        "&lt;7&gt;",
        "&lt;img src=x onerror=alert(2)&gt;",
        "Group or scope",
        "It comes from the origin &quot;up&quot; (delta).",
    ] {
        assert!(said.contains(words), "{words} is not on {path}: {said}");
    }
    let resource = pages.iter().find(|(path, _)| path.starts_with("/resource?")).unwrap().1;
    for words in ["name: &quot;web\\&quot;&gt;&lt;i&gt;&amp;'&quot;", "sent", "Who wants it"] {
        assert!(text(resource).contains(words), "{words}: {resource}");
    }
    assert!(text(&pages["/origins"]).contains("1 of 1"), "{}", pages["/origins"]);
    for path in ["/", "/clients", "/resources", "/origins", path] {
        let twin = links(&pages[path]).into_iter().find(|link| link.starts_with("/api/v1/")).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&pages[&twin]).is_ok(), "{path} → {twin}");
    }
    drop(held);
}

#[tokio::test]
async fn no_page_has_a_secret_and_content_is_yaml() {
    let directory = tempfile::tempdir().unwrap();
    let tls = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext";
    let text = format!(
        "resources:
- {{ '@type': {SDS}, name: s, generic_secret: {{ secret: {{ inline_string: sesame }} }} }}
- '@type': {LDS}
  name: front
  address: {{ socket_address: {{ address: 10.0.0.1, port_value: 80 }} }}
  filter_chains:
  - transport_socket:
      name: tls
      typed_config:
        '@type': {tls}
        common_tls_context: {{ tls_certificates: [{{ private_key: {{ inline_string: sesame }} }}] }}
"
    );
    std::fs::write(directory.path().join("a.yaml"), text).unwrap();
    let relay = Running::start(&format!("[{{ name: mesh, files: '{}' }}]", directory.path().display())).await;
    let pages = crawl(&relay).await;
    for (path, body) in &pages {
        assert!(!body.contains("sesame") && !body.contains("c2VzYW1l"), "{path}: {body}");
    }
    let of =
        |name: &str| pages.iter().find(|(path, _)| path.starts_with("/resource?") && path.ends_with(name)).unwrap().1;
    assert!(of("name=s").contains("Not shown: it is secret"), "{}", of("name=s"));
    let listener = of("name=front");
    for words in ["address:\n  socket_address:\n    address: &quot;10.0.0.1&quot;\n    port_value: 80\n", "(hidden)"] {
        assert!(listener.contains(words), "{words}: {listener}");
    }
}

#[tokio::test]
async fn lists_come_in_pages_and_what_is_not_there_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let mut text = "resources:\n".to_owned();
    (0..250).for_each(|number| text += &format!("- {{ '@type': {CDS}, name: c{number} }}\n"));
    std::fs::write(directory.path().join("a.yaml"), text).unwrap();
    let relay = Running::start(&format!("[{{ name: mesh, files: '{}' }}]", directory.path().display())).await;
    let (mut names, mut pages, mut next) = (BTreeSet::new(), 0, Some("/resources?type=&search=c".to_owned()));
    while let Some(path) = next.take() {
        let (status, body) = page(&relay, &path).await;
        assert_eq!(status, 200, "{path}");
        pages += 1;
        names.extend(links(&body).into_iter().filter(|link| link.starts_with("/resource?")));
        next = body.split_once("rel=\"next\"").map(|(_, rest)| links(rest).remove(0));
    }
    assert_eq!((names.len(), pages), (250, 3));
    let (_, none) = page(&relay, "/resources?search=d").await;
    assert!(none.contains("Nothing like that is held."), "{none}");

    for (path, expected, words) in [
        ("/clients/99", 404, "It is not there"),
        (&format!("/resource?type={CDS}&name=none"), 404, "It is not there"),
        ("/nothing", 404, "/api/v1/status"),
        ("/clients/x", 400, ""),
        ("/clients?state=GONE", 400, "That cannot be asked"),
        ("/clients?sttae=SYNCED", 400, "sttae"),
        ("/resource?type=x/y", 400, "name"),
        ("/resource?type=x&name=y", 400, "no type &quot;x&quot;: give a type URL or one of cluster, "),
    ] {
        let (status, body) = page(&relay, path).await;
        assert_eq!(status, expected, "{path}: {body}");
        assert!(body.contains(words), "{path}: {body}");
    }
    for path in ["/", "/clients", "/resources", "/resource?type=x&name=y", "/origins", "/style.css", "/api/v1/origins"]
    {
        assert_eq!(page_of(&relay, "evil.example", path).await.0, 421, "{path}");
    }
}
