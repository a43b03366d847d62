//! A consumer that has thousands of commands, and passes some at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const PARTS: usize = 50;

struct Parts {
    passed: Arc<AtomicUsize>,
    wake: Arc<Notify>,
}

impl Consumer for Parts {
    fn commands(&mut self, _: Instant, apply: &mut dyn FnMut(Command)) {
        let part = self.passed.load(Ordering::Relaxed);
        if part < PARTS {
            let name: xdstp_uri::ResourceName = format!("{part:02}").parse().unwrap();
            apply(Command::Subscribe(CDS.into(), Interest::Name(name)));
            self.passed.store(part + 1, Ordering::Relaxed);
            // As a relay does for drivers that do not look.
            self.wake.notify_one();
        }
    }

    fn has_more_commands(&self) -> bool {
        self.passed.load(Ordering::Relaxed) < PARTS
    }

    fn update(&mut self, _: Instant, _: Update) -> Verdict {
        Verdict::Accept
    }

    fn connection(&mut self, _: Instant, _: Connection) {}

    fn type_ended(&mut self, _: Instant, _: &TypeUrl, _: &ResourceError) {}

    fn type_opened(&mut self, _: Instant, _: &TypeUrl) {}
}

/// Others have their turn between two parts, and the origin is asked for all at once.
#[tokio::test(start_paused = true)]
async fn what_is_passed_in_parts_keeps_nobody_waiting() {
    let (passed, wake) = (Arc::<AtomicUsize>::default(), Arc::<Notify>::default());
    let seen = {
        let passed = passed.clone();
        tokio::spawn(async move {
            let mut seen = std::collections::BTreeSet::new();
            while seen.last() != Some(&PARTS) {
                seen.insert(passed.load(Ordering::Relaxed));
                tokio::task::yield_now().await;
            }
            seen.len()
        })
    };
    let mut connections = run_woken(endpoint(), Parts { passed, wake: wake.clone() }, wake);
    let (mut request, _to) = accept(connections.recv().await.unwrap()).await;
    let data = request.body_mut().data().await.unwrap().unwrap();
    let request = DeltaDiscoveryRequest::decode(&data[5..]).unwrap();
    assert_eq!(request.resource_names_subscribe.len(), PARTS);
    assert!(seen.await.unwrap() > PARTS / 2);
}
