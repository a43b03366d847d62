//! What the draft says otherwise than the final proposal, and how one is translated to the other.

use super::*;

#[test]
fn rule_120_by_the_draft_the_first_request_says_which_field_counts() {
    let mut server = Server::origin();
    change(&mut server, "cart", &[(&parameters(&[("env", "prod")]), "1")], &[]);
    server.put(CLUSTERS, "plain", "7");
    let mut client = Client::new(Dialect::Draft);
    let both = Ask { names: &["plain"], locators: &[("cart", "env=prod")], ..Ask::default() };
    assert_eq!(client.ask(&mut server, &both), ["cart{{env=prod}}@1"]);
    let mut by_names = Client::new(Dialect::Draft);
    assert_eq!(by_names.ask(&mut server, &Ask { names: &["plain"], ..Ask::default() }), ["plain@7"]);
    assert_eq!(by_names.ask(&mut server, &both), ["plain@7"], "asked for anew");
}

#[test]
fn by_the_draft_constraints_select_among_parameters_and_the_largest_is_preferred() {
    let mut server = Server::origin();
    let [three, five] = [&[("shard", "3")], &[("shard", "5")]].map(|pairs| parameters(pairs));
    change(&mut server, "cart", &[(&three, "3"), (&five, "5")], &[]);
    let mut client = Client::new(Dialect::Draft);
    assert_eq!(client.locate(&mut server, &[("cart", "shard in 0..4")]), ["cart{{shard=3}}@3"]);
    let mut wider = Client::new(Dialect::Draft);
    assert_eq!(wider.locate(&mut server, &[("cart", "shard in 0..9")]), ["cart{{shard=5}}@5"]);
    change(&mut server, "cart", &[], &[&five]);
    assert_eq!(wider.poll(&mut server), ["cart{{shard=3}}@3"], "it takes the place of the other");
    change(&mut server, "cart", &[], &[&three]);
    assert_eq!(wider.poll(&mut server), ["-cart"]);
}

#[test]
fn what_one_dialect_says_is_translated_to_the_other() {
    let mut server = Server::origin();
    change(&mut server, "cart", &[(&parameters(&[("env", "prod")]), "1")], &[]);
    change(&mut server, "shop", &[(&constraints("env=prod"), "2")], &[]);
    let asked = [("cart", "env=prod"), ("shop", "env=prod")];
    let mut client = Client::new(Dialect::Final);
    let told = client.locate(&mut server, &asked);
    assert_eq!(told, ["cart{all(not exists(env) or env=prod)}@1 shop{env=prod}@2"]);
    let mut draft = Client::new(Dialect::Draft);
    assert_eq!(draft.locate(&mut server, &asked), ["cart{{env=prod}}@1 shop{{env=prod}}@2"]);
}

#[test]
fn constraints_that_make_no_sense_are_refused_by_name_and_nothing_else() {
    let (mut server, ..) = with_two_variants();
    let mut client = Client::new(Dialect::Draft);
    // A range without bounds: `{shard: [{integer_range_list: {range: {}}}]}`.
    let constraints = b"\x0a\x11\x0a\x05shard\x12\x08\x12\x06\x12\x04\x0a\x02\x08\x05";
    let empty = b"\x0a\x0f\x0a\x05shard\x12\x06\x12\x04\x12\x02\x0a\x00";
    let locator = |name: &[u8], constraints: &[u8]| {
        let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
        [b"\x0a", &[length(name)][..], name, b"\x12", &[length(constraints)], constraints].concat().into()
    };
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: vec![locator(b"bad", empty), locator(b"gone", constraints)],
        ..Default::default()
    };
    client.stream.handle_message(server.now, request.encode_to_vec().into(), &mut server.cache).unwrap();
    let told = client.poll(&mut server).join("; ");
    assert!(told.contains("-gone") && told.contains("-bad") && told.contains("!bad:3"), "{told}");
    assert!(told.contains("key_constraints[\"shard\"]"), "{told}");
}
