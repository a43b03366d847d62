//! Requests that would be longer than the origin takes.

use std::collections::BTreeSet;

use xds_matcher::DynamicParameters;
use xdstp_cache::Selector;

use super::*;
use crate::Dialect;

const MAX: usize = 4096;

fn small(mut client: Client) -> Client {
    client.stream = client.stream.with_max_request_size(MAX);
    client
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("a name of some length {at:05}")).collect()
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Every request there is, none over the limit.
fn requests(client: &mut Client) -> Vec<DeltaDiscoveryRequest> {
    std::iter::from_fn(|| client.poll())
        .map(|request| {
            assert!(request.len() <= MAX, "{} bytes", request.len());
            DeltaDiscoveryRequest::decode(request).unwrap()
        })
        .collect()
}

fn subscribed(requests: &[DeltaDiscoveryRequest]) -> Vec<String> {
    requests.iter().flat_map(|request| request.resource_names_subscribe.clone()).collect()
}

fn member(at: usize) -> String {
    format!("xdstp://auth/envoy.config.cluster.v3.Cluster/dir/member-{at:05}")
}

#[test]
fn rule_132_names_that_one_request_cannot_hold_go_in_several() {
    let mut client = small(Client::new(Protocol::Delta));
    let names = numbered(1000);
    client.subscribe(EDS, &texts(&names));
    client.connect();
    let sent = requests(&mut client);
    assert!((9..15).contains(&sent.len()), "{}", sent.len());
    assert_eq!(subscribed(&sent), names);
    assert_eq!(sent.iter().filter(|request| !request.node.is_empty()).count(), 1);

    client.unsubscribe(EDS, &texts(&names[1..]));
    let sent = requests(&mut client);
    let left: Vec<_> = sent.iter().flat_map(|request| request.resource_names_unsubscribe.clone()).collect();
    assert_eq!((left, subscribed(&sent)), (names[1..].to_vec(), vec![]));
    assert!(client.poll().is_none());
}

#[test]
fn rule_132_with_the_default_ninety_thousand_names_are_requests_that_every_server_takes() {
    let mut client = Client::new(Protocol::Delta);
    let names: Vec<String> = (0..90_000).map(|at| format!("{}{at:05}", "x".repeat(45))).collect();
    client.subscribe(EDS, &texts(&names));
    client.connect();
    let sizes: Vec<_> = std::iter::from_fn(|| client.poll()).map(|request| request.len()).collect();
    // Whoever handles one of them is soon ready for others.
    assert!(sizes.len() == 44 && sizes.iter().all(|size| *size < 4 << 20 >> 5), "{sizes:?}");
}

#[test]
fn a_name_that_is_longer_than_a_request_should_be_is_asked_for_all_the_same() {
    let mut client = small(Client::new(Protocol::Delta));
    let long = "x".repeat(2 * MAX);
    client.subscribe(EDS, &["a", &long, "y"]);
    client.connect();
    let sent: Vec<_> = std::iter::from_fn(|| client.delta()).collect();
    assert_eq!(sent.iter().map(|request| request.resource_names_subscribe.len()).collect::<Vec<_>>(), [1, 1, 1]);
}

/// Between two pieces what is wanted may change, and what came is acknowledged.
#[test]
fn rule_059_what_is_wanted_between_two_pieces_counts_in_the_next() {
    let mut client = small(Client::new(Protocol::Delta));
    let names = numbered(300);
    client.subscribe(EDS, &texts(&names));
    client.connect();
    let first = client.delta().unwrap();
    let told = first.resource_names_subscribe.len();
    client.unsubscribe(EDS, &[&names[0], &names[told], &names[told + 1]]);
    client.subscribe(EDS, &[&names[0], &names[told]]);
    client.accept(&delta(EDS, "1", &[(&names[1], "1")], &[]));
    let sent = requests(&mut client);
    assert_eq!((sent[0].response_nonce.as_str(), sent[0].resource_names_subscribe.len()), ("1", 0));
    let mut expected = names.clone();
    expected.remove(told + 1);
    expected.drain(1..told);
    assert_eq!(subscribed(&sent), expected);
    assert_eq!(sent.iter().map(|request| request.resource_names_unsubscribe.len()).sum::<usize>(), 0);

    // Asked for again, and given up before that went out: the origin is told that it left.
    client.unsubscribe(EDS, &texts(&names));
    client.subscribe(EDS, &texts(&names));
    let first = client.delta().unwrap();
    let told = first.resource_names_subscribe.len();
    client.unsubscribe(EDS, &texts(&names));
    let left: Vec<_> =
        requests(&mut client).iter().flat_map(|request| request.resource_names_unsubscribe.clone()).collect();
    // All but the one that it was never told of.
    assert!(told > 0 && left.iter().all(|name| names.contains(name)));
    assert_eq!(left.len(), names.len() - 1);
}

