//! What is removed, and when.

use std::time::Duration;

use tokio::time::sleep;

use super::cluster::{Cluster, Kind};
use super::{World, text};
use crate::config::Kubernetes;

/// With so many clusters, each in an object of its own.
async fn with(count: u32) -> World {
    let cluster = Cluster::default();
    (0..count).for_each(|number| cluster.cluster(&format!("c{number:03}"), number));
    let world = World::of(cluster, Kubernetes::in_cluster(), &["mesh"]);
    world.until(|world| world.seen.served().is_some_and(|served| served.len() == count as usize)).await;
    world
}

fn delete(world: &World, range: std::ops::Range<u32>) {
    range.for_each(|number| world.cluster.delete("mesh", &format!("c{number:03}")));
}

fn served(world: &World) -> usize {
    world.seen.served().unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_is_removed_after_a_moment_as_one_change() {
    let world = with(20).await;
    let before = world.seen.contents();
    delete(&world, 0..3);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(served(&world), 20);
    sleep(Duration::from_secs(2)).await;
    assert_eq!((served(&world), world.seen.contents()), (17, before + 1));
    assert_eq!(world.seen.held_back(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_created_again_in_that_moment_has_never_been_away() {
    let world = with(1).await;
    world.cluster.delete("mesh", "c000");
    sleep(Duration::from_secs(1)).await;
    world.cluster.cluster("c000", 9);
    world.serves(&[("c000", 9)]).await;
    sleep(Duration::from_secs(10)).await;
    assert!(world.seen.take_removed().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_before_a_cut_goes_once_that_is_over() {
    let world = with(20).await;
    delete(&world, 0..1);
    sleep(Duration::from_millis(100)).await;
    world.cluster.state().is_away = true;
    world.cluster.cut();
    sleep(Duration::from_secs(60)).await;
    world.cluster.state().is_away = false;
    world.until(|world| served(world) == 19).await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_deleted_one_after_the_other_all_at_once_are_held_until_that_is_so_later_too() {
    let world = with(50).await;
    for number in 0..50 {
        world.cluster.delete("mesh", &format!("c{number:03}"));
        sleep(Duration::from_millis(20)).await;
    }
    world.is_in_trouble("50 resources are gone at once").await;
    assert_eq!((served(&world), world.seen.held_back()), (50, 50));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(served(&world), 50);
    world.serves(&[]).await;
    assert_eq!(world.seen.held_back(), 0);
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_put_back_while_it_is_held_has_never_been_away() {
    let world = with(50).await;
    delete(&world, 0..50);
    world.is_in_trouble("resources are gone at once").await;
    (0..50).for_each(|number| world.cluster.cluster(&format!("c{number:03}"), if number == 7 { 1000 } else { number }));
    world.until(|world| world.seen.served().unwrap()[7].1 == 1000).await;
    world.is_well().await;
    assert_eq!((served(&world), world.seen.take_removed().len()), (50, 0));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_empty_or_lacks_much_is_held() {
    for left in [0, 5, 39] {
        let world = with(50).await;
        world.cluster.state().is_away = true;
        world.cluster.cut();
        world.is_in_trouble("nobody").await;
        delete(&world, left..50);
        world.cluster.compact();
        world.cluster.state().is_away = false;
        world.is_in_trouble("resources are gone at once").await;
        assert_eq!(served(&world), 50, "{left}");
        let listed = world.cluster.asked(Kind::List);
        world.until(|world| served(world) == left as usize).await;
        assert_eq!(world.cluster.asked(Kind::List), listed + 1);
        world.is_well().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_loses_most_of_what_is_in_it_is_held_too() {
    let world = World::new();
    let list = |count: u32| {
        let all: Vec<_> = (0..count).map(|number| format!("- {}\n", text(&format!("c{number:03}"), 1))).collect();
        format!("resources:\n{}", all.concat())
    };
    world.cluster.apply("mesh", "all", 0, &[("all.yaml", &list(40))]);
    world.until(|world| world.seen.served().is_some_and(|served| served.len() == 40)).await;
    world.cluster.apply("mesh", "all", 0, &[("all.yaml", &list(2))]);
    world.is_in_trouble("38 resources are gone at once").await;
    assert_eq!(served(&world), 40);
    world.until(|world| served(world) == 2).await;
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn what_moves_from_one_object_to_another_is_not_gone() {
    let world = with(30).await;
    delete(&world, 0..30);
    let all: Vec<_> = (0..30).map(|number| format!("- {}\n", text(&format!("c{number:03}"), number))).collect();
    world.cluster.apply("mesh", "all", 1, &[("all.yaml", &format!("resources:\n{}", all.concat()))]);
    sleep(Duration::from_secs(10)).await;
    assert_eq!((served(&world), world.seen.held_back(), world.seen.take_removed().len()), (30, 0, 0));
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_gone_is_held_and_the_others_go_on() {
    let cluster = Cluster::default();
    for number in 0..5 {
        cluster.apply("one", &format!("a{number}"), 0, &[("x", &text(&format!("a{number}"), 1))]);
    }
    (0..100)
        .for_each(|number| cluster.apply("two", &format!("b{number}"), 0, &[("x", &text(&format!("b{number}"), 1))]));
    let world = World::of(cluster, Kubernetes::in_cluster(), &["one", "two"]);
    world.until(|world| world.seen.served().is_some_and(|served| served.len() == 105)).await;
    (0..5).for_each(|number| world.cluster.delete("one", &format!("a{number}")));
    world.is_in_trouble("5 resources are gone at once").await;
    world.cluster.apply("two", "b0", 0, &[("x", &text("b0", 2))]);
    world.until(|world| world.seen.served().unwrap().contains(&("b0".to_owned(), 2))).await;
    assert_eq!((served(&world), world.seen.held_back()), (105, 5));
    world.until(|world| served(world) == 100).await;
}

/// As fast as `kubectl delete` does: few in each moment, and many in a minute.
#[tokio::test(start_paused = true)]
async fn objects_that_are_deleted_slowly_one_after_the_other_are_held_once_they_are_many() {
    let world = with(100).await;
    for number in 0..100 {
        world.cluster.delete("mesh", &format!("c{number:03}"));
        sleep(Duration::from_millis(400)).await;
    }
    assert!(served(&world) >= 75, "{}", served(&world));
    world.is_in_trouble("resources are gone at once").await;
    world.serves(&[]).await;
    world.is_well().await;
}

/// A template that was edited by mistake: each object is there, and has less.
#[tokio::test(start_paused = true)]
async fn objects_that_lose_most_of_what_is_in_them_one_after_the_other_are_held() {
    let cluster = Cluster::default();
    let name = |object: u32, key: u32| format!("c{:03}", object * 5 + key);
    let put = |object: u32, keys: u32| {
        let data: Vec<_> = (0..keys).map(|key| (format!("k{key}"), text(&name(object, key), 1))).collect();
        let data: Vec<_> = data.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        cluster.apply("mesh", &format!("o{object:02}"), 0, &data);
    };
    (0..20).for_each(|object| put(object, 5));
    let world = World::of(cluster.clone(), Kubernetes::in_cluster(), &["mesh"]);
    world.until(|world| world.seen.served().is_some_and(|served| served.len() == 100)).await;
    for object in 0..20 {
        put(object, 1);
        sleep(Duration::from_secs(1)).await;
    }
    assert!(served(&world) >= 75, "{}", served(&world));
    world.until(|world| served(world) == 20).await;
    world.is_well().await;
}

/// What is replaced bit by bit is no removal of much for that.
#[tokio::test(start_paused = true)]
async fn what_goes_now_and_then_is_not_held() {
    let world = with(20).await;
    for number in 0..19 {
        world.cluster.delete("mesh", &format!("c{number:03}"));
        sleep(Duration::from_secs(61)).await;
        assert_eq!(served(&world), 19 - number as usize);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_created_again_while_the_connection_is_cut_has_never_been_away() {
    let world = with(20).await;
    world.cluster.delete("mesh", "c003");
    sleep(Duration::from_millis(500)).await;
    world.cluster.state().is_away = true;
    world.cluster.cut();
    world.cluster.cluster("c003", 99);
    // Longer than the moment, and not so long that all is listed again.
    sleep(Duration::from_millis(2200)).await;
    world.cluster.state().is_away = false;
    world.until(|world| world.seen.served().unwrap().contains(&("c003".to_owned(), 99))).await;
    assert!(world.seen.take_removed().is_empty());
}
