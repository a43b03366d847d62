//! Time per name, peers in the same run.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use names_bench::{CASES, NAMES};

fn names(criterion: &mut Criterion) {
    for (name, text) in NAMES {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(text.len() as u64));
        for (case, run) in CASES {
            group.bench_with_input(BenchmarkId::from_parameter(case), text, |bencher, text| {
                bencher.iter(|| run(black_box(text)));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, names);
criterion_main!(benches);
