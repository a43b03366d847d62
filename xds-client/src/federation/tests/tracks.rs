//! A client whose track changes: it is sent what differs, and holds what is on its track.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::federation::scope_key::ScopeKey;
use crate::federation::snapshot_origin::SnapshotOrigin;

const NAMES: [&str; 6] = ["a", "b", "c", "xdstp://authority/T/g/a", "xdstp://authority/T/g/b", "xdstp://authority/T/h"];
/// Beside the names themselves.
const COLLECTIONS: [&str; 2] = ["*", "xdstp://authority/T/g/*"];

/// What there is of each name: nothing, or one of these bodies.
type Content = [u8; NAMES.len()];

/// The other track of all that an origin has.
#[derive(Default)]
struct Stable {
    scopes: Mutex<BTreeMap<ScopeKey, Arc<Scope>>>,
    content: Mutex<Vec<(TypeUrl, ResourceName, Resource<Frame>)>>,
    /// It is being filled, and its scopes have so much of what they are to have.
    is_behind: Mutex<Option<usize>>,
}

impl Stable {
    fn set(&self, content: Content) {
        *lock(&self.content) = resources(content);
        let scopes: Vec<_> = lock(&self.scopes).values().cloned().collect();
        scopes.iter().for_each(|scope| self.fill(scope));
    }

    fn fill(&self, scope: &Scope) {
        let is_own = |name: &ResourceName| name.authority() == scope.key.authority();
        let own: Vec<_> = lock(&self.content).iter().filter(|(_, name, _)| is_own(name)).cloned().collect();
        match *lock(&self.is_behind) {
            None => scope.replace(&own, now()),
            Some(has) => assert!(scope.put(own.get(..has).unwrap_or(&own), None, now()).is_empty()),
        }
    }

    /// Another one is in its place, which has so much of what it is to have.
    fn begin(&self, has: usize) {
        lock(&self.scopes).clear();
        *lock(&self.is_behind) = Some(has);
    }

    /// It has all that it is to have.
    fn catch_up(&self) {
        *lock(&self.is_behind) = None;
        let scopes: Vec<_> = lock(&self.scopes).values().cloned().collect();
        scopes.iter().for_each(|scope| self.fill(scope));
    }

    fn is_filled(&self) -> bool {
        lock(&self.is_behind).is_none()
    }

    fn scope(&self, of: &Scope) -> Arc<Scope> {
        let make = || {
            let scope = Arc::new(Scope::authoritative(of.key.clone(), of.origin(), 10));
            self.fill(&scope);
            scope
        };
        lock(&self.scopes).entry(of.key.clone()).or_insert_with(make).clone()
    }
}

/// A client that is on one of two tracks.
struct Tracked(Arc<Stable>, Arc<Mutex<bool>>);

impl Client for Tracked {
    fn identify(&self, node: &Bytes) -> Result<NodeGroup, NodeError> {
        Ok(NodeGroup::new(node.to_vec(), "a group".to_owned()))
    }

    fn refused(&self, error: &OverLimit) -> String {
        error.to_string()
    }

    fn track(&self, _: &TypeUrl, scope: &Scope) -> Option<Arc<Scope>> {
        lock(&self.1).then(|| self.0.scope(scope))
    }
}

