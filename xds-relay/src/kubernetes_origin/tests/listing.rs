//! What is listed, and what becomes of lists that are none.

use std::time::Duration;

use tokio::time::sleep;

use super::cluster::{Cluster, Fault, Kind, status};
use super::{SETTLED, World, both, text};
use crate::config::Kubernetes;

#[tokio::test(start_paused = true)]
async fn a_list_comes_page_by_page_and_is_one_content() {
    let cluster = Cluster::default();
    (0..7).for_each(|number| cluster.cluster(&format!("c{number}"), number));
    cluster.state().page = Some(3);
    let world = World::of(cluster, Kubernetes::in_cluster(), &["mesh"]);
    let all: Vec<_> = (0..7).map(|number| (format!("c{number}"), number)).collect();
    world.until(|world| world.seen.served() == Some(all.clone())).await;
    assert_eq!((world.cluster.asked(Kind::List), world.cluster.asked(Kind::More), world.seen.contents()), (1, 2, 1));
    let asked = world.cluster.state().requests.clone();
    assert_eq!(asked[0].0, "/api/v1/namespaces/mesh/configmaps?limit=250&labelSelector=xds-relay.io/resources=true");
}

#[tokio::test(start_paused = true)]
async fn a_continuation_that_has_expired_begins_the_list_again() {
    let cluster = Cluster::default();
    (0..4).for_each(|number| cluster.cluster(&format!("c{number}"), 1));
    cluster.state().page = Some(3);
    cluster.fail(Kind::More, Fault::Status(410, status(410, "Expired", "too old"), ""));
    let world = World::of(cluster, Kubernetes::in_cluster(), &["mesh"]);
    world.until(|world| world.seen.served().is_some_and(|served| served.len() == 4)).await;
    assert_eq!((world.cluster.asked(Kind::List), world.cluster.asked(Kind::More)), (2, 2));
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn pages_of_several_versions_are_no_list() {
    let cluster = Cluster::default();
    (0..4).for_each(|number| cluster.cluster(&format!("c{number}"), 1));
    cluster.state().page = Some(3);
    let other = r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"other"},"items":[]}"#;
    cluster.fail(Kind::More, Fault::Says(other.to_owned()));
    let world = World::of(cluster, Kubernetes::in_cluster(), &["mesh"]);
    world.is_in_trouble("nothing is known: configmap/mesh: it says what is no answer: pages of several versions").await;
    world.until(|world| world.seen.served().is_some_and(|served| served.len() == 4)).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_no_list_says_nothing_of_what_is_there() {
    for (fault, words) in [
        (Fault::Status(401, status(401, "Unauthorized", "Unauthorized"), ""), "it says 401 Unauthorized: Unauthorized"),
        (Fault::Status(403, status(403, "Forbidden", "configmaps is forbidden"), ""), "it says 403 Forbidden: configmaps"),
        (Fault::Status(404, "404 page not found\n".to_owned(), ""), "it says 404 Not Found: 404 page not found"),
        (Fault::Status(500, "\u{1b}[2J\n".repeat(1000), ""), "it says 500 Internal Server Error: \\u{1b}[2J\\n"),
        (Fault::Status(301, String::new(), "Location: http://a:1/\r\n"), "it says 301 Moved Permanently"),
        (Fault::Status(200, String::new(), ""), "it says what is no answer: EOF"),
        (Fault::Says("{}".to_owned()), "it says what is no answer: missing field `kind`"),
        (Fault::Says(r#"{"kind":"List","metadata":{"resourceVersion":"1"},"items":[]}"#.to_owned()), "a `List`, and not a"),
        (Fault::Says(r#"{"kind":"ConfigMapList","metadata":{},"items":[]}"#.to_owned()), "not a ConfigMapList of a version"),
        (Fault::Says("[".repeat(100_000)), "it says what is no answer"),
        (
            Fault::Says(
                r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a","namespace":"x"}}]}"#
                    .to_owned(),
            ),
            "`a` in `x`, which was not asked for",
        ),
        (Fault::Cut(30), "body"),
        (Fault::Silence, "it has said nothing for 30 s"),
        (Fault::Stall, "it has said nothing for 60 s"),
    ] {
        let world = World::new();
        world.cluster.cluster("web", 1);
        world.serves(&[("web", 1)]).await;
        world.cluster.fail(Kind::List, fault.clone());
        world.cluster.compact();
        world.cluster.delete("mesh", "none");
        world.cluster.cluster("web", 2);
        world.cluster.compact();
        world.cluster.cut();
        let trouble = world.is_in_trouble(words).await;
        assert!(trouble.starts_with("Kubernetes is away, and all stays as it is: configmap/mesh: "), "{trouble}");
        world.serves(&[("web", 2)]).await;
        world.is_well().await;
        assert!(world.seen.take_removed().is_empty(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_asks_to_be_left_alone_is() {
    let cluster = Cluster::default();
    let too_many = || Fault::Status(429, status(429, "TooManyRequests", "later"), "Retry-After: 40\r\n");
    cluster.fail(Kind::List, too_many());
    let world = World::of(cluster, Kubernetes::in_cluster(), &["mesh"]);
    world.is_in_trouble("it says 429 Too Many Requests: later").await;
    sleep(Duration::from_secs(39)).await;
    assert_eq!(world.cluster.asked(Kind::List), 1);
    world.serves(&[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_large_is_asked_for_with_fewer_objects() {
    let cluster = Cluster::default();
    let filler = format!("# {}\n{}", "x".repeat(20 << 20), text("a", 1));
    cluster.apply("mesh", "a", 0, &[("a", &filler)]);
    cluster.apply("mesh", "b", 0, &[("b", &filler.replace("name: a", "name: b"))]);
    let world = World::of(cluster, Kubernetes::in_cluster(), &["mesh"]);
    world.serves(&[("a", 1), ("b", 1)]).await;
    assert!(world.cluster.state().requests.iter().any(|(target, _)| target.contains("limit=1&")));
}

/// How many objects each list was asked to have.
fn limits(world: &World) -> Vec<usize> {
    let limit = |target: &str| target.split_once("?limit=")?.1.split('&').next()?.parse().ok();
    world.cluster.state().requests.iter().filter_map(|(target, _)| limit(target)).collect()
}

#[tokio::test(start_paused = true)]
async fn only_a_page_that_has_begun_and_does_not_end_is_asked_for_with_fewer_objects_until_a_list_is_whole() {
    let cluster = Cluster::default();
    cluster.cluster("web", 1);
    let faults = [Fault::Silence, Fault::Silence, Fault::Stall, Fault::Silence, Fault::Stall];
    faults.into_iter().for_each(|fault| cluster.fail(Kind::List, fault));
    let world = World::of(cluster, Kubernetes::in_cluster(), &["mesh"]);
    world.serves(&[("web", 1)]).await;
    assert_eq!(limits(&world), [250, 250, 250, 125, 125, 62]);
    sleep(Duration::from_secs(2 * 60 * 60)).await;
    let since = limits(&world).split_off(6);
    assert!(!since.is_empty() && since.iter().all(|limit| *limit == 250), "that was not for ever: {since:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_before_all_collections_are_listed() {
    let cluster = Cluster::default();
    cluster.cluster("web", 1);
    for plural in ["configmaps", "xdsresources"] {
        cluster.state().forbidden = Some(plural);
        let world = World::of(cluster.clone(), both(), &["mesh"]);
        world.is_in_trouble("Kubernetes is away, and nothing is known: ").await;
        sleep(SETTLED).await;
        assert_eq!(world.seen.contents(), 0, "{plural}");
        cluster.state().forbidden = None;
        world.serves(&[("web", 1)]).await;
        world.is_well().await;
        assert_eq!(world.seen.contents(), 1, "{plural}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_is_listed_once_in_an_hour_whatever_was_told() {
    let world = World::new();
    world.cluster.cluster("web", 1);
    world.serves(&[("web", 1)]).await;
    // An event that no watch tells.
    world.cluster.state().events.clear();
    sleep(Duration::from_secs(2 * 60 * 60)).await;
    assert!(world.cluster.asked(Kind::List) >= 2, "{}", world.cluster.asked(Kind::List));
    assert!(world.cluster.asked(Kind::Watch) < 2 * 60);
    sleep(SETTLED).await;
    assert!(world.seen.take_removed().is_empty());
}
