use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::upstream::Consumer;
use tonic::metadata::MetadataMap;
use xds_transport::{Protocol, TypeRules};

use super::*;
use crate::federation::loop_guard::{Behind, LoopGuard};
use crate::federation::realm::Authorities;

/// Counts the streams that are kept open, and how often one was nudged.
#[derive(Default)]
struct Streams {
    open: Arc<AtomicUsize>,
    nudged: Arc<AtomicUsize>,
}

struct Kept(Arc<AtomicUsize>, Arc<AtomicUsize>);

struct Alone;

impl Dial for Streams {
    fn dial(&self, _: Position, _: Bytes, _: Box<dyn Consumer>) -> Box<dyn Dialed> {
        self.open.fetch_add(1, Ordering::Relaxed);
        Box::new(Kept(self.open.clone(), self.nudged.clone()))
    }
}

impl Dialed for Kept {
    fn nudge(&self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LoopGuard for Alone {
    fn instance(&self) -> String {
        "alone".to_owned()
    }

    fn say(&self) -> MetadataMap {
        MetadataMap::new()
    }

    fn hear(&self, _: &MetadataMap) -> Result<Option<Box<dyn Behind>>, String> {
        Ok(None)
    }
}

fn server() -> Arc<Server> {
    let authorities = Arc::new(Authorities::new([].into(), 0));
    Arc::new(Server {
        origin: "origin".to_owned(),
        name: "server".to_owned(),
        position: Position { origin: 0, server: 0 },
        protocol: Protocol::Delta,
        rules: Arc::new(TypeRules::envoy()),
        authorities,
        loops: Arc::new(Alone),
        interner: Arc::default(),
        alike: Default::default(),
        observer: Arc::new(()),
        silent_hint: "",
        replaces: Default::default(),
    })
}

fn scope(authority: &str) -> Arc<Scope> {
    Arc::new(Scope::streamed(ScopeKey::Authority(authority.to_owned()), 0, Duration::ZERO, None, 1))
}

/// A seat that stayed would have its authority's news stored where nobody looks, and a stream that stayed would have them
/// sent.
#[test]
fn a_scope_that_needs_nothing_leaves_its_seat_and_the_last_ends_the_stream() {
    let (streams, [a, b]) = (Arc::<Streams>::default(), ["a", "b"].map(scope));
    let dial: Arc<dyn Dial> = streams.clone();
    let speaker = Speaker { label: "xdstp".to_owned(), node: Bytes::new() };
    let upstream = Undialed::new(server(), speaker, Arc::default(), &a.key).dial(&dial);
    let of_origin = Arc::new(OfOrigin { name: "origin".to_owned(), has_several: false, mixed: Default::default() });
    for scope in [&a, &b] {
        scope.feed_from(Arc::new(upstream.clone().seat(scope, 0, &of_origin)));
    }
    assert_eq!(streams.nudged.load(Ordering::Relaxed), 2);
    #[allow(clippy::disallowed_methods, reason = "any moment will do")]
    let now = Instant::now();
    let scopes = upstream.scopes.clone();
    drop(upstream);
    drop(a.disconnect());
    a.rest(now);
    assert!(scopes.of_authority("a").is_none() && scopes.of_authority("b").is_some());
    assert_eq!(streams.open.load(Ordering::Relaxed), 1);
    // As good as resting.
    drop(b);
    assert_eq!((scopes.all().len(), scopes.take_asking().len(), streams.open.load(Ordering::Relaxed)), (0, 0, 0));
}
