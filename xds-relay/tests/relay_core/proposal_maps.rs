//! What a server says that a client is to send (DPDS, the draft of TP2), and clients that do so, each on one stream.

use xds_transport::Dialect;
use xdstp_cache::Selector;

use crate::parameters::{BOTH, chain, constraints, parameters, vary, wants};
use crate::support::{ENDPOINTS, LISTENERS, Wire};

const MAPS: &str = "type.googleapis.com/envoy.config.context_params.v3.DynamicContextParameters";
const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
/// As in the text; here, it says as text what it constrains.
const MAP: &str = "xdstp://xds.example.com/envoy.config.context_params.v3.DynamicContextParameters/my_context_params";

/// What the text says of listeners ("DPDS Example"), of endpoints ("Sharding Endpoints") and of routes ("Selecting Cluster Based on
/// ACL"): a client is told what to send, and told otherwise later. Another one that the server tells otherwise never has its
/// variant. Through two relays, with an origin of either form behind clients of the draft.
#[test]
fn server_specified_constraints() {
    for (protocol, form) in BOTH.into_iter().flat_map(|protocol| ["draft", "final"].map(|form| (protocol, form))) {
        for (of, name, key, values) in [
            (
                LISTENERS,
                "xdstp://xds.example.com/envoy.config.listener.v3.Listener/my_listener",
                "listener_type",
                ["direct", "via_proxy"],
            ),
            (
                ENDPOINTS,
                "xdstp://xds.example.com/envoy.config.endpoint.v3.ClusterLoadAssignment/cart",
                "subset_id",
                ["123", "456"],
            ),
            (ROUTES, "routes", "use_proxy", ["true", "false"]),
        ] {
            let context = format!("{protocol:?} {form} {key}");
            let (mut world, last) = chain(protocol, &[form, "draft"]);
            let variants = values.map(|value| match form {
                "draft" => parameters(&[(key, value)]),
                _ => constraints(&format!("{key}={value}")),
            });
            let put: Vec<_> = variants.iter().zip(values).collect();
            vary(&mut world, of, name, &put, &[]);
            let now = world.now;
            for (node, value) in [("", "nobody"), ("one", values[0]), ("other", values[1])] {
                if !node.is_empty() {
                    world.origins[0].answer_apart(node);
                }
                world.origins[0].put_map(now, node, MAPS, MAP, &format!("{key}={value}"));
                world.origins[0].vary_for(now, node, of, name, &put);
            }
            let mut clients = ["one", "other"].map(|id| Wire::new(&world, last, protocol, Dialect::Draft, id));
            for (client, value) in clients.iter_mut().zip(values) {
                client.ask(&mut world, MAPS, MAP, Selector::default());
                let told = client.last(MAPS).to_owned();
                assert_eq!(told, format!("{key}={value}"), "{context}");
                client.ask(&mut world, of, name, wants(&told));
                assert_eq!(client.last(of), value, "{context}");
            }
            // "Let's say that the client later gets an update".
            let now = world.now;
            world.origins[0].put_map(now, "one", MAPS, MAP, &format!("{key}={}", values[1]));
            clients.iter_mut().for_each(|client| client.read(&mut world));
            let [one, other] = &mut clients;
            let told = one.last(MAPS).to_owned();
            assert_eq!(told, format!("{key}={}", values[1]), "{context}");
            one.ask(&mut world, of, name, wants(&told));
            assert_eq!(one.last(of), values[1], "{context}");
            other.read(&mut world);
            assert_eq!(other.bodies[MAPS], [format!("{key}={}", values[1])], "never what others are told: {context}");
            assert_eq!(other.bodies[of], [values[1]], "{context}");
        }
    }
}
