use super::*;

/// Opens so many watches, of a name each.
fn open(world: &World, count: usize) -> Vec<Watch> {
    (0..count).map(|number| world.client.watch(CDS, &format!("{number}"))).collect()
}

#[test]
fn many_watches_open_and_drop_and_the_server_is_asked_for_each_once() {
    let world = World::new();
    let watches = open(&world, 10_000);
    world.network.settle();
    let asked = world.top().take_asked();
    assert_eq!(asked.len(), 10_000);
    drop(watches);
    world.network.settle();
    assert_eq!(world.top().take_asked().len(), 10_000);
}

#[test]
fn an_update_wakes_who_watches_it_however_many_others_there_are() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    let world = World::new();
    let mut watches = open(&world, 1000);
    world.network.settle();
    let woken = Arc::new(Woken::default());
    let waker = Arc::clone(&woken).into();
    for watch in &mut watches {
        heard(watch);
        let poll = futures_core::Stream::poll_next(std::pin::Pin::new(watch), &mut Context::from_waker(&waker));
        assert!(poll.is_pending());
    }
    world.put(CDS, "7", "1");
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    assert_eq!(heard(&mut watches[7]), ["put 7 1"]);
}