/// Versions of later requests are ignored: what became of a member that the first has no room for is asked by its name.
#[test]
fn rule_085_members_whose_versions_the_first_request_cannot_hold_are_asked_for_by_name() {
    for collection in [GLOB, "*"] {
        let mut client = small(Client::subscribed(Protocol::Delta, CDS, &[collection, "named"]));
        let members: Vec<_> = (0..200).map(member).collect();
        let resources: Vec<_> = members.iter().map(|member| (member.as_str(), "a version")).collect();
        client.accept(&delta(CDS, "1", &resources, &[]));
        client.accept(&delta(CDS, "2", &[("named", "1")], &[]));
        client.reconnect();
        let sent = requests(&mut client);
        let (first, later) = sent.split_first().unwrap();
        assert_eq!(first.resource_names_subscribe[0], collection);
        let told: BTreeSet<_> =
            initial_versions(first).into_iter().map(|(name, _)| name).filter(|name| name != "named").collect();
        assert!(later.iter().all(|request| request.initial_resource_versions.is_empty()));
        let asked = subscribed(later);
        let by_name: BTreeSet<_> = asked.iter().filter(|name| *name != "named").cloned().collect();
        assert!(told.len() > 20 && told.is_disjoint(&by_name));
        assert_eq!(told.union(&by_name).cloned().collect::<BTreeSet<_>>(), members.iter().cloned().collect());

        // What is there is as it was, what is not is gone, and there is nothing left of the names when nobody wants them.
        let (gone, there) = (by_name.first().unwrap(), by_name.last().unwrap());
        let mut response = delta(CDS, "3", &[(there, "a version")], &[]);
        response.removed_resources = vec![gone.clone()];
        let update = client.accept(&response);
        assert_eq!((update.changed.len(), update.removed), (0, vec![name(gone)]));
        while client.poll().is_some() {}
        client.unsubscribe(CDS, &[collection]);
        let sent = requests(&mut client);
        let left: BTreeSet<_> =
            sent.iter().flat_map(|request| request.resource_names_unsubscribe.iter().cloned()).collect();
        let mut expected = by_name;
        expected.insert(collection.to_owned());
        assert_eq!(left, expected);
        client.reconnect();
        assert_eq!(subscribed(&requests(&mut client)), ["named"]);
    }
}

#[test]
fn rule_060_a_wildcard_whose_members_are_asked_for_by_name_is_named_too() {
    let mut client = small(Client::subscribed(Protocol::Delta, CDS, &["*"]));
    let names = numbered(200);
    let resources: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    client.accept(&delta(CDS, "1", &resources, &[]));
    client.reconnect();
    let sent = requests(&mut client);
    assert_eq!(sent[0].resource_names_subscribe, ["*"]);
    client.stream = client.stream.with_max_request_size(1 << 20);
    client.reconnect();
    let only = client.delta().unwrap();
    assert_eq!((only.resource_names_subscribe.len(), only.initial_resource_versions.len()), (0, 200));
    assert!(client.poll().is_none());
}

/// Every SotW request names all that is wanted: the names that make it too long are refused, and no others.
#[test]
fn rule_058_names_that_a_sotw_request_cannot_hold_are_refused_as_they_come() {
    let mut client = small(Client::new(Protocol::Sotw));
    let names = numbered(200);
    client.subscribe(EDS, &texts(&names));
    client.connect();
    let mut refused = Vec::new();
    while let Some(update) = client.update() {
        let [(failing, error)] = update.errors.as_slice() else { panic!("{update:?}") };
        assert_eq!((error.code, error.is_transient()), (8, true));
        assert!(error.message.ends_with("of at most 4096 bytes, cannot name this too"), "{error}");
        refused.push(failing.to_string());
    }
    let request = client.poll().unwrap();
    assert!(request.len() <= MAX);
    let request = DiscoveryRequest::decode(request).unwrap();
    assert!(refused.len() > 50);
    assert_eq!([request.resource_names, refused.clone()].concat(), names);

    client.subscribe(EDS, &[&names[0]]);
    assert!(client.update().is_none(), "it is asked for already");
    client.subscribe(CDS, &["another type has a request of its own"]);
    assert!(client.update().is_none());
    client.unsubscribe(EDS, &texts(&names[..100]));
    client.subscribe(EDS, &texts(&refused));
    assert!(client.update().is_none(), "there is room now");
    let asked = std::iter::from_fn(|| client.sotw()).find(|request| request.type_url == EDS).unwrap();
    assert_eq!(asked.resource_names, names[100..]);
}

