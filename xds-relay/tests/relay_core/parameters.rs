//! Dynamic parameters (TP2) through relays: what is asked of the origin, and who is served which variant.

use xds_matcher::DynamicParameters;
use xds_matcher::draft::Subscription;
use xds_relay::api::{ClientQuery, ExplainQuery, NameQuery};
use xdstp_cache::{Selector, Variant};

use crate::support::{CLUSTERS, DELTA, ENDPOINTS, Feeder, LINGER, Protocol, SECOND, SOTW, World};

pub(crate) fn sends(pairs: &[(&str, &str)]) -> Selector {
    Selector::Parameters(DynamicParameters::from_iter(pairs.iter().copied()))
}

/// By the draft.
pub(crate) fn wants(text: &str) -> Selector {
    Selector::Constraints(Subscription::where_present(&text.parse().unwrap()).unwrap())
}

pub(crate) fn constraints(text: &str) -> Variant {
    Variant::Constraints(text.parse().unwrap())
}

pub(crate) fn parameters(pairs: &[(&str, &str)]) -> Variant {
    Variant::Parameters(DynamicParameters::from_iter(pairs.iter().copied()))
}

/// Relays one behind the other, as many as there are forms of TP2, the first at the origin, which speaks the first form. The
/// last one is before the clients.
pub(crate) fn chain(protocol: Protocol, forms: &[&str]) -> (World, usize) {
    let mut world = World::empty();
    let mut feeder = Feeder::Origin(0);
    world.origins.push(crate::support::Origin::new());
    let mut last = 0;
    for (at, form) in forms.iter().enumerate() {
        let below = forms.get(at + 1).unwrap_or(form);
        let protocol = if protocol == DELTA { "delta" } else { "sotw" };
        let text = format!(
            "origins:\n  - name: up\n    server: 127.0.0.1:1\n    protocol: {protocol}\n    dynamic_parameters: {form}\n\
             dynamic_parameters: {below}\n"
        );
        last = world.add_relay(&text, vec![feeder]);
        feeder = Feeder::Relay(last);
    }
    (world, last)
}

pub(crate) fn vary(world: &mut World, of: &str, name: &str, put: &[(&Variant, &str)], gone: &[&Variant]) {
    let now = world.now;
    world.origins[0].vary(now, of, name, put, gone);
    world.settle();
}

pub(crate) const BOTH: [Protocol; 2] = [DELTA, SOTW];

#[test]
fn each_client_is_served_what_its_own_parameters_select() {
    for protocol in BOTH {
        let (mut world, last) = chain(protocol, &["final", "final"]);
        let [prod, test] = ["env=prod", "env=test"].map(constraints);
        vary(&mut world, CLUSTERS, "cart", &[(&prod, "1"), (&test, "2")], &[]);
        let clients = ["prod", "test", "qa"].map(|env| world.client_selecting(last, protocol, sends(&[("env", env)])));
        for client in clients {
            world.clients[client].subscribe(CLUSTERS, &["cart"]);
        }
        world.settle();
        let held = |world: &World| clients.map(|client| world.clients[client].held(CLUSTERS).join(" "));
        assert_eq!(held(&world), ["cart@1", "cart@2", ""], "{protocol:?}");
        vary(&mut world, CLUSTERS, "cart", &[(&test, "3")], &[]);
        assert_eq!(held(&world), ["cart@1", "cart@3", ""], "{protocol:?}");
        // The two change places in one step: nobody is without.
        let [other, others] = ["env=prod and not v=2", "env=test or v=2"].map(constraints);
        for client in clients {
            world.clients[client].told.clear();
        }
        vary(&mut world, CLUSTERS, "cart", &[(&other, "4"), (&others, "5")], &[&prod, &test]);
        assert_eq!(held(&world), ["cart@4", "cart@5", ""], "{protocol:?}");
        let told = |client: usize| world.clients[client].told.join("; ");
        assert_eq!([told(clients[0]), told(clients[1])], ["Cluster cart@4", "Cluster cart@5"], "{protocol:?}");
        vary(&mut world, CLUSTERS, "cart", &[], &[&other]);
        assert_eq!(held(&world), ["", "cart@5", ""], "{protocol:?}");
    }
}

