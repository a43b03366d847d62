//! Collections over a stream that several lists share (rule 24): each is that of its own list, whichever server feeds it.

use super::fallback::{LONG, told};
use super::one_stream::{of, of_lists, over_both, refused};
use super::wire::requests;
use super::*;

#[test]
fn r024_a_collection_is_what_the_server_has_whose_running_stream_it_comes_over_now() {
    let (glob, member) = (of("x", "g/*"), |id: &str| of("x", &format!("g/{id}")));
    let mut heard = Vec::new();
    for is_running in [false, true] {
        let world = of_lists(Protocol::Delta, &[2], &[("x", &[0, 1]), ("y", &[1])]);
        world.put_everywhere(&member("both"), "1");
        world.put_at(0, &member("first"), "1");
        world.put_at(1, &member("second"), "1");
        world.put_everywhere(&of("y", "1"), "1");
        let _of_y = is_running.then(|| world.watch(&of("y", "1")));
        let mut watch = world.watch(&glob);
        world.seconds(20);
        let mut all = vec![told(&mut watch)];
        world.at(0).go_down("away");
        world.seconds(10);
        let _new = world.watch(&of("x", "new"));
        world.seconds(20);
        assert_eq!((world.streams(), world.at(1).opened()), ([0, 1, 0], 1), "{is_running}");
        all.push(told(&mut watch));
        world.at(0).come_up();
        world.network.pass(LONG);
        assert_eq!(world.streams(), [1, usize::from(is_running), 0]);
        all.push(told(&mut watch));
        assert!(refused(&world).is_empty(), "{is_running}");
        heard.push(all);
    }
    let [alone, running] = &heard[..] else { panic!("two") };
    assert_eq!(alone, running);
    let put = |id: &str| format!("put {} 1", member(id));
    let removed = |id: &str| format!("removed {}", member(id));
    assert!(running[1].contains(&put("second")) && running[1].contains(&removed("first")), "{running:?}");
    assert!(running[2].contains(&put("first")) && running[2].contains(&removed("second")), "{running:?}");
    assert!(running.iter().flatten().all(|words| *words != removed("both")), "{running:?}");
}

#[test]
fn r024_a_wildcard_keeps_to_its_own_list_and_leaves_the_stream_of_others_with_it() {
    over_both(|protocol| {
        // The second server is the next one of the wildcard's list, and the only one of `y`.
        let world = of_lists(protocol, &[0, 1], &[("y", &[1])]);
        let y = of("y", "1");
        world.put_everywhere("old", "1");
        world.put_at(1, &y, "1");
        let mut of_y = world.watch(&y);
        let mut every = world.watch("*");
        world.seconds(1);
        assert_eq!(told(&mut of_y), [format!("put {y} 1")], "{protocol:?}");
        assert_eq!(told(&mut every)[0], "put old 1", "{protocol:?}");
        world.at(0).go_down("away");
        world.seconds(10);
        let _new = world.watch("new");
        world.put_at(1, "old", "2");
        world.seconds(20);
        assert_eq!((world.streams(), world.at(1).opened()), ([0, 1, 0], 1), "{protocol:?}");
        let heard = told(&mut every);
        assert!(heard.contains(&"put old 2".to_owned()), "{protocol:?} {heard:?}");
        assert!(heard.iter().all(|words| !words.contains(&y)), "{protocol:?}: {heard:?}");
        world.at(0).come_up();
        world.network.pass(LONG);
        assert_eq!(world.streams(), [1, 1, 0], "{protocol:?}");
        assert_eq!(told(&mut every).last().map(String::as_str), Some("put old 1"), "{protocol:?}");
        world.at(1).take_requests();
        world.put_at(1, "old", "nobody's");
        assert!(requests(&world.at(1), protocol).is_empty(), "{protocol:?}: what was left is not sent");
        world.put_at(1, &y, "2");
        assert_eq!(told(&mut of_y), [format!("put {y} 2")], "{protocol:?}");
        assert!(told(&mut every).is_empty(), "{protocol:?}");
    });
}