#[test]
fn rule_058_a_name_that_leaves_makes_room_for_one_of_its_length() {
    let mut client = small(Client::new(Protocol::Sotw));
    let names = numbered(200);
    client.subscribe(EDS, &texts(&names));
    let refused: Vec<_> = std::iter::from_fn(|| client.update()).map(|update| update.errors[0].0.to_string()).collect();
    client.unsubscribe(EDS, &[&names[7]]);
    client.subscribe(EDS, &texts(&refused[..3]));
    let again: Vec<_> = std::iter::from_fn(|| client.update()).map(|update| update.errors[0].0.to_string()).collect();
    assert_eq!(again, refused[1..3]);
}

#[test]
fn rule_085_a_member_that_was_asked_for_by_its_name_is_left_with_the_alias_that_kept_it() {
    const HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
    let mut client = small(Client::subscribed(Protocol::Delta, HOSTS, &["*", "alias"]));
    let members = numbered(200);
    let resources: Vec<_> = members.iter().map(|member| (member.as_str(), "a version")).collect();
    client.accept(&delta(HOSTS, "1", &resources, &[]));
    client.reconnect();
    let asked = subscribed(&requests(&mut client)[1..]);
    let there = asked.iter().rfind(|name| *name != "alias").unwrap();
    let mut response = delta(HOSTS, "2", &[(there, "a version")], &[]);
    response.resources[0].aliases = vec!["alias".into()];
    client.accept(&response);
    let mut leave = |interest: &str| -> BTreeSet<_> {
        client.unsubscribe(HOSTS, &[interest]);
        let sent = requests(&mut client);
        sent.iter().flat_map(|request| request.resource_names_unsubscribe.iter().cloned()).collect()
    };
    assert!(!leave("*").contains(there), "it is wanted by its alias");
    assert_eq!(leave("alias"), BTreeSet::from(["alias".to_owned(), there.clone()]));
}

#[test]
fn rule_132_what_goes_beside_each_name_counts_with_its_version() {
    let parameters = DynamicParameters::from_iter([("a parameter", "that is as long as a name")]);
    let mut client = small(Client::new(Protocol::Delta));
    client.stream = client.stream.selecting(Dialect::Final, Selector::Parameters(parameters)).unwrap();
    let names = numbered(200);
    client.subscribe(EDS, &texts(&names));
    client.connect();
    requests(&mut client);
    client.accept(&delta(EDS, "1", &names.iter().map(|name| (name.as_str(), "1")).collect::<Vec<_>>(), &[]));
    client.reconnect();
    let sent = requests(&mut client);
    assert_eq!(sent.iter().map(|request| request.resource_locators_subscribe.len()).sum::<usize>(), 200);
    assert!(sent[0].initial_resource_versions.len() > 20);
}

/// A server that was told of it, and is not asked for it yet, says that it is gone (rule 84).
#[test]
fn rule_084_no_version_is_told_of_what_is_asked_for_by_an_alias_only_later() {
    const HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
    let aliases = |at: usize| [format!("an alias {at:05}"), format!("another one {at:05}")];
    let names = numbered(100);
    let all: Vec<_> = (0..names.len()).flat_map(aliases).collect();
    for collection in [None, Some("*")] {
        let mut client = small(Client::new(Protocol::Delta));
        client.subscribe(HOSTS, &collection.into_iter().chain(texts(&all)).collect::<Vec<_>>());
        client.connect();
        requests(&mut client);
        let resources: Vec<_> = names.iter().map(|name| (name.as_str(), "a version")).collect();
        let mut response = delta(HOSTS, "1", &resources, &[]);
        response.resources.iter_mut().enumerate().for_each(|(at, host)| host.aliases = aliases(at).into());
        client.accept(&response);
        client.reconnect();
        let sent = requests(&mut client);
        let first = sent.first().unwrap();
        let told: BTreeSet<_> = initial_versions(first).into_iter().map(|(name, _)| name).collect();
        assert!((10..100).contains(&told.len()), "{}", told.len());
        let asked: BTreeSet<_> = first.resource_names_subscribe.iter().cloned().collect();
        for (at, name) in names.iter().enumerate().filter(|(_, name)| told.contains(*name)) {
            assert!(aliases(at).iter().all(|alias| asked.contains(alias)), "{name}");
        }
        // The others are asked for by their names, and everything is asked for once.
        let by_name = names.iter().filter(|name| !told.contains(*name));
        let mut expected: Vec<_> = by_name.chain(&all).cloned().chain(collection.map(str::to_owned)).collect();
        expected.sort_unstable();
        let mut subscribed = subscribed(&sent);
        subscribed.sort_unstable();
        assert_eq!(subscribed, expected);
    }
}
