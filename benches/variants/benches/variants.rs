//! Matching one constraint, and picking one variant of V, beside peers in the same run.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use variants_bench::{
    Cel, Tree, client, constraint, draft_member, draft_variants, final_variants, hash_map, member, scan,
};

fn match_one(c: &mut Criterion) {
    let mut group = c.benchmark_group("match 4 leaves");
    let (ours, parameters) = (constraint(), client());
    group.bench_function("xds-matcher", |b| b.iter(|| black_box(&ours).matches(black_box(&parameters))));
    let (tree, map) = (Tree::new(), hash_map());
    group.bench_function("HashMap tree", |b| b.iter(|| black_box(&tree).matches(black_box(&map))));
    let cel = Cel::new();
    group.bench_function("cel", |b| b.iter(|| black_box(&cel).matches()));
    group.finish();
}

fn select(c: &mut Criterion) {
    let mut group = c.benchmark_group("pick 1 of V");
    let (parameters, subscription) = (member(), draft_member());
    for count in [10, 100, 1000] {
        let variants = final_variants(count);
        group.bench_with_input(BenchmarkId::new("final", count), &count, |b, _| {
            b.iter(|| variants.select(black_box(&parameters)));
        });
        group.bench_with_input(BenchmarkId::new("scan", count), &count, |b, _| {
            b.iter(|| scan(&variants, black_box(&parameters)));
        });
        let variants = draft_variants(count);
        group.bench_with_input(BenchmarkId::new("draft", count), &count, |b, _| {
            b.iter(|| variants.select(black_box(&subscription)));
        });
    }
    group.finish();
}

criterion_group!(benches, match_one, select);
criterion_main!(benches);
