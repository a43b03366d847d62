//! What is told in a watch, and how it goes on when it ends.

use std::time::Duration;

use tokio::time::sleep;

use super::cluster::{Fault, Kind, expired, status};
use super::{SETTLED, World, text};

#[tokio::test(start_paused = true)]
async fn each_event_is_a_change_and_an_object_changes_as_a_whole() {
    let world = World::new();
    world.serves(&[]).await;
    let (a, b) = (text("a", 1), text("b", 1));
    world.cluster.apply("mesh", "both", 0, &[("a", &a), ("b", &b)]);
    world.serves(&[("a", 1), ("b", 1)]).await;
    assert_eq!(world.seen.contents(), 2);
    let c = text("c", 2);
    world.cluster.apply("mesh", "both", 0, &[("c", &c), ("b", &b)]);
    world.serves(&[("b", 1), ("c", 2)]).await;
    assert_eq!((world.seen.contents(), world.cluster.asked(Kind::List), world.cluster.asked(Kind::Watch)), (3, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_had_its_time_goes_on_from_its_last_bookmark() {
    let world = World::new();
    world.serves(&[]).await;
    // Of another namespace: it is told by a bookmark alone.
    world.cluster.apply("other", "x", 0, &[]);
    world.until(|world| world.cluster.asked(Kind::Watch) == 3).await;
    let asked = world.cluster.state().requests.clone();
    assert!(asked[1].0.contains("resourceVersion=v/0000?&timeoutSeconds=1"), "{asked:?}");
    assert!(asked[3].0.contains("resourceVersion=v/1eef?&"), "{asked:?}");
    assert!(asked[3].0.contains("allowWatchBookmarks=true"));
    assert_eq!(world.cluster.asked(Kind::List), 1);
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_cut_within_a_line_goes_on_after_the_last_whole_one() {
    for bytes in [1, 50, 200, 210, 300] {
        let world = World::new();
        world.cluster.fail(Kind::Watch, Fault::Cut(bytes));
        world.serves(&[]).await;
        for number in 0..5 {
            world.cluster.cluster(&format!("c{number}"), number);
        }
        world.serves(&[("c0", 0), ("c1", 1), ("c2", 2), ("c3", 3), ("c4", 4)]).await;
        assert_eq!((world.cluster.asked(Kind::List), world.cluster.asked(Kind::Watch)), (1, 2), "{bytes}");
        world.is_well().await;
    }
}

#[tokio::test(start_paused = true)]
async fn lines_may_come_byte_by_byte() {
    let world = World::new();
    world.cluster.state().drip = Some(1);
    world.cluster.cluster("a", 1);
    world.serves(&[("a", 1)]).await;
    world.cluster.cluster("b", 1);
    world.cluster.cluster("a", 2);
    world.serves(&[("a", 2), ("b", 1)]).await;
}

#[tokio::test(start_paused = true)]
async fn gone_is_listed_anew_as_a_status_and_as_an_event() {
    for fault in [
        Fault::Status(410, status(410, "Gone", "too old resource version: 1 (2)"), ""),
        Fault::Status(410, String::new(), ""),
        Fault::Says(expired()),
    ] {
        let world = World::new();
        world.cluster.fail(Kind::Watch, fault);
        world.cluster.cluster("a", 1);
        world.cluster.cluster("b", 1);
        world.serves(&[("a", 1), ("b", 1)]).await;
        world.until(|world| world.cluster.asked(Kind::List) == 2).await;
        // What was done meanwhile is in the list.
        world.cluster.state().is_away = true;
        world.cluster.cut();
        world.is_in_trouble("nobody is there").await;
        world.cluster.delete("mesh", "a");
        world.cluster.cluster("b", 2);
        world.cluster.compact();
        assert!(world.seen.take_removed().is_empty());
        world.cluster.state().is_away = false;
        world.serves(&[("b", 2)]).await;
        assert_eq!(world.cluster.asked(Kind::List), 3);
        world.is_well().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_event_changes_nothing_and_after_some_of_it_all_is_listed() {
    for line in [
        "{\n",
        "{\"type\":\"ADDED\",\"object\":{}}\n",
        "{\"type\":\"GONE\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}\n",
        "{\"type\":\"DELETED\",\"object\":{\"kind\":\"Secret\",\"metadata\":{\"name\":\"web\",\"namespace\":\"mesh\",\"resourceVersion\":\"1\"}}}\n",
        "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"web\",\"namespace\":\"other\",\"resourceVersion\":\"1\"}}}\n",
        "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"\",\"namespace\":\"mesh\",\"resourceVersion\":\"1\"}}}\n",
        "{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"etcdserver: leader changed\"}}\n",
        "{\"type\":\"ERROR\",\"object\":[]}\n",
    ] {
        let world = World::new();
        world.cluster.cluster("web", 1);
        (0..3).for_each(|_| world.cluster.fail(Kind::Watch, Fault::Says(line.to_owned())));
        world.serves(&[("web", 1)]).await;
        world.is_in_trouble("it says").await;
        world.until(|world| world.cluster.asked(Kind::Watch) == 4).await;
        assert_eq!(world.cluster.asked(Kind::List), 2, "{line}");
        world.is_well().await;
        sleep(SETTLED).await;
        assert_eq!((world.seen.contents() <= 2, world.seen.take_removed().len()), (true, 0), "{line}");
        world.cluster.cluster("web", 2);
        world.serves(&[("web", 2)]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_after_his_time_is_not_there_any_more() {
    let world = World::new();
    world.cluster.cluster("web", 1);
    world.cluster.fail(Kind::Watch, Fault::Stall);
    world.serves(&[("web", 1)]).await;
    world.cluster.cluster("web", 2);
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.seen.served(), Some(vec![("web".to_owned(), 1)]));
    sleep(Duration::from_secs(80)).await;
    world.serves(&[("web", 2)]).await;
    assert_eq!(world.cluster.asked(Kind::List), 1);
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn who_may_list_and_not_watch_is_told_so_all_the_time_and_has_what_is_listed() {
    let world = World::new();
    let forbidden = || Fault::Status(403, status(403, "Forbidden", "cannot watch"), "");
    (0..1000).for_each(|_| world.cluster.fail(Kind::Watch, forbidden()));
    world.is_in_trouble("it says 403 Forbidden: cannot watch").await;
    world.cluster.cluster("web", 1);
    world.serves(&[("web", 1)]).await;
    for _ in 0..600 {
        sleep(Duration::from_secs(1)).await;
        assert!(world.seen.trouble().is_some());
    }
    let asked = world.cluster.asked(Kind::Watch) + world.cluster.asked(Kind::List);
    assert!(asked < 120, "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_every_watch_at_once_is_listed_and_not_often() {
    let world = World::new();
    (0..100).for_each(|_| world.cluster.fail(Kind::Watch, Fault::Says(String::new())));
    world.serves(&[]).await;
    world.cluster.cluster("web", 1);
    world.serves(&[("web", 1)]).await;
    sleep(Duration::from_secs(600)).await;
    let asked = world.cluster.asked(Kind::Watch) + world.cluster.asked(Kind::List);
    assert!(asked < 120, "{asked}");
}

#[tokio::test(start_paused = true)]
async fn while_nobody_answers_nothing_is_removed_and_who_is_back_is_asked_soon() {
    let world = World::new();
    world.cluster.cluster("web", 1);
    world.serves(&[("web", 1)]).await;
    world.cluster.state().is_away = true;
    world.cluster.cut();
    world.is_in_trouble("Kubernetes is away, and all stays as it is: configmap/mesh: nobody is there").await;
    sleep(Duration::from_secs(3600)).await;
    world.cluster.cluster("web", 2);
    world.cluster.state().is_away = false;
    sleep(Duration::from_secs(31)).await;
    world.serves(&[("web", 2)]).await;
    world.is_well().await;
    assert!(world.seen.take_removed().is_empty());
}