#[test]
fn it_is_explained_which_variant_a_client_has_and_by_which_parameters() {
    for protocol in BOTH {
        let (mut world, last) = chain(protocol, &["final"]);
        vary(
            &mut world,
            CLUSTERS,
            "cart",
            &[(&constraints("env=prod"), "1"), (&constraints("not env=prod"), "2")],
            &[],
        );
        for selector in [sends(&[("env", "prod")]), sends(&[("env", "qa")]), Selector::default()] {
            let client = world.client_selecting(last, protocol, selector);
            world.clients[client].subscribe(CLUSTERS, &["cart"]);
        }
        world.settle();
        let core = &world.relays[last].core;
        let query = ExplainQuery { type_url: Some(CLUSTERS.to_owned()), name: Some("cart".to_owned()) };
        let ids = core.clients(&ClientQuery::default(), world.now).clients.into_iter().map(|row| row.id);
        let explained: Vec<_> = ids.filter_map(|id| core.client(id, &query, world.now)?.explained).collect();
        let told: Vec<_> = explained
            .iter()
            .map(|of| [&of.parameters, &of.variant, &of.version].map(|text| text.as_deref().unwrap_or("-")).join(" "))
            .collect();
        assert_eq!(told, ["{env=prod} env=prod 1", "{env=qa} not env=prod 2", "- - 2"], "{protocol:?}");
        for words in ["by its name, with \"{env=prod}\".", "version is \"1\", the variant for \"env=prod\"."] {
            assert!(explained[0].reasons.iter().any(|reason| reason.contains(words)), "{:?}", explained[0].reasons);
        }
        let named = core.resource(&NameQuery { type_url: CLUSTERS.to_owned(), name: "cart".to_owned() });
        let mut held: Vec<_> = named.iter().map(|found| (&found.held.parameters, &found.held.variant)).collect();
        held.sort();
        let some = |text: &str| Some(text.to_owned());
        let expected = [(None, None), (some("{env=prod}"), some("env=prod")), (some("{env=qa}"), some("not env=prod"))];
        assert_eq!(held, expected.each_ref().map(|(one, other)| (one, other)), "{protocol:?}");
    }
}

#[test]
fn clients_that_send_the_same_are_one_to_the_origin_and_others_are_not() {
    let (mut world, last) = chain(DELTA, &["final"]);
    vary(&mut world, CLUSTERS, "cart", &[(&constraints("env=prod"), "1"), (&constraints("not env=prod"), "2")], &[]);
    let name = "cart";
    for env in ["prod", "prod", "test"] {
        let client = world.client_selecting(last, DELTA, sends(&[("env", env)]));
        world.clients[client].subscribe(CLUSTERS, &[name]);
    }
    let plain = world.client_of(last, DELTA, "n");
    world.clients[plain].subscribe(CLUSTERS, &[name]);
    world.settle();
    let mut asked = world.origins[0].asked.clone();
    asked.sort();
    assert_eq!(asked, ["n Cluster +cart", "n Cluster +cart{env=prod}", "n Cluster +cart{env=test}"]);
    assert_eq!(world.origins[0].streams, 3);
    assert_eq!(world.clients[plain].held(CLUSTERS), ["cart@2"]);
    // Who leaves is missed by the origin once nobody sends the same any more.
    for client in [0, 1] {
        world.clients[client].unsubscribe(CLUSTERS, &[name]);
        world.advance(LINGER + SECOND);
        world.settle();
        let left = world.origins[0].asked.iter().filter(|line| line.contains('-')).count();
        assert!(client == 1 || left == 0, "{:?}", world.origins[0].asked);
    }
    assert_eq!(world.clients[2].held(CLUSTERS), ["cart@2"]);
}

