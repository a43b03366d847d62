//! Runs `vectors/uri.json`: names as the suites of Envoy, C-core, grpc-go and grpc-java have them, TP1, A47 and RFC 3986.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use xdstp_uri::{
    ContextParams, Directive, Locator, ResourceName, Urn,
    a47::{self, AuthorityEntry, Bootstrap, Servers, Target},
};

/// Vectors (`n`) that are known not to hold. One that holds, or is not there, fails the run.
const EXPECTED_FAILURES: [u64; 0] = [];

#[test]
fn vectors_hold() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("vectors/uri.json")).unwrap();
    assert!(vectors.len() > 150);
    let mut failures = BTreeMap::new();
    for vector in &vectors {
        let (expect, found) = (&vector["expect"], run(vector));
        if expect != &found {
            failures.insert(
                vector["n"].as_u64().unwrap(),
                format!("{}\n  expect {expect}\n  found  {found}", vector["input"]),
            );
        }
    }
    for expected in EXPECTED_FAILURES {
        assert!(failures.remove(&expected).is_some(), "vector {expected} holds: take it off the list");
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

fn run(vector: &Value) -> Value {
    let input = &vector["input"];
    match vector["op"].as_str().unwrap_or("parse") {
        "parse" => parse(input.as_str().unwrap()),
        "equivalent" => json!({"equal": urn(&input[0]) == urn(&input[1])}),
        "match_subscription" => {
            json!({"matches": name(&input["received"]).answers(&name(&input["subscribed"]))})
        }
        "encode_urn" => {
            let urn = Urn::new(
                text(&input["authority"]),
                text(&input["resource_type"]),
                text(&input["id"]),
                &params(&input["context_params"]),
            );
            json!({"canonical": urn.unwrap().to_string()})
        }
        "compose_context_params" => compose(input),
        "check_url_context_params" => match Locator::parse(text(&input["url"])).unwrap().check_reserved_params() {
            Ok(()) => json!({}),
            Err(_) => json!({"error": "reserved_context_param"}),
        },
        "subscribe_collection" => {
            let locator = Locator::parse(text(&input["locator"])).unwrap();
            match locator.to_collection_name(text(&input["expected_type"]), &params(&input["node_context_params"])) {
                Ok(name) => json!({"wire_name": name.as_str()}),
                Err(error) => json!({"error": error.as_str()}),
            }
        }
        "percent_encode_path" => json!({"encoded": a47::percent_encode_path(text(input))}),
        "expand_template" => json!({"name": a47::expand_template(text(&input["template"]), text(&input["value"]))}),
        "default_authority_template" => json!({"template": a47::default_template(text(input))}),
        "lookup_authority" => {
            let known = input["bootstrap_authorities"].as_array().unwrap();
            let authorities: Map<_, _> = known.iter().map(|name| (text(name).to_owned(), json!({}))).collect();
            match a47::look_up_authority(&Json(&json!({"authorities": authorities})), &name(&input["name"])) {
                Ok(lookup) => json!({"authority_lookup": lookup.authority}),
                Err(_) => json!({"error": "unknown_authority"}),
            }
        }
        "resolve_listener" => {
            let target = Target::parse(text(&input["target"])).unwrap();
            match a47::client_listener_name(&Json(&input["bootstrap"]), &target) {
                Ok(name) => only(vector, listener(&input["bootstrap"], &name, Some(&target))),
                Err(error) => json!({"error": error.as_str()}),
            }
        }
        "resolve_server_listener" => {
            let mut bootstrap = json!({"server_listener_resource_name_template": input["template"]});
            let name = a47::server_listener_name(&Json(&bootstrap), text(&input["address"])).unwrap();
            // The vectors have the authority of the template in mind, with no servers of its own.
            if let Some(authority) = name.parse().ok().as_ref().and_then(ResourceName::authority) {
                bootstrap["authorities"] = json!({authority: {}});
            }
            only(vector, listener(&bootstrap, &name, None))
        }
        other => panic!("no such op: {other}"),
    }
}

fn parse(input: &str) -> Value {
    let (urn, url, name) = (Urn::parse(input), Locator::parse(input), ResourceName::parse(input));
    match (urn, url) {
        (Ok(urn), Ok(url)) => {
            assert_eq!(urn.to_name(), url.to_name().unwrap());
            assert_eq!(urn.to_name(), name.unwrap());
            locator(&url)
        }
        (Err(urn), Ok(url)) => {
            let mut found = locator(&url);
            found["urn_error"] = json!(urn.kind().as_str());
            found
        }
        (Err(urn), Err(url)) if input.starts_with("xdstp:") => {
            assert!(name.is_err());
            let found = json!({"error": url.kind().as_str()});
            assert!(urn.kind() == url.kind() || urn.kind().as_str() == "fragment_in_urn", "{found}");
            found
        }
        (Err(urn), Err(url)) => json!({
            "error": urn.kind().as_str(),
            "url_error": url.kind().as_str(),
            "opaque_name": !input.is_empty() && name.unwrap().is_opaque(),
        }),
        (Ok(_), Err(url)) => panic!("a URN that is no locator: {input}: {url}"),
    }
}

fn locator(locator: &Locator<'_>) -> Value {
    let mut found = json!({
        "scheme": locator.scheme().as_str(),
        "authority": locator.authority(),
        "resource_type": locator.resource_type(),
        "id": locator.id(),
        "context_params": map(&locator.context_params()),
        "glob": locator.is_glob(),
        "canonical": locator.to_string(),
    });
    let directives: Vec<Value> = locator
        .directives()
        .map(|directive| match directive {
            Directive::Alt(alt) => json!({"alt": self::locator(&alt)}),
            Directive::Entry(entry) => json!({"entry": entry}),
        })
        .collect();
    if !directives.is_empty() {
        found["directives"] = directives.into();
    }
    found
}

fn compose(input: &Value) -> Value {
    let features: Vec<&str> = input["client_features"].as_array().unwrap().iter().map(text).collect();
    let attributes: Vec<(&str, &str)> =
        input["well_known"].as_object().unwrap().iter().map(|(key, value)| (key.as_str(), text(value))).collect();
    let composed = ContextParams::compose(&params(&input["node"]), &params(&input["resource"]), features, attributes);
    let mut found = json!({"context_params": map(&composed)});
    if let Some(url) = input["url"].as_str() {
        let locator = Locator::parse(url).unwrap();
        let urn = Urn::new(&locator.authority(), &locator.resource_type(), &locator.id(), &composed).unwrap();
        found["urn"] = json!(urn.to_string());
    }
    found
}

fn listener(bootstrap: &Value, listener: &str, target: Option<&Target>) -> Map<String, Value> {
    let style = if listener.starts_with("xdstp:") { "xdstp" } else { "old" };
    let mut found = json!({"listener_name": listener, "style": style});
    if let Ok(name) = ResourceName::parse(listener) {
        found["canonical"] = json!(name.as_str());
        if let Ok(lookup) = a47::look_up_authority(&Json(bootstrap), &name) {
            found["authority_lookup"] = json!(lookup.authority);
            found["servers"] = match lookup.servers {
                Servers::TopLevel => json!("top_level"),
                Servers::Authority => bootstrap["authorities"][lookup.authority.unwrap()]["xds_servers"].clone(),
            };
        }
    }
    if let Some(target) = target {
        found["data_plane_authority"] = json!(target.data_plane_authority(a47::DataPlaneAuthority::WholePath));
    }
    found.as_object().unwrap().clone()
}

/// Of what was found, what the vector looks at.
fn only(vector: &Value, found: Map<String, Value>) -> Value {
    let expect = vector["expect"].as_object().unwrap();
    found.into_iter().filter(|(field, _)| expect.contains_key(field)).collect::<Map<_, _>>().into()
}

struct Json<'a>(&'a Value);

impl Bootstrap for Json<'_> {
    fn client_default_listener_resource_name_template(&self) -> Option<&str> {
        self.0["client_default_listener_resource_name_template"].as_str()
    }

    fn server_listener_resource_name_template(&self) -> Option<&str> {
        self.0["server_listener_resource_name_template"].as_str()
    }

    fn authority(&self, name: &str) -> Option<AuthorityEntry<'_>> {
        self.0["authorities"].get(name).map(|entry| AuthorityEntry {
            client_listener_resource_name_template: entry["client_listener_resource_name_template"].as_str(),
            has_servers: entry["xds_servers"].as_array().is_some_and(|servers| !servers.is_empty()),
        })
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn urn(value: &Value) -> Urn<'_> {
    Urn::parse(text(value)).unwrap()
}

fn name(value: &Value) -> ResourceName {
    ResourceName::parse(text(value)).unwrap()
}

fn params(value: &Value) -> ContextParams<'static> {
    value.as_object().unwrap().iter().map(|(key, value)| (key, text(value))).collect()
}

fn map(params: &ContextParams<'_>) -> Value {
    params.iter().map(|(key, value)| (key.into_owned(), Value::from(value))).collect::<Map<_, _>>().into()
}
