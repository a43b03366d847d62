//! What one client may use up, by its rule, before an origin that is there.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::task::Waker;

use prost::Message as _;
use xds_relay::config::ClientLimits;
use xds_relay::relay_core::{ClientUse, Identity, Routes, ServedStream};
use xds_transport::server::{Source as _, Stream};
use xds_transport::wire::Node;
use xdstp_cache::{Interest, SubscriberId};

use crate::support::*;

#[path = "../support/unreached.rs"]
mod unreached;

use self::unreached::Unreached;

/// A stream of the one client there is.
fn open(world: &World, node: &str, limits: ClientLimits) -> (Routes, SubscriberId) {
    let core = &world.relays[0].core;
    let admitted = core.admit_client((Identity::Local, false), Some((0, limits)), world.now).unwrap();
    let mut routes = core.open_stream(DELTA, Waker::noop().clone(), Some(Arc::new(Unreached(admitted))));
    let node = Node { id: node.to_owned(), ..Node::default() };
    routes.identify(&node.encode_to_vec().into()).unwrap();
    let id = routes.open(&CLUSTERS.into());
    (routes, id)
}

/// Whether its stream goes on.
fn asks((routes, id): &mut (Routes, SubscriberId), name: &str) -> bool {
    routes.subscribe(*id, &Interest::from(name.parse::<xdstp_uri::ResourceName>().unwrap()));
    routes.resume(*id, Vec::new());
    routes.refused().is_none()
}

fn of(authority: &str, leaf: &str) -> String {
    format!("xdstp://{authority}/envoy.config.cluster.v3.Cluster/g/{leaf}")
}

/// Who comes back to a glob is told what went, for an hour.
#[test]
fn an_authority_that_a_client_left_counts_no_more_once_nothing_of_it_is_asked_for_though_it_is_remembered() {
    let mut world = World::of(&[DELTA], &[&["a", "b"]], "linger: 5s");
    let mut one = ClientLimits::default();
    one.authorities = NonZeroUsize::new(1);
    let (member, globs) = (of("a", "x"), ["a", "b"].map(|authority| of(authority, "*")));
    world.put(0, CLUSTERS, &member, "1");
    let mut stream = open(&world, "n", one);
    assert!(asks(&mut stream, &globs[0]));
    world.advance(SECOND);
    world.remove(0, CLUSTERS, &member);
    world.advance(SECOND);
    drop(stream);
    world.advance(2 * SECOND);
    assert!(!asks(&mut open(&world, "n", one), &globs[1]), "it is asked for still");
    world.advance(10 * SECOND);
    assert_eq!((world.scopes_of(0), world.streams_of(0)), (vec![], 0), "nothing is shown of what is only remembered");
    assert!(asks(&mut open(&world, "n", one), &globs[1]));
}
