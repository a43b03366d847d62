//! A control plane with variants (TP2): what overlaps is refused, and a swap is one response.

use xds_transport::grpc::server::{ControlPlane, PutError};
use xds_transport::wire::DeltaDiscoveryRequest;
use xds_transport::wire::parameters::Locator;
use xds_transport::{Dialect, Protocol, Response};
use xdstp_cache::{Selector, Variant};

use crate::call::{Call, ack};
use crate::served::{Cluster, InMemory};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

fn constraints(text: &str) -> Variant {
    Variant::Constraints(text.parse().unwrap())
}

fn cart(body: &str) -> Cluster {
    Cluster::new("cart", body)
}

/// `+cart{env=prod}` for what comes, `-cart{env=prod}` for what goes.
async fn told(call: &mut Call) -> Vec<String> {
    let response = call.delta().await.unwrap();
    call.send(&ack(&response));
    let response = Response::from_delta(prost::Message::encode_to_vec(&response).into()).unwrap();
    assert_eq!(response.rejected, []);
    let put = response.resources.iter().map(|one| {
        let variant = one.frame.as_ref().unwrap().variant();
        format!("+{}{}", one.name, variant.map(|variant| format!("{{{variant}}}")).unwrap_or_default())
    });
    let gone = response.removed_variants.iter().map(|(name, variant)| format!("-{name}{{{variant}}}"));
    put.chain(gone).chain(response.removed.iter().map(|name| format!("-{name}"))).collect()
}

#[tokio::test(start_paused = true)]
async fn rule_119_a_swap_is_one_response() {
    let plane = ControlPlane::new();
    let [prod, test, all] = ["env=prod", "env=test", "exists(env)"].map(constraints);
    plane
        .change(|change| {
            change.put_variant("cart", &prod, &cart("1"))?;
            change.put_variant("cart", &test, &cart("2"))
        })
        .unwrap();
    let served = InMemory::serve(plane.service().into_routes());
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    let selector = Selector::Parameters([("env", "prod")].into_iter().collect());
    let locator = Locator::new("cart", selector).encode(Dialect::Final).unwrap();
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_locators_subscribe: vec![locator],
        ..Default::default()
    };
    call.send(&request);
    assert_eq!(told(&mut call).await, ["+cart{env=prod}"]);
    plane
        .change(|change| {
            change.remove_variant::<Cluster>("cart", &prod)?;
            change.remove_variant::<Cluster>("cart", &test)?;
            change.put_variant("cart", &all, &cart("3"))
        })
        .unwrap();
    assert_eq!(told(&mut call).await, ["+cart{exists(env)}", "-cart{env=prod}"]);
    // What is put anew is all there is: the variants that are not put are gone.
    plane.replace(|whole| whole.put_variant("cart", &prod, &cart("1"))).unwrap();
    assert_eq!(told(&mut call).await, ["+cart{env=prod}", "-cart{exists(env)}"]);
    plane.remove::<Cluster>("cart").unwrap();
    assert_eq!(told(&mut call).await, ["-cart{env=prod}"]);
}

#[test]
fn rule_119_a_variant_for_the_clients_of_another_is_refused_and_nothing_is_changed() {
    let plane = ControlPlane::new();
    let [prod, first, others] = ["env=prod", "version=v1", "not env=prod"].map(constraints);
    plane.change(|change| change.put_variant("cart", &prod, &cart("1"))).unwrap();
    let overlap = plane.change(|change| {
        change.put_variant("cart", &others, &cart("2"))?;
        change.put_variant("cart", &first, &cart("3"))
    });
    let error = overlap.unwrap_err();
    assert!(matches!(&error, PutError::Overlap { name, .. } if name.as_str() == "cart"), "{error}");
    assert!(error.to_string().starts_with("version=v1, of cart, is for who sends {"), "{error}");
    let variants = || plane.shared().look(|cache| cache.variants(&CLUSTERS.into(), &"cart".parse().unwrap()).count());
    assert_eq!(variants(), 1);
    // The same one again is no other, and of another name none is.
    plane.change(|change| change.put_variant("cart", &prod, &cart("4"))).unwrap();
    plane.change(|change| change.put_variant("shop", &first, &Cluster::new("shop", ""))).unwrap();
    plane.change(|change| change.put_variant("cart", &others, &cart("2"))).unwrap();
    assert_eq!(variants(), 2);
    plane
        .change(|change| {
            change.put_variant("bag", &prod, &Cluster::new("bag", ""))?;
            change.put_variant("box", &first, &Cluster::new("box", ""))
        })
        .unwrap();
    // What is for everybody overlaps with all.
    let plain = plane.change(|change| change.put_variant("cart", Variant::plain(), &cart("5")));
    assert!(matches!(plain, Err(PutError::Overlap { .. })));
}
