//! What of the draft's examples the final form can say, too: in chains of two relays of either form and of both.
//! `proposal_draft` says which example is tried where.

use xds_transport::Dialect;
use xdstp_cache::{Selector, Variant};

use crate::parameters::{chain, constraints, parameters, sends, vary, wants};
use crate::support::{CLUSTERS, DELTA, ENDPOINTS, Protocol, SOTW, Wire, World, endpoints};

const MAPS: &str = "type.googleapis.com/envoy.config.dynamic_parameters.v3.DynamicParameterConstraintsMap";
const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const SCOPED_ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";

type Pairs<'a> = &'a [(&'a str, &'a str)];

/// Two relays: what the origin speaks, and what the clients do.
#[derive(Clone, Copy, Debug)]
struct Way {
    upstream: Protocol,
    downstream: Protocol,
    forms: [&'static str; 2],
}

impl Way {
    fn of(forms: [&'static str; 2]) -> [Self; 4] {
        let ways = [(DELTA, DELTA), (DELTA, SOTW), (SOTW, DELTA), (SOTW, SOTW)];
        ways.map(|(upstream, downstream)| Self { upstream, downstream, forms })
    }

    /// Either protocol and either form, on either side.
    fn every() -> impl Iterator<Item = Self> {
        let forms = [["draft", "draft"], ["draft", "final"], ["final", "draft"], ["final", "final"]];
        forms.into_iter().flat_map(Self::of)
    }

    fn world(self) -> (World, usize) {
        chain(self.upstream, &self.forms)
    }

    /// What the origin has for whom these are.
    fn variant(self, pairs: Pairs) -> Variant {
        let all: Vec<_> = pairs.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
        if self.forms[0] == "draft" { parameters(pairs) } else { constraints(&all.join(" and ")) }
    }

    fn client(self, world: &World, relay: usize, id: &str) -> Wire {
        let dialect = if self.forms[1] == "draft" { Dialect::Draft } else { Dialect::Final };
        Wire::new(world, relay, self.downstream, dialect, id)
    }

    /// Those of a client each that asks for a name with these.
    fn clients<const N: usize>(
        self,
        world: &mut World,
        relay: usize,
        (of, name): (&'static str, &str),
        sent: [Pairs; N],
    ) -> [Wire; N] {
        sent.map(|pairs| {
            let mut client = self.client(world, relay, "n");
            client.ask(world, of, name, sends(pairs));
            client
        })
    }
}

/// What each has been told last of a type, once everything has been told.
fn told<const N: usize>(world: &mut World, clients: &mut [Wire; N], of: &str) -> [String; N] {
    clients.iter_mut().for_each(|client| client.read(world));
    clients.each_ref().map(|client| client.last(of).to_owned())
}

/// "Sharding Clusters" by one value for SRDS, "Sharding Endpoints" and "Selecting Cluster Based on ACL": constraints that are one
/// exact value. Another value later is asked for on the same stream.
#[test]
fn exact_values_select_in_either_form() {
    const SHARDS: [&str; 2] = ["[4-6],[11-15],[46-90]", "[1-3]"];
    let subset = endpoints("a", "cart");
    for way in Way::every() {
        for (of, name, key, values) in [
            (SCOPED_ROUTES, "scopes", "shards", SHARDS),
            (ENDPOINTS, &*subset, "subset_id", ["123", "456"]),
            (ROUTES, "routes", "use_proxy", ["true", "false"]),
        ] {
            let (mut world, last) = way.world();
            let variants = values.map(|value| way.variant(&[(key, value)]));
            let put: Vec<_> = variants.iter().zip(values).collect();
            vary(&mut world, of, name, &put, &[]);
            let sent = values.map(|value| [(key, value)]);
            let mut clients = way.clients(&mut world, last, (of, name), sent.each_ref().map(|pairs| &pairs[..]));
            assert_eq!(told(&mut world, &mut clients, of), values, "{way:?} {key}");
            vary(&mut world, of, name, &[(&variants[0], "new")], &[]);
            assert_eq!(told(&mut world, &mut clients, of), ["new", values[1]], "{way:?} {key}");
            clients[1].ask(&mut world, of, name, sends(&sent[0]));
            assert_eq!(told(&mut world, &mut clients, of), ["new", "new"], "{way:?} {key}");
            vary(&mut world, of, name, &[(&variants[1], "for nobody")], &[]);
            assert_eq!(told(&mut world, &mut clients, of), ["new", "new"], "{way:?} {key}");
        }
    }
}

/// "The expected order of changes": 1. clients send version=v1, 2. all resources get it, 3. there are variants with version=v2,
/// 4. some clients send that instead. Nobody who sends what the text says is ever without, or has what is for others.
#[test]
fn a_key_that_clients_send_first_in_either_form() {
    for way in Way::every() {
        let (mut world, last) = way.world();
        let [prod, test] = ["prod", "test"].map(|env| way.variant(&[("env", env)]));
        vary(&mut world, CLUSTERS, "cart", &[(&prod, "prod"), (&test, "test")], &[]);
        let sent: [Pairs; 2] = [&[("env", "prod")], &[("env", "test")]];
        let mut clients = way.clients(&mut world, last, (CLUSTERS, "cart"), sent);
        assert_eq!(told(&mut world, &mut clients, CLUSTERS), ["prod", "test"], "{way:?}");

        for (client, env) in clients.iter_mut().zip(["prod", "test"]) {
            client.ask(&mut world, CLUSTERS, "cart", sends(&[("env", env), ("version", "v1")]));
        }
        assert_eq!(told(&mut world, &mut clients, CLUSTERS), ["prod", "test"], "1: {way:?}");

        let of = |version| ["prod", "test"].map(|env| way.variant(&[("env", env), ("version", version)]));
        let [prod_1, test_1] = of("v1");
        vary(&mut world, CLUSTERS, "cart", &[(&prod_1, "prod 1"), (&test_1, "test 1")], &[&prod, &test]);
        assert_eq!(told(&mut world, &mut clients, CLUSTERS), ["prod 1", "test 1"], "2: {way:?}");

        let [prod_2, test_2] = of("v2");
        vary(&mut world, CLUSTERS, "cart", &[(&prod_2, "prod 2"), (&test_2, "test 2")], &[]);
        assert_eq!(told(&mut world, &mut clients, CLUSTERS), ["prod 1", "test 1"], "3: {way:?}");

        clients[0].ask(&mut world, CLUSTERS, "cart", sends(&[("env", "prod"), ("version", "v2")]));
        assert_eq!(told(&mut world, &mut clients, CLUSTERS), ["prod 2", "test 1"], "4: {way:?}");
        for client in clients {
            let others = if client.last(CLUSTERS) == "prod 2" { "test" } else { "prod" };
            let all = &client.bodies[CLUSTERS];
            assert!(all.iter().all(|body| !body.starts_with(others) && !body.is_empty()), "{way:?} {all:?}");
        }
    }
}

/// "If the new key is added on the server side first": where the final form is spoken, what asks for a key is not for those who do
/// not send it, and they have nothing until they do.
#[test]
fn in_the_final_form_a_key_that_the_server_has_first_is_for_those_who_send_it() {
    for way in Way::of(["final", "final"]) {
        let (mut world, last) = way.world();
        let prod = way.variant(&[("env", "prod")]);
        vary(&mut world, CLUSTERS, "cart", &[(&prod, "prod")], &[]);
        let client = world.client_selecting(last, way.downstream, sends(&[("env", "prod")]));
        world.subscribe(client, CLUSTERS, &["cart"]);
        assert_eq!(world.clients[client].bodies(CLUSTERS), ["prod"], "{way:?}");
        let [v1, v2] = ["v1", "v2"].map(|version| way.variant(&[("env", "prod"), ("version", version)]));
        vary(&mut world, CLUSTERS, "cart", &[(&v1, "1"), (&v2, "2")], &[&prod]);
        assert_eq!(world.clients[client].bodies(CLUSTERS), [""; 0], "{way:?}");
        for (version, body) in [("v1", "1"), ("v2", "2")] {
            let client = world.client_selecting(last, way.downstream, sends(&[("env", "prod"), ("version", version)]));
            world.subscribe(client, CLUSTERS, &["cart"]);
            assert_eq!(world.clients[client].bodies(CLUSTERS), [body], "{way:?} {version}");
        }
    }
}

/// "xDS Minor/Patch Version Negotiation": the final form has no ranges. Clients say what they are, and which of them a variant is
/// for says the server.
#[test]
fn version_negotiation_in_the_final_form() {
    const PATCH: &str = "xds.version.patch";
    for way in Way::of(["final", "final"]) {
        let (mut world, last) = way.world();
        let before = (0..5).map(|patch| format!("{PATCH}={patch}")).collect::<Vec<_>>().join(" or ");
        let [old, new] = [before.clone(), format!("not ({before})")].map(|text| constraints(&text));
        vary(&mut world, CLUSTERS, "cart", &[(&old, "old"), (&new, "new")], &[]);
        for (patch, expected) in [("0", "old"), ("4", "old"), ("5", "new"), ("7", "new")] {
            let client = world.client_selecting(last, way.downstream, sends(&[(PATCH, patch)]));
            world.subscribe(client, CLUSTERS, &["cart"]);
            assert_eq!(world.clients[client].bodies(CLUSTERS), [expected], "{way:?} 3.0.{patch}");
        }
    }
}

/// "The shard assignments [...] may change at any time": in one request, on the stream that had another assignment.
#[test]
fn a_shard_assignment_changes_on_its_stream() {
    for way in Way::of(["draft", "draft"]) {
        let (mut world, last) = way.world();
        // Over SotW there are no globs: what stands for one is all that there is.
        let both_delta = way.upstream == DELTA && way.downstream == DELTA;
        let (prefix, all) = match both_delta {
            true => ("xdstp://a/envoy.config.cluster.v3.Cluster/", "xdstp://a/envoy.config.cluster.v3.Cluster/*"),
            false => ("", "*"),
        };
        for at in [3, 4, 7, 15, 46, 91] {
            let shard = parameters(&[("shards", &at.to_string())]);
            vary(&mut world, CLUSTERS, &format!("{prefix}{at:03}"), &[(&shard, &at.to_string())], &[]);
        }
        let mut client = way.client(&world, last, "n");
        client.ask(&mut world, CLUSTERS, all, wants("shards in 4..6,11..15,46..90"));
        assert_eq!(client.bodies[CLUSTERS], ["4", "15", "46"], "{way:?}");
        client.bodies.clear();
        client.ask(&mut world, CLUSTERS, all, wants("shards in 1..3,7..8"));
        assert_eq!(client.bodies[CLUSTERS], ["3", "7"], "{way:?}");
        client.bodies.clear();
        for (at, is_mine) in [(8, true), (15, false), (3, true)] {
            let shard = parameters(&[("shards", &at.to_string())]);
            vary(&mut world, CLUSTERS, &format!("{prefix}{at:03}"), &[(&shard, "new")], &[]);
            client.read(&mut world);
            let told = client.bodies.remove(CLUSTERS).unwrap_or_default();
            assert_eq!(told.iter().any(|body| body == "new"), is_mine, "{way:?} {at} {told:?}");
        }
    }
}

/// "If the client cannot obtain the configured DPDS resource, it will [...] request the remaining resources with no additional
/// constraints": it has one of the variants.
#[test]
fn who_is_not_told_what_to_send_has_any_variant() {
    for way in Way::of(["draft", "draft"]) {
        let (mut world, last) = way.world();
        let variants = ["true", "false"].map(|value| way.variant(&[("use_proxy", value)]));
        vary(&mut world, ROUTES, "routes", &[(&variants[0], "true"), (&variants[1], "false")], &[]);
        let mut client = way.client(&world, last, "n");
        client.ask(&mut world, MAPS, "my", Selector::default());
        assert_eq!(client.last(MAPS), "", "{way:?}");
        client.ask(&mut world, ROUTES, "routes", Selector::default());
        assert!(["true", "false"].contains(&client.last(ROUTES)), "{way:?} {:?}", client.bodies);
    }
}

/// "It could use the DPDS resource to set constraints to minimize the number of variants": the table of nodes, of what they are told
/// to send, and of the four variants.
#[test]
fn four_variants_for_nine_nodes_that_are_told_what_to_send() {
    for way in Way::of(["draft", "draft"]) {
        let (mut world, last) = way.world();
        let four = [("prod", "v1"), ("prod", "NOT_v1"), ("NOT_prod", "v1"), ("NOT_prod", "NOT_v1")];
        let bodies = four.map(|(env, version)| format!("{{env={env},version={version}}}"));
        let variants = four.map(|(env, version)| way.variant(&[("env", env), ("version", version)]));
        let put: Vec<_> = variants.iter().zip(bodies.iter().map(String::as_str)).collect();
        let nodes =
            ["prod", "canary", "test"].into_iter().flat_map(|env| ["v1", "v2", "v3"].map(|version| (env, version)));
        let nodes: Vec<_> = nodes.map(|(env, version)| (env, version, format!("{env} {version}"))).collect();
        vary(&mut world, ROUTES, "routes", &put, &[]);
        let now = world.now;
        for (env, version, id) in &nodes {
            let of = |key, value: &str, is: &str| format!("{}{key}={is}", if value == is { "" } else { "not " });
            let told = format!("{} and {}", of("env", env, "prod"), of("version", version, "v1"));
            world.origins[0].answer_apart(id);
            world.origins[0].put_map(now, id, MAPS, "my", &told);
            world.origins[0].vary_for(now, id, ROUTES, "routes", &put);
        }
        for (env, version, id) in &nodes {
            let mut client = way.client(&world, last, id);
            client.ask(&mut world, MAPS, "my", Selector::default());
            let told = client.last(MAPS).to_owned();
            client.ask(&mut world, ROUTES, "routes", wants(&told));
            let of = |value: &str, is: &str| if value == is { is.to_owned() } else { format!("NOT_{is}") };
            let expected = format!("{{env={},version={}}}", of(env, "prod"), of(version, "v1"));
            assert_eq!(client.last(ROUTES), expected, "{way:?} {id}");
        }
    }
}