/// Even ones have a version of their own, the odd ones that of what the other track has: content counts.
fn resources(content: Content) -> Vec<(TypeUrl, ResourceName, Resource<Frame>)> {
    let one = |(name, body): (&str, u8)| {
        let version = (body % 2 == 1).then(|| "1".into());
        let frame = Frame::new(Bytes::from(vec![body]));
        (body > 0).then(|| ("T".into(), name.parse().unwrap(), frame.into_resource(version)))
    };
    NAMES.into_iter().zip(content).filter_map(one).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Origin(Content),
    Stable(Content),
    Move,
    /// All look where they are: there is another track in place of that one, and it has so much of what it is to have.
    Begin(usize),
    CatchUp,
    Want(usize),
    Leave(usize),
    /// With so many visits, and removals or not.
    Pull(usize, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let content = || proptest::array::uniform6(0..5_u8);
    let interest = || 0..NAMES.len() + COLLECTIONS.len();
    prop_oneof![
        1 => content().prop_map(Step::Origin),
        1 => content().prop_map(Step::Stable),
        3 => Just(Step::Move),
        1 => (0..4_usize).prop_map(Step::Begin),
        1 => Just(Step::CatchUp),
        2 => interest().prop_map(Step::Want),
        1 => interest().prop_map(Step::Leave),
        3 => (1..8_usize, any::<bool>()).prop_map(|(visits, removals)| Step::Pull(visits, removals)),
    ]
}

struct World {
    origin: Arc<SnapshotOrigin>,
    stable: Arc<Stable>,
    is_stable: Arc<Mutex<bool>>,
    view: Arc<View>,
    routes: Routes,
    id: SubscriberId,
    contents: [Content; 2],
    wants: BTreeSet<usize>,
    /// Whether its session says all there is, each time.
    says_all: bool,
    /// What the client has.
    held: BTreeMap<ResourceName, u128>,
    /// It asked for something since it was told all.
    asked: bool,
    /// Whether it was told all by the last pull.
    is_told: bool,
    /// What became another since then, somewhere: it may be as it was again.
    changed: BTreeSet<ResourceName>,
    /// What there ever was.
    was: BTreeSet<ResourceName>,
}

fn interest(at: usize) -> Interest {
    match NAMES.iter().chain(&COLLECTIONS).nth(at) {
        Some(&"*") => Interest::Wildcard,
        Some(name) => wants(name),
        None => unreachable!(),
    }
}

impl World {
    fn new(says_all: bool) -> Self {
        let origin = Arc::new(SnapshotOrigin::new("test", Arc::new(xds_transport::TypeRules::envoy())));
        origin.set(Vec::new(), now());
        let (stable, is_stable, view) =
            (Arc::<Stable>::default(), Arc::<Mutex<bool>>::default(), Arc::<View>::default());
        let federation = of_origin(origin.clone());
        let client = Box::new(Tracked(stable.clone(), is_stable.clone()));
        let mut routes =
            Routes::new(federation.clone(), federation.number_routes(), client, Waker::noop().clone(), view.clone());
        routes.identify(&Bytes::from_static(b"g")).unwrap();
        let id = routes.open(&"T".into());
        let (contents, wants, held, changed, was) = Default::default();
        Self {
            origin,
            stable,
            is_stable,
            view,
            routes,
            id,
            contents,
            wants,
            says_all,
            held,
            asked: false,
            is_told: true,
            changed,
            was,
        }
    }

    /// Whether where it is served has all there is.
    fn is_known(&self) -> bool {
        !*lock(&self.is_stable) || self.stable.is_filled()
    }

    fn covers(&self, name: &ResourceName) -> bool {
        self.wants.iter().any(|at| match interest(*at) {
            Interest::Wildcard => name.is_opaque(),
            Interest::Name(of) => of == *name || name.answers(&of),
        })
    }

    fn there(&self) -> BTreeMap<ResourceName, u128> {
        let content = self.contents[usize::from(*lock(&self.is_stable))];
        let there = resources(content).into_iter().filter(|(_, name, _)| self.covers(name));
        there.map(|(_, name, resource)| (name, resource.digest())).collect()
    }

    /// On each of the tracks a version is that of one content.
    fn becomes(&mut self, track: usize, content: Content) -> Content {
        let content = content.map(|body| if body % 2 == 1 { 1 + 2 * track as u8 } else { body });
        let before = std::mem::replace(&mut self.contents[track], content);
        let changed = NAMES.iter().zip(before.iter().zip(content)).filter(|(_, (before, now))| **before != *now);
        self.was.extend(resources(content).into_iter().map(|(_, name, _)| name));
        self.changed.extend(changed.map(|(name, _)| name.parse::<ResourceName>().unwrap()));
        content
    }

    fn act(&mut self, step: &Step) {
        match *step {
            Step::Origin(content) => {
                let content = self.becomes(0, content);
                self.origin.set(resources(content), now());
            }
            Step::Stable(content) => {
                let content = self.becomes(1, content);
                self.stable.set(content);
            }
            Step::Move => {
                {
                    let is_stable = &mut *lock(&self.is_stable);
                    *is_stable = !*is_stable;
                }
                // Of what a client has that moves on before it was told all, less is known; and its content is not compared with what
                // is not there yet.
                self.asked |= !self.is_told || !self.is_known();
                self.view.look_anew();
            }
            Step::Begin(has) => {
                self.stable.begin(has);
                self.asked |= !self.is_told || !self.is_known();
                self.view.look_anew();
            }
            Step::CatchUp => self.stable.catch_up(),
            Step::Want(at) => {
                self.wants.insert(at);
                self.routes.subscribe(self.id, &interest(at));
                self.asked = true;
            }
            Step::Leave(at) => {
                self.wants.remove(&at);
                self.routes.unsubscribe(self.id, &interest(at));
                let held = std::mem::take(&mut self.held);
                self.held = held.into_iter().filter(|(name, _)| self.covers(name)).collect();
                // What is covered still is answered once more (rules 52 and 53).
                self.asked = true;
            }
            Step::Pull(..) if self.says_all => self.full_state(),
            Step::Pull(visits, removals) => {
                let removals = if removals { Removals::Include } else { Removals::Defer };
                self.pull(removals, visits);
            }
        }
    }

    /// Whether there was more.
    fn pull(&mut self, removals: Removals, visits: usize) -> bool {
        let is_known = self.is_known();
        let Self { routes, held, asked, is_told, changed, was, .. } = self;
        let (mut left, mut is_gone) = (visits, false);
        let pulled = routes.pull(self.id, removals, &mut |pull| {
            match pull {
                Pull::Put { name, resource, .. } => {
                    assert!(!is_gone, "an addition after a removal");
                    let before = held.insert(name.clone(), resource.digest());
                    let is_news = before != Some(resource.digest()) || changed.contains(name);
                    assert!(*asked || is_news, "{name} is as it was");
                }
                Pull::Removed { name, .. } => {
                    let was_there = held.remove(name).is_some();
                    assert!(is_known || !was_there, "{name} is told to be gone where that is not known");
                    // What it cannot have, nobody waits for.
                    assert!(removals == Removals::Include || !was_there, "{name} is told to be gone early");
                    is_gone |= was_there;
                    // That a glob has come to be empty is news, too; and who may have held a name is told that it is gone (rule 100).
                    let is_news = was_there || name.is_glob() || was.contains(name);
                    assert!(*asked || is_news, "{name} was never there");
                }
                _ => {}
            }
            // What several parts may have is said behind what they say, enough or not.
            left = left.saturating_sub(1);
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        *is_told = !pulled.more && removals == Removals::Include && is_known;
        if *is_told {
            *asked = false;
            changed.clear();
        }
        pulled.more
    }

    /// It takes nothing away before all that is new was said.
    fn full_state(&mut self) {
        while self.pull(Removals::Defer, usize::MAX) {}
        let mut state = BTreeSet::new();
        self.routes.visit_leaving(self.id, Removals::Defer, &mut |name, _| {
            state.insert(name.clone());
            true
        });
        self.routes.visit(self.id, &mut |name, _| _ = state.insert(name.clone()));
        let lacks: Vec<_> = self.held.keys().filter(|name| !state.contains(*name)).collect();
        assert!(lacks.is_empty() || self.asked, "{lacks:?} is left out");
        // What is in no state is gone with it.
        self.held.retain(|name, _| state.contains(name));
        let _ = self.pull(Removals::Include, usize::MAX);
        let (mut state, there, is_known) = (BTreeSet::new(), self.there(), self.is_known());
        self.routes.visit_leaving(self.id, Removals::Include, &mut |name, _| {
            assert!(!is_known, "{name} may be told");
            state.insert(name.clone())
        });
        self.routes.visit(self.id, &mut |name, _| _ = state.insert(name.clone()));
        let lacks: Vec<_> = self.held.keys().filter(|name| !state.contains(*name)).collect();
        assert!(is_known || lacks.is_empty(), "{lacks:?} is left out where it is not known to be gone");
        assert!(!is_known || state.iter().eq(there.keys()), "{state:?} for {there:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn who_moves_is_sent_what_differs_and_holds_what_is_on_its_track(
        says_all: bool,
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let mut world = World::new(says_all);
        for step in &steps {
            world.act(step);
        }
        world.act(&Step::CatchUp);
        if says_all {
            world.full_state();
        }
        while world.pull(Removals::Include, 3) {}
        assert_eq!(world.held, world.there());
        assert!(!world.routes.has_work(world.id), "all of it was said");
    }
}