#[test]
fn a_relay_that_lost_its_origin_serves_who_comes_what_others_selected_alike() {
    for protocol in BOTH {
        let (mut world, last) = chain(protocol, &["final"]);
        vary(&mut world, CLUSTERS, "cart", &[(&constraints("env=prod"), "1")], &[]);
        let first = world.client_selecting(last, protocol, sends(&[("env", "prod")]));
        world.clients[first].subscribe(CLUSTERS, &["cart"]);
        world.settle();
        world.origins[0].up = false;
        world.settle();
        let [same, other] = ["prod", "test"].map(|env| world.client_selecting(last, protocol, sends(&[("env", env)])));
        for client in [same, other] {
            world.clients[client].subscribe(CLUSTERS, &["cart"]);
        }
        world.settle();
        assert_eq!(world.clients[same].held(CLUSTERS), ["cart@1"], "{protocol:?}");
        assert_eq!(world.clients[other].held(CLUSTERS), [""; 0], "{protocol:?}");
        assert_eq!(world.clients[other].told, [""; 0], "it is not known to be absent: {protocol:?}");
    }
}

/// The draft's example of ranges: the largest is preferred, whatever the relay has of smaller ones.
#[test]
fn by_the_draft_what_a_relay_has_hides_nothing_larger_upstream() {
    for protocol in BOTH {
        let (mut world, last) = chain(protocol, &["draft", "draft"]);
        let [three, five] = ["3", "5"].map(|shard| parameters(&[("shard", shard)]));
        vary(&mut world, CLUSTERS, "cart", &[(&three, "3"), (&five, "5")], &[]);
        let narrow = world.client_selecting(last, protocol, wants("shard in 0..4"));
        world.clients[narrow].subscribe(CLUSTERS, &["cart"]);
        world.settle();
        assert_eq!(world.clients[narrow].held(CLUSTERS), ["cart@3"], "{protocol:?}");
        let wide = world.client_selecting(last, protocol, wants("shard in 0..5"));
        world.clients[wide].subscribe(CLUSTERS, &["cart"]);
        world.settle();
        assert_eq!(world.clients[wide].held(CLUSTERS), ["cart@5"], "{protocol:?}");
        vary(&mut world, CLUSTERS, "cart", &[], &[&five]);
        assert_eq!(world.clients[wide].held(CLUSTERS), ["cart@3"], "{protocol:?}");
    }
}

/// The draft's dynamic route selection: nine combinations of parameters, four contents, here in the final form.
#[test]
fn nine_combinations_share_four_contents() {
    for protocol in BOTH {
        let (mut world, last) = chain(protocol, &["final", "final"]);
        let four = [
            "env=prod and version=v1",
            "env=prod and not version=v1",
            "not env=prod and version=v1",
            "not env=prod and not version=v1",
        ]
        .map(constraints);
        let put: Vec<_> = four.iter().zip(["both", "env", "version", "neither"]).collect();
        vary(&mut world, ENDPOINTS, "routes", &put, &[]);
        for env in ["prod", "canary", "test"] {
            for version in ["v1", "v2", "v3"] {
                let selector = sends(&[("env", env), ("version", version)]);
                let client = world.client_selecting(last, protocol, selector);
                world.clients[client].subscribe(ENDPOINTS, &["routes"]);
                world.settle();
                let expected = match (env, version) {
                    ("prod", "v1") => "both",
                    ("prod", _) => "env",
                    (_, "v1") => "version",
                    _ => "neither",
                };
                assert_eq!(world.clients[client].held(ENDPOINTS), [format!("routes@{expected}")], "{protocol:?}");
            }
        }
    }
}

#[test]
fn exact_values_are_translated_from_form_to_form() {
    for protocol in BOTH {
        for forms in [["final", "draft"], ["draft", "final"]] {
            let (mut world, last) = chain(protocol, &forms);
            let is_draft = forms[0] == "draft";
            let [prod, test] = ["prod", "test"].map(|env| match is_draft {
                true => parameters(&[("env", env)]),
                false => constraints(&format!("env={env}")),
            });
            vary(&mut world, CLUSTERS, "cart", &[(&prod, "1"), (&test, "2")], &[]);
            let selector = if is_draft { sends(&[("env", "test")]) } else { wants("env=test") };
            let client = world.client_selecting(last, protocol, selector);
            world.clients[client].subscribe(CLUSTERS, &["cart"]);
            world.settle();
            assert_eq!(world.clients[client].held(CLUSTERS), ["cart@2"], "{protocol:?} {forms:?}");
            vary(&mut world, CLUSTERS, "cart", &[(&test, "3")], &[&prod]);
            assert_eq!(world.clients[client].held(CLUSTERS), ["cart@3"], "{protocol:?} {forms:?}");
        }
    }
}

