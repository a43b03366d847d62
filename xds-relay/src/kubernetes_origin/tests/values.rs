//! What is in objects.

use serde_json::json;
use tokio::time::sleep;

use super::cluster::Cluster;
use super::restarting::Disk;
use super::{SETTLED, World, both, text};
use crate::config::Kubernetes;

#[tokio::test(start_paused = true)]
async fn a_value_that_is_not_good_is_named_and_the_last_good_one_stays() {
    let world = World::new();
    let (a, b) = (text("a", 1), text("b", 1));
    world.cluster.apply("mesh", "web", 0, &[("a.yaml", &a), ("b.yaml", &b)]);
    world.serves(&[("a", 1), ("b", 1)]).await;
    world.cluster.apply("mesh", "web", 0, &[("a.yaml", "resources: [{'@type': nothing}]"), ("b.yaml", &text("b", 2))]);
    world.serves(&[("a", 1), ("b", 2)]).await;
    world.is_in_trouble("a value is refused: configmap/mesh/web/a.yaml: value:1:").await;
    assert_eq!(world.seen.refused(), 1);
    world.cluster.apply("mesh", "web", 0, &[("a.yaml", &text("a", 3)), ("b.yaml", &text("b", 2))]);
    world.serves(&[("a", 3), ("b", 2)]).await;
    world.is_well().await;
}

/// Of a cluster with a timeout that Envoy refuses.
const BREAKS_A_RULE: &str = "a value is refused: configmap/mesh/a/a.yaml: value:1:90: connect_timeout: expected more than 0s, found 0s; \
                             in Cluster `a`";

#[tokio::test(start_paused = true)]
async fn a_value_that_breaks_a_rule_of_its_type_is_named_with_its_field_and_the_last_good_one_stays() {
    let world = World::validating(Cluster::default(), None);
    world.cluster.cluster("a", 1);
    world.serves(&[("a", 1)]).await;
    world.cluster.cluster("a", 0);
    world.is_in_trouble(BREAKS_A_RULE).await;
    sleep(SETTLED).await;
    world.serves(&[("a", 1)]).await;
    world.cluster.cluster("a", 2);
    world.serves(&[("a", 2)]).await;
    world.is_well().await;
    let lenient = World::new();
    lenient.cluster.cluster("a", 0);
    lenient.serves(&[("a", 0)]).await;
    lenient.is_well().await;
}

