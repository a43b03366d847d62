//! A cache, the streams that are served from it, and the end of what lives for a time in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use xdstp_cache::{Cache, Edit, Outcome, Resource, SubscriberId, TypeUrl, Variant, Woken};
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

    /// A change that begins with the end of what is over.
    fn begin(&mut self) -> ServedEdit<'_> {
        let now = now();
        let mut edit = ServedEdit { cache: self.cache.edit(now), lives: &mut self.lives };
        edit.end_what_is_over(now);
        edit
    }

    /// Who is to be told of a change. The first one opens, and may have something for everybody who came before.
    fn take_wakes(&mut self, woken: &Woken, opens: bool) -> Vec<Wake> {
        if opens && !std::mem::replace(&mut self.open, true) {
            return self.wakes.values().cloned().collect();
        }
        woken.iter().filter_map(|id| self.wakes.get(&id).cloned()).collect()
    }
}

/// A change of what is served.
pub(crate) struct ServedEdit<'a> {
    pub(crate) cache: Edit<'a, Frame>,
    lives: &'a mut Lives,
}

impl ServedEdit<'_> {
    /// There is what was found to fit.
    pub(crate) fn put_fitting(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        resource: Resource<Frame>,
    ) -> Outcome {
        self.lives.set(type_url, name, resource.value.expires());
        put_fitting(&mut self.cache, type_url, name, resource)
    }

    pub(crate) fn remove(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        self.lives.set(type_url, name, None);
        self.cache.remove(type_url, name);
    }

    /// Variants come and go, all of them in one step.
    pub(crate) fn vary(
        &mut self,
        variants: impl IntoIterator<Item = (TypeUrl, ResourceName, Variant, Option<Resource<Frame>>)>,
    ) {
        for (type_url, name, variant, resource) in variants {
            if variant.is_plain() {
                self.lives.set(&type_url, &name, resource.as_ref().and_then(|resource| resource.value.expires()));
            }
            match resource {
                Some(resource) => _ = self.cache.put_variant(&type_url, &name, &variant, resource),
                None => self.cache.remove_variant(&type_url, &name, &variant),
            }
        }
    }

    fn finish(self) -> Woken {
        self.cache.finish()
    }

    fn end_what_is_over(&mut self, now: Instant) {
        while let Some((type_url, name)) = self.lives.pop(now) {
            // It may have been put again by who does not say so.
            let plain = Variant::plain();
            let held = self.cache.variant(&type_url, &name, plain).map(|resource| resource.value.expires());
            match held {
                Some(Some(ends)) if ends <= now => self.cache.remove_variant(&type_url, &name, plain),
                Some(Some(ends)) => self.lives.set(&type_url, &name, Some(ends)),
                Some(None) | None => {}
            }
        }
    }
}

/// One change: no stream sees a part of it.
pub(crate) fn edit<T>(of: &Arc<Mutex<Served>>, opens: bool, edit: impl FnOnce(&mut ServedEdit<'_>) -> T) -> T {
    let mut served = lock(of);
    let mut change = served.begin();
    let edited = edit(&mut change);
    let woken = change.finish();
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
        edit(&of, false, |_| ());
        drop(this);
    });
    served.timer = Some(Timer { at: next, task });
}

pub(crate) fn lock(of: &Mutex<Served>) -> MutexGuard<'_, Served> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::task::{AbortHandle, yield_now};
    use xdstp_cache::Options;

    use super::*;

    const URL: &str = "type.example.com/T";

    fn served() -> Arc<Mutex<Served>> {
        Arc::new(Mutex::new(Served::new(Cache::new(Options::default()), true)))
    }

    /// A resource that is over so many seconds from now, and the timer that there is then.
    fn put(of: &Arc<Mutex<Served>>, name: &str, seconds: u64) -> AbortHandle {
        let url = TypeUrl::from(URL);
        let frame = Frame::of_message(&url, b"1").until(Some(now() + Duration::from_secs(seconds)));
        edit(of, true, |edit| edit.put_fitting(&url, &name.parse().unwrap(), frame.into_resource(None)));
        lock(of).timer.as_ref().unwrap().task.abort_handle()
    }

    /// Each resource of an origin may be for a time, and each response may put thousands of them.
    #[tokio::test(start_paused = true)]
    async fn there_is_one_timer_and_it_is_a_new_one_only_if_that_is_to_ring_before() {
        let served = served();
        let timers = [put(&served, "a", 10), put(&served, "b", 20), put(&served, "a", 10)];
        yield_now().await;
        assert_eq!(timers.each_ref().map(AbortHandle::is_finished), [false; 3], "it is the same");
        let sooner = put(&served, "c", 5);
        yield_now().await;
        assert_eq!(timers.map(|timer| timer.is_finished()), [true; 3], "what rings later is not waited for any more");
        assert!(!sooner.is_finished());
        let there = |name: &str| lock(&served).cache.resource(&URL.into(), &name.parse().unwrap()).is_some();
        for (seconds, left) in [(5, [true, true, false]), (5, [false, true, false]), (10, [false; 3])] {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            yield_now().await;
            assert_eq!(["a", "b", "c"].map(there), left);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_removed_is_not_kept_until_it_would_have_been_over() {
        let served = served();
        put(&served, "a", 10);
        edit(&served, true, |edit| edit.remove(&URL.into(), &"a".parse().unwrap()));
        assert_eq!(lock(&served).lives.next(), None);
    }
}
