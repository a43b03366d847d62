//! Time of one update until each of a hundred subscribers has it, peers in the same run.

use cache_bench::floor::Floor;
use cache_bench::nebucloud::Snapshots;
use cache_bench::ours::{Cached, Served};
use cache_bench::{Peer, Workload};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main};

const SUBSCRIBERS: usize = 100;

fn publish<P: Peer>(group: &mut BenchmarkGroup<'_, WallTime>, label: &str, workload: Workload, resources: usize) {
    // Both closures change it, one after the other.
    let peer = std::cell::RefCell::new(P::new(workload, resources, SUBSCRIBERS));
    group.bench_function(BenchmarkId::new(label, resources), |b| {
        b.iter_batched(
            || {
                let mut peer = peer.borrow_mut();
                peer.settle();
                peer.prepare();
            },
            |()| peer.borrow_mut().publish(),
            BatchSize::PerIteration,
        );
    });
}

fn update_for_100_subscribers(c: &mut Criterion) {
    for (name, workload) in [("wildcard", Workload::Wildcard), ("glob", Workload::Glob), ("exact", Workload::Exact(10))]
    {
        let mut group = c.benchmark_group(format!("update for 100 subscribers, {name}"));
        for resources in [1_000, 10_000] {
            publish::<Cached>(&mut group, "cached", workload, resources);
            publish::<Served>(&mut group, "served", workload, resources);
            publish::<Floor>(&mut group, "floor", workload, resources);
            if workload == Workload::Wildcard {
                publish::<Snapshots>(&mut group, "nebucloud", workload, resources);
            }
        }
        group.finish();
    }
}

criterion_group!(benches, update_for_100_subscribers);
criterion_main!(benches);
