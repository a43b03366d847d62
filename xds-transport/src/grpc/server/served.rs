//! A cache, the streams that are served from it, and the end of what lives for a time in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use xdstp_cache::{Cache, Outcome, Resource, SubscriberId, TypeUrl, Variant};
use xdstp_uri::ResourceName;

use crate::frame::Frame;
use crate::grpc::now;
use crate::grpc::server::gate::Gate;
use crate::grpc::server::handle::Wake;
use crate::grpc::server::lives::Lives;
use crate::put::put_fitting;

/// What is served.
pub(crate) struct Served {
    pub(crate) cache: Cache<Frame>,
    /// The stream of each subscriber.
    pub(crate) wakes: HashMap<SubscriberId, Wake>,
    /// Whether it was filled.
    open: bool,
    lives: Lives,
    timer: Option<Timer>,
    /// Where a timer runs.
    runtime: Option<Handle>,
}

/// Ends what is over.
struct Timer {
    at: Instant,
    task: JoinHandle<()>,
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Served {
    pub(crate) fn new(cache: Cache<Frame>, open: bool) -> Self {
        Self { cache, wakes: HashMap::new(), open, lives: Lives::default(), timer: None, runtime: None }
    }

    /// The cache, as streams may pull from it.
    pub(crate) fn gate(&mut self) -> Gate<'_> {
        Gate { open: self.open, cache: &mut self.cache }
    }

    /// There is what was found to fit.
    pub(crate) fn put_fitting(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        resource: Resource<Frame>,
        woken: &mut Vec<SubscriberId>,
    ) -> Outcome {
        self.lives.set(type_url, name, resource.value.expires());
        put_fitting(&mut self.cache, type_url, name, resource, now(), woken)
    }

    pub(crate) fn remove(&mut self, type_url: &TypeUrl, name: &ResourceName, woken: &mut Vec<SubscriberId>) {
        self.lives.set(type_url, name, None);
        self.cache.remove(type_url, name, now(), woken);
    }

    /// Variants come and go, all of them in one step.
    pub(crate) fn vary(
        &mut self,
        variants: impl IntoIterator<Item = (TypeUrl, ResourceName, Variant, Option<Resource<Frame>>)>,
        woken: &mut Vec<SubscriberId>,
    ) {
        let mut edit = self.cache.edit(now());
        for (type_url, name, variant, resource) in variants {
            if variant.is_plain() {
                self.lives.set(&type_url, &name, None);
            }
            match resource {
                Some(resource) => _ = edit.put_variant(&type_url, &name, &variant, resource),
                None => edit.remove_variant(&type_url, &name, &variant),
            }
        }
        woken.extend(edit.finish());
    }

    fn end_what_is_over(&mut self, woken: &mut Vec<SubscriberId>) {
        let now = now();
        self.cache.expire(now);
        while let Some((type_url, name)) = self.lives.pop(now) {
            // It may have been put again by who does not say so.
            let held = self.cache.resource(&type_url, &name).map(|resource| resource.value.expires());
            match held {
                Some(Some(ends)) if ends <= now => self.cache.remove(&type_url, &name, now, woken),
                Some(Some(ends)) => self.lives.set(&type_url, &name, Some(ends)),
                Some(None) | None => {}
            }
        }
    }

    /// Who is to be told of a change. The first one opens, and may have something for everybody who came before.
    fn take_wakes(&mut self, woken: &[SubscriberId], opens: bool) -> Vec<Wake> {
        if opens && !std::mem::replace(&mut self.open, true) {
            return self.wakes.values().cloned().collect();
        }
        woken.iter().filter_map(|id| self.wakes.get(id).cloned()).collect()
    }
}

/// One change: no stream sees a part of it.
pub(crate) fn edit<T>(
    of: &Arc<Mutex<Served>>,
    opens: bool,
    edit: impl FnOnce(&mut Served, &mut Vec<SubscriberId>) -> T,
) -> T {
    let mut woken = Vec::new();
    let mut served = lock(of);
    served.end_what_is_over(&mut woken);
    let edited = edit(&mut served, &mut woken);
    let wakes = served.take_wakes(&woken, opens);
    arm(of, &mut served);
    drop(served);
    // Not under the lock.
    wakes.iter().for_each(Wake::wake);
    edited
}

/// Has what is over next end in time, though nobody looks: as soon as there is a runtime, which there is where there are streams.
pub(crate) fn arm(of: &Arc<Mutex<Served>>, served: &mut Served) {
    let Some(next) = served.lives.next() else { return };
    if let Ok(runtime) = Handle::try_current() {
        served.runtime = Some(runtime);
    }
    let Some(runtime) = &served.runtime else { return };
    if served.timer.as_ref().is_some_and(|timer| timer.at <= next && !timer.task.is_finished()) {
        return;
    }
    let weak = Arc::downgrade(of);
    let task = runtime.spawn(async move {
        tokio::time::sleep_until(next.into()).await;
        let Some(of) = weak.upgrade() else { return };
        // The next one is not to wait for this one, which is about to end.
        let this = lock(&of).timer.take();
        edit(&of, false, |_, _| ());
        drop(this);
    });
    served.timer = Some(Timer { at: next, task });
}

pub(crate) fn lock(of: &Mutex<Served>) -> MutexGuard<'_, Served> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
