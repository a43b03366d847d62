//! Streams that are told alike.

use std::collections::HashMap;
use std::sync::Mutex;

use xdstp_cache::Resource as Held;

use super::*;
use crate::client::Intern;
use crate::frame::Frame;

/// Knows what came first by each name, and has the others be that.
#[derive(Debug, Default)]
struct First(Mutex<HashMap<ResourceName, Held<Frame>>>);

impl Intern for First {
    fn intern(&self, name: &mut ResourceName, resource: &mut Held<Frame>) {
        let mut known = self.0.lock().unwrap();
        let first = known.entry(name.clone()).or_insert_with(|| resource.clone()).clone();
        *name = known.keys().find(|known| *known == name).unwrap().clone();
        if resource.value.hold_with(&first.value) {
            resource.version = first.version;
        }
    }
}

fn pair(protocol: Protocol) -> (Arc<First>, [Client; 2]) {
    let first = Arc::new(First::default());
    let clients = [(); 2].map(|()| {
        let mut client = Client::subscribed(protocol, CDS, &["a"]);
        client.stream.apply(Command::Intern(first.clone()));
        client
    });
    (first, clients)
}

#[test]
fn what_comes_is_what_the_interner_makes_of_it() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let (_first, clients) = pair(protocol);
        let [one, other] = clients.map(|mut client| {
            let update = match protocol {
                Protocol::Delta => client.accept(&delta(CDS, "n", &[("a", "1")], &[])),
                Protocol::Sotw => client.accept(&sotw(CDS, "1", "n", &[("a", "1")])),
            };
            update.changed.into_iter().next().unwrap()
        });
        assert_eq!(one.name.as_str().as_ptr(), other.name.as_str().as_ptr(), "{protocol:?}");
        assert_eq!(one.resource.version.as_str().as_ptr(), other.resource.version.as_str().as_ptr());
        assert_eq!(one.resource.value.any().as_ptr(), other.resource.value.any().as_ptr());
    }
}

#[test]
fn what_is_held_is_the_same_too() {
    let (first, mut clients) = pair(Protocol::Delta);
    for client in &mut clients {
        client.accept(&delta(CDS, "n", &[("a", "1")], &[]));
    }
    let known = std::mem::take(&mut *first.0.lock().unwrap());
    let (name, resource) = known.into_iter().next().unwrap();
    // Updates are gone, and the clients are not.
    assert!(name.is_shared() && resource.version.is_shared());
    drop(clients);
    assert!(!name.is_shared() && !resource.version.is_shared());
}
