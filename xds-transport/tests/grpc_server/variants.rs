//! A control plane with variants (TP2): what overlaps is refused, and a swap is one response.

use std::time::Duration;

use xds_transport::grpc::server::{Change, ControlPlane, PutError};
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
    // What is put without a variant is for everybody, whatever the name was before.
    plane.put("cart", &cart("2")).unwrap();
    assert_eq!(told(&mut call).await, ["+cart", "-cart{env=prod}"]);
    plane
        .change(|change| {
            change.remove::<Cluster>("cart")?;
            change.put_variant("cart", &prod, &cart("3"))
        })
        .unwrap();
    assert_eq!(told(&mut call).await, ["+cart{env=prod}", "-cart{true}"]);
    plane.remove::<Cluster>("cart").unwrap();
    assert_eq!(told(&mut call).await, ["-cart{env=prod}"]);
}

fn variants(plane: &ControlPlane) -> Vec<String> {
    let name = "cart".parse().unwrap();
    plane
        .shared()
        .look(|cache| cache.variants(&CLUSTERS.into(), &name).map(|(variant, _)| variant.to_string()).collect())
}

#[test]
fn of_what_a_change_says_of_one_name_the_later_counts() {
    let [prod, test] = ["env=prod", "env=test"].map(constraints);
    let plain = Variant::plain().to_string();
    type Step<'a> = &'a dyn Fn(&mut Change<'_>) -> Result<(), PutError>;
    let put: Step<'_> = &|change| change.put("cart", &cart("1"));
    let remove: Step<'_> = &|change| change.remove::<Cluster>("cart");
    let put_prod: Step<'_> = &|change| change.put_variant("cart", &prod, &cart("2"));
    let put_test: Step<'_> = &|change| change.put_variant("cart", &test, &cart("3"));
    let remove_prod: Step<'_> = &|change| change.remove_variant::<Cluster>("cart", &prod);
    let remove_plain: Step<'_> = &|change| change.remove_variant::<Cluster>("cart", Variant::plain());
    let cases: [(&[Step<'_>], &[&str]); 9] = [
        (&[put_prod, remove], &[]),
        (&[put_prod, put], &[&plain]),
        (&[put_prod, put_test, remove_prod], &["env=test"]),
        (&[remove_prod, put_prod], &["env=prod"]),
        (&[remove, put_test], &["env=test"]),
        (&[put, remove, put_test], &["env=test"]),
        (&[put, remove_plain, put_test], &["env=test"]),
        (&[put_test, remove, put_prod], &["env=prod"]),
        (&[put, remove_plain], &[]),
    ];
    for before in [None, Some(put), Some(put_prod)] {
        for (at, (steps, left)) in cases.iter().enumerate() {
            for whole in [false, true] {
                let plane = ControlPlane::new();
                before.into_iter().for_each(|before| plane.change(before).unwrap());
                let steps = |change: &mut Change<'_>| {
                    // It is nothing to put beside.
                    remove(change)?;
                    steps.iter().try_for_each(|step| step(change))
                };
                if whole {
                    plane.replace(steps).unwrap();
                } else {
                    plane.change(steps).unwrap();
                }
                assert_eq!(variants(&plane), *left, "case {at}");
            }
        }
    }
    // Without a word of the whole name, what is there stays.
    let plane = ControlPlane::new();
    plane.change(put_prod).unwrap();
    plane.change(put_test).unwrap();
    assert_eq!(variants(&plane), ["env=prod", "env=test"]);
    plane.change(put).unwrap();
    assert_eq!(variants(&plane), [&*plain]);
    plane.change(put_prod).unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn what_is_put_for_a_time_over_variants_is_gone_in_time() {
    let plane = ControlPlane::new();
    plane.change(|change| change.put_variant("cart", &constraints("env=prod"), &cart("1"))).unwrap();
    plane.change(|change| change.put_for("cart", &cart("2"), Duration::from_secs(30))).unwrap();
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(variants(&plane), [Variant::plain().to_string()]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(variants(&plane).is_empty());
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
    assert_eq!(variants(&plane), ["env=prod"]);
    // The same one again is no other, and of another name none is.
    plane.change(|change| change.put_variant("cart", &prod, &cart("4"))).unwrap();
    plane.change(|change| change.put_variant("shop", &first, &Cluster::new("shop", ""))).unwrap();
    plane.change(|change| change.put_variant("cart", &others, &cart("2"))).unwrap();
    assert_eq!(variants(&plane).len(), 2);
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
