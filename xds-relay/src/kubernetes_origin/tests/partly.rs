//! What is kept over a restart of an origin that was never heard as a whole.

use tokio::time::sleep;

use super::cluster::Cluster;
use super::restarting::{Disk, all, kept};
use super::{SETTLED, World, both};

/// Such as a kind that the relay may not read: whoever starts with it serves nothing, and a rollout stops there.
#[tokio::test(start_paused = true)]
async fn what_is_not_served_for_a_part_that_is_forbidden_is_not_after_a_restart() {
    let (cluster, disk) = (Cluster::default(), Disk::new());
    cluster.cluster("a", 1);
    cluster.state().forbidden = Some("xdsresources");
    let world = World::keeping(cluster.clone(), both(), &["mesh"], Some(&disk));
    sleep(SETTLED).await;
    assert_eq!(world.seen.served(), None);
    disk.save();
    drop(world);
    let disk = disk.restarted();
    let world = World::keeping(cluster.clone(), both(), &["mesh"], Some(&disk));
    sleep(SETTLED).await;
    assert_eq!(world.seen.served(), None);
    assert!(world.seen.trouble().unwrap().contains("nothing is known"));
    cluster.state().forbidden = None;
    world.until(|world| world.seen.is_all()).await;
    disk.save();
    drop(world);
    // Of all of it something is known by now, be it that there is nothing.
    cluster.state().forbidden = Some("xdsresources");
    let world = World::keeping(cluster.clone(), both(), &["mesh"], Some(&disk.restarted()));
    world.serves(&[("a", 1)]).await;
    assert!(!world.seen.is_all());
}

#[tokio::test(start_paused = true)]
async fn what_there_was_is_served_with_a_namespace_that_came_beside_once_that_is_listed() {
    let (cluster, disk) = kept(&["a"]).await;
    let more = World::keeping(cluster.clone(), both(), &["mesh", "other"], Some(&disk.restarted()));
    sleep(SETTLED).await;
    assert_eq!(more.seen.served(), None);
    cluster.state().is_away = false;
    more.until(|world| world.seen.is_all()).await;
    assert_eq!(more.seen.served(), Some(all(&["a"])));
}
