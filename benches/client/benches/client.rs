//! Time of an update by how many names a client watches, and of receiving a response of a thousand resources.

use client_bench::content::response;
use client_bench::machine::Machine;
use client_bench::receiving::{Decoded, walk};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use prost::Message;
use xds_transport::{Protocol, Response};

fn update(c: &mut Criterion) {
    let mut group = c.benchmark_group("update and ACK");
    for (label, protocol) in [("delta", Protocol::Delta), ("SotW", Protocol::Sotw)] {
        for names in [10, 3_000] {
            let mut machine = Machine::new(protocol);
            machine.subscribe(names);
            machine.apply(response(protocol, 0..names, 1));
            machine.transmit();
            let mut rounds = 2..;
            group.bench_function(BenchmarkId::new(label, names), |b| {
                b.iter_batched(
                    || response(protocol, [0], rounds.next().unwrap_or_default()),
                    |update| {
                        // The batch is made first, and applied afterwards.
                        machine.apply(update);
                        machine.transmit()
                    },
                    BatchSize::SmallInput,
                );
            });
        }
    }
    group.finish();
}

fn receive(c: &mut Criterion) {
    let message = response(Protocol::Delta, 0..1_000, 1);
    let mut group = c.benchmark_group("receive 1000 resources");
    group.throughput(Throughput::Elements(1_000));
    group.bench_function("prost", |b| b.iter(|| Decoded::decode(message.clone())));
    group.bench_function("walked", |b| b.iter(|| walk(message.clone())));
    group.bench_function("received", |b| b.iter(|| Response::from_delta(message.clone())));
    group.bench_function("applied", |b| {
        let subscribed = || {
            let mut machine = Machine::new(Protocol::Delta);
            machine.subscribe(1_000);
            machine
        };
        b.iter_batched_ref(subscribed, |machine| machine.apply(message.clone()), BatchSize::LargeInput);
    });
    group.finish();
}

criterion_group!(benches, update, receive);
criterion_main!(benches);