/// The relay before did not hold it to rules, or to others, and clients have it.
#[tokio::test(start_paused = true)]
async fn what_was_served_before_a_restart_and_breaks_a_rule_is_served_on_and_named() {
    let (cluster, disk) = (Cluster::default(), Disk::new());
    cluster.cluster("a", 0);
    let world = disk.follows(&cluster);
    world.serves(&[("a", 0)]).await;
    disk.save();
    for is_away in [true, false] {
        cluster.state().is_away = is_away;
        let world = World::validating(cluster.clone(), Some(&disk.restarted()));
        world.serves(&[("a", 0)]).await;
        cluster.state().is_away = false;
        world.until(|world| world.seen.is_all()).await;
        world.is_in_trouble(BREAKS_A_RULE).await;
        sleep(SETTLED).await;
        assert_eq!(world.seen.served(), Some(vec![("a".to_owned(), 0)]));
        assert!(world.seen.take_removed().is_empty() && world.seen.refused() == 1, "{}", world.seen.refused());
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_has_one_resource_or_many_and_all_of_it_is_good_or_nothing_is() {
    let world = World::new();
    let many = format!("resources:\n- {}\n- {}\n", text("a", 1), text("b", 2));
    let half = format!("resources:\n- {}\n- {}\n", text("c", 1), text("d", 2).replace("2s", "soon"));
    world.cluster.apply(
        "mesh",
        "many",
        0,
        &[("many", &many), ("half", &half), ("empty", ""), ("none", "resources: []")],
    );
    world.serves(&[("a", 1), ("b", 2)]).await;
    world.is_in_trouble("3 values are refused, of configmap/mesh/many/empty: value:1:1: empty among them").await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_in_two_objects_is_served_of_the_older_one_whoever_comes_first() {
    for is_listed in [true, false] {
        let cluster = Cluster::default();
        if is_listed {
            cluster.apply("mesh", "a", 5, &[("x", &text("web", 5))]);
            cluster.apply("mesh", "b", 3, &[("x", &text("web", 3))]);
        }
        let world = World::of(cluster, Kubernetes::in_cluster(), &["mesh"]);
        if !is_listed {
            world.cluster.apply("mesh", "a", 5, &[("x", &text("web", 5))]);
            world.serves(&[("web", 5)]).await;
            world.cluster.apply("mesh", "b", 3, &[("x", &text("web", 3))]);
        }
        world.serves(&[("web", 3)]).await;
        let already = "configmap/mesh/a/x: envoy.config.cluster.v3.Cluster `web` is in configmap/mesh/b/x already";
        world.is_in_trouble(already).await;
        world.cluster.delete("mesh", "b");
        world.serves(&[("web", 5)]).await;
        world.is_well().await;
        assert!(world.seen.take_removed().is_empty(), "it was always there");
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_that_are_as_old_the_first_by_name_counts() {
    let world = World::new();
    world.cluster.apply("mesh", "b", 3, &[("x", &text("web", 2))]);
    world.serves(&[("web", 2)]).await;
    world.cluster.apply("mesh", "a", 3, &[("x", &text("web", 1))]);
    world.serves(&[("web", 1)]).await;
}

#[tokio::test(start_paused = true)]
async fn the_spec_of_an_xds_resource_is_a_resource() {
    let cluster = Cluster::default();
    let any = |name: &str, timeout: &str| {
        let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
        json!({ "spec": { "@type": type_url, "name": name, "connect_timeout": timeout } })
    };
    cluster.put("xdsresources", "mesh", "web", 0, any("web", "1s"));
    let wrapped = json!({ "spec": { "name": "api", "resource": any("api", "2s")["spec"] } });
    cluster.put("xdsresources", "mesh", "api", 0, wrapped);
    cluster.put("xdsresources", "mesh", "bad", 0, any("bad", "soon"));
    cluster.put("xdsresources", "mesh", "none", 0, json!({}));
    cluster.cluster("cm", 3);
    let world = World::of(cluster, both(), &["mesh"]);
    world.serves(&[("api", 2), ("cm", 3), ("web", 1)]).await;
    world.is_in_trouble("2 values are refused, of xdsresource/mesh/bad/spec: spec: connect_timeout: ").await;
    world.cluster.put("xdsresources", "mesh", "web", 0, any("web", "7s"));
    world.serves(&[("api", 2), ("cm", 3), ("web", 7)]).await;
}

#[tokio::test(start_paused = true)]
async fn what_strangers_write_is_one_line_that_has_an_end() {
    let world = World::new();
    world.cluster.apply("mesh", "web", 0, &[("\u{1b}[2J\n", &"x\u{1b}]0;\n".repeat(10_000))]);
    let trouble = world.is_in_trouble("a value is refused: ").await;
    assert!(trouble.chars().count() < 700 && !trouble.contains(char::is_control), "{trouble:?}");
}

#[tokio::test(start_paused = true)]
async fn all_namespaces_are_one_collection() {
    let cluster = Cluster::default();
    cluster.apply("one", "x", 0, &[("x", &text("a", 1))]);
    cluster.apply("two", "x", 0, &[("x", &text("b", 1))]);
    let world = World::of(cluster, Kubernetes::in_cluster(), &[]);
    world.serves(&[("a", 1), ("b", 1)]).await;
    world.cluster.delete("one", "x");
    world.serves(&[("b", 1)]).await;
    sleep(SETTLED).await;
    let asked = world.cluster.state().requests.clone();
    assert!(asked.iter().all(|(target, _)| target.starts_with("/api/v1/configmaps?")), "{asked:?}");
}