#[test]
fn what_the_origin_cannot_be_asked_ends_the_stream_and_names_the_constraint() {
    // The relay of the two that asks the origin.
    let (mut world, _) = chain(DELTA, &["final", "draft"]);
    let other = world.client_selecting(0, DELTA, wants("env=prod"));
    let client = world.client_selecting(0, DELTA, wants("shard in 0..4"));
    vary(&mut world, CLUSTERS, "cart", &[(&constraints("env=prod"), "1")], &[]);
    for client in [other, client] {
        world.clients[client].subscribe(CLUSTERS, &["cart"]);
    }
    world.settle();
    let told = world.clients[client].told.join("; ");
    assert!(told.starts_with("ended 3: ") && told.contains("key_constraints[\"shard\"]"), "{told}");
    assert_eq!(world.clients[other].held(CLUSTERS), ["cart@1"]);
}

/// Each has a stream upstream of its own, as a node group has.
#[test]
fn what_is_fetched_with_parameters_for_one_client_counts_among_the_groups() {
    let mut world = World::empty();
    world.origins.push(crate::support::Origin::new());
    let limits = "origins: [{ name: up, server: '127.0.0.1:1' }]\nlimits: { groups: 3 }";
    let relay = world.add_relay(limits, vec![Feeder::Origin(0)]);
    let now = world.now;
    world.origins[0].put_uncached(now, "", CLUSTERS, "cart", "1");
    let [first, second] = ["1", "2"].map(|at| world.client_selecting(relay, DELTA, sends(&[("n", at)])));
    for client in [first, second] {
        world.clients[client].subscribe(CLUSTERS, &["cart"]);
        world.settle();
    }
    assert_eq!(world.clients[first].held(CLUSTERS), ["cart@1"]);
    let told = world.clients[second].told.join("; ");
    assert!(told.contains("ended 8: more than 3 node groups (limits.groups of the relay)"), "{told}");
    assert!(!world.clients[first].told.join("; ").contains("ended"), "{:?}", world.clients[first].told);
}

#[test]
fn what_must_not_be_shared_is_fetched_with_the_parameters_of_who_asks() {
    let (mut world, last) = chain(DELTA, &["final"]);
    let now = world.now;
    world.origins[0].put_uncached(now, "", CLUSTERS, "cart", "1");
    let [prod, test] = ["prod", "test"].map(|env| world.client_selecting(last, DELTA, sends(&[("env", env)])));
    for client in [prod, test] {
        world.clients[client].subscribe(CLUSTERS, &["cart"]);
    }
    world.settle();
    for client in [prod, test] {
        assert_eq!(world.clients[client].held(CLUSTERS), ["cart@1"]);
    }
    let with = |env: &str| world.origins[0].asked.iter().filter(|line| line.contains(&format!("env={env}"))).count();
    assert_eq!([with("prod"), with("test")], [2, 2], "{:?}", world.origins[0].asked);
}

/// What a server says of which constraints a client is to send is for that client alone (DPDS).
#[test]
fn which_constraints_to_send_is_never_shared() {
    const MAPS: &str = "type.googleapis.com/envoy.config.dynamic_parameters.v3.DynamicParameterConstraintsMap";
    let (mut world, last) = chain(DELTA, &["draft"]);
    let now = world.now;
    // It does not say that it must not be shared.
    world.origins[0].put(now, MAPS, "my", "1");
    for _ in 0..2 {
        let client = world.client_selecting(last, DELTA, Selector::default());
        world.clients[client].subscribe(MAPS, &["my"]);
    }
    world.settle();
    for client in 0..2 {
        assert_eq!(world.clients[client].held(MAPS), ["my@1"]);
    }
    assert_eq!(world.origins[0].asked.len(), 3, "one for all, and one for each: {:?}", world.origins[0].asked);
}
