//! Changes that are checked before anybody is told of them.

use prost::{Message, Name};
use xds_transport::grpc::server::{Change, ControlPlane, PutError};
use xdstp_cache::Variant;

use crate::served::Cluster;

/// Of Envoy's, as much as names another.
#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    route_configuration_name: String,
}

impl Name for Scope {
    const NAME: &'static str = "ScopedRouteConfiguration";
    const PACKAGE: &'static str = "envoy.config.route.v3";
}

#[derive(Clone, PartialEq, Message)]
struct Routes {
    #[prost(string, tag = "1")]
    name: String,
}

impl Name for Routes {
    const NAME: &'static str = "RouteConfiguration";
    const PACKAGE: &'static str = "envoy.config.route.v3";
}

fn put_scope(change: &mut Change<'_>, name: &str, routes: &str) -> Result<(), PutError> {
    change.put(name, &Scope { name: name.into(), route_configuration_name: routes.into() })
}

fn put_routes(change: &mut Change<'_>, name: &str) -> Result<(), PutError> {
    change.put(name, &Routes { name: name.into() })
}

/// What is missing, and by whom.
fn dangling(checked: Result<(), PutError>) -> (String, String) {
    match checked {
        Err(PutError::Dangling { name, by, .. }) => (name, by.to_string()),
        other => panic!("{other:?}"),
    }
}

fn names(plane: &ControlPlane) -> Vec<String> {
    let mut names = plane.shared().look(|cache| {
        let there = cache.resources().filter(|stored| stored.resource.is_some());
        there.map(|stored| stored.name.to_string()).collect::<Vec<_>>()
    });
    names.sort();
    names
}

#[test]
fn a_change_that_leaves_a_name_of_nothing_is_refused_and_nothing_is_changed() {
    let plane = ControlPlane::new();
    let alone = plane.change(|change| {
        put_scope(change, "shop", "routes")?;
        change.check()
    });
    assert_eq!(dangling(alone), ("routes".to_owned(), "shop".to_owned()));
    assert_eq!(names(&plane), [""; 0]);
    let together = |change: &mut Change<'_>| {
        put_scope(change, "shop", "routes")?;
        put_routes(change, "routes")?;
        change.check()
    };
    plane.change(together).unwrap();
    assert_eq!(names(&plane), ["routes", "shop"]);

    let without = plane.change(|change| {
        change.remove::<Routes>("routes")?;
        change.check()
    });
    assert_eq!(dangling(without), ("routes".to_owned(), "shop".to_owned()), "what was there before counts");
    let another = plane.change(|change| {
        change.put("cart", &Cluster::new("cart", ""))?;
        change.check()
    });
    another.unwrap();
    assert_eq!(names(&plane), ["cart", "routes", "shop"]);
}

#[test]
fn what_is_all_there_is_names_what_is_in_it() {
    let plane = ControlPlane::new();
    plane.change(|change| put_routes(change, "routes")).unwrap();
    let before = plane.replace(|all| {
        put_scope(all, "shop", "routes")?;
        all.check()
    });
    assert_eq!(dangling(before), ("routes".to_owned(), "shop".to_owned()), "what was there before does not");
    assert_eq!(names(&plane), ["routes"]);
}

#[test]
fn each_variant_names_what_is_there_and_a_name_is_there_with_any_of_them() {
    let [prod, test] = ["env=prod", "env=test"].map(|text| Variant::Constraints(text.parse().unwrap()));
    let scope = |routes: &str| Scope { name: "shop".into(), route_configuration_name: routes.into() };
    let routes = Routes { name: "routes".into() };
    let plane = ControlPlane::new();
    plane
        .change(|change| {
            change.put_variant("shop", &prod, &scope("routes"))?;
            change.put_variant("shop", &test, &scope("routes"))?;
            change.put_variant("routes", &prod, &routes)?;
            change.put_variant("routes", &test, &routes)?;
            change.check()
        })
        .unwrap();
    plane
        .change(|change| {
            change.remove_variant::<Routes>("routes", &prod)?;
            change.check()
        })
        .unwrap();
    let last = plane.change(|change| {
        change.remove_variant::<Routes>("routes", &test)?;
        change.check()
    });
    assert_eq!(dangling(last), ("routes".to_owned(), "shop".to_owned()));
    // Whichever of them it is that names nothing.
    for (wrong, right) in [(&prod, &test), (&test, &prod)] {
        let either = plane.change(|change| {
            change.put_variant("shop", wrong, &scope("none"))?;
            change.put_variant("shop", right, &scope("routes"))?;
            change.check()
        });
        assert_eq!(dangling(either), ("none".to_owned(), "shop".to_owned()));
    }
    plane.change(|change| change.put_variant("shop", &prod, &scope("none"))).unwrap();
    let there = plane.change(|change| {
        change.put_variant("shop", &test, &scope("routes"))?;
        change.check()
    });
    assert_eq!(dangling(there).0, "none", "what was there before counts");
    // What is put for everybody is all that the name has.
    plane
        .change(|change| {
            put_scope(change, "shop", "routes")?;
            change.check()
        })
        .unwrap();
}
