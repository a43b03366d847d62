//! What is kept over a restart, where it can be read late: the disk is slow, or another process has it.

use std::time::Duration;

use tokio::time::sleep;

use super::cluster::Kind;
use super::restarting::{all, kept};
use crate::keyed_origin::{GRACE, READ_WITHIN};

const MOMENT: Duration = Duration::from_millis(100);

/// Else it would count as all, and nothing would be known of what it lacks.
#[tokio::test(start_paused = true)]
async fn nothing_is_listed_before_what_was_known_is_read_and_much_that_is_gone_since_is_held() {
    let names = ["a", "b", "c"];
    let (cluster, disk) = kept(&names).await;
    cluster.state().is_away = false;
    names.iter().for_each(|name| cluster.delete("mesh", name));
    let asked = cluster.asked(Kind::List);
    let late = disk.unread();
    let world = late.follows(&cluster);
    sleep(READ_WITHIN - MOMENT).await;
    assert_eq!((world.seen.served(), cluster.asked(Kind::List)), (None, asked));
    late.save();
    world.until(|world| world.seen.held_back() == 3).await;
    assert_eq!((world.seen.served(), world.seen.take_removed()), (Some(all(&names)), vec![]));
    late.save();
    assert_eq!(late.names().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_can_be_read_later_still_is_served_while_the_api_server_is_away() {
    let (cluster, disk) = kept(&["a", "b"]).await;
    let late = disk.unread();
    let world = late.follows(&cluster);
    sleep(READ_WITHIN + 2 * GRACE).await;
    assert_eq!(world.seen.served(), None);
    late.save();
    assert_eq!(world.seen.served(), Some(all(&["a", "b"])));
}

#[tokio::test(start_paused = true)]
async fn what_can_be_read_once_all_was_heard_is_not_served_and_goes_when_that_is_said() {
    let (cluster, disk) = kept(&["a", "b", "d"]).await;
    cluster.state().is_away = false;
    cluster.delete("mesh", "a");
    cluster.apply("mesh", "b", 0, &[("a.yaml", "no: resource")]);
    cluster.cluster("c", 1);
    let late = disk.unread();
    let world = late.follows(&cluster);
    world.is_in_trouble("it is not known what is in a value that cannot be read").await;
    assert_eq!((world.seen.served(), world.seen.is_all()), (Some(all(&["c", "d"])), false));
    late.save();
    // But for the last good value of what is bad.
    world.serves(&[("b", 1), ("c", 1), ("d", 1)]).await;
    world.until(|world| world.seen.is_all()).await;
    cluster.delete("mesh", "d");
    world.serves(&[("b", 1), ("c", 1)]).await;
    late.save();
    assert_eq!(late.names(), ["a/a.yaml", "b/a.yaml", "c/a.yaml"], "of a nobody said that it went");
    drop(world);
    // Which the next list does.
    let next = late.restarted();
    let world = next.follows(&cluster);
    world.until(|world| world.seen.is_all()).await;
    next.save();
    assert_eq!(next.names(), ["b/a.yaml", "c/a.yaml"]);
}
