//! One question, asked as often as told: `count CASE TIMES`. For `instructions.sh`; also counts allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use variants_bench::{
    Cel, Tree, client, constraint, draft_member, draft_variants, exact_shard, final_shard_ranges, final_shards,
    final_variants, hash_map, member, ranged_member, ranged_shard, ranged_variants, scan, shard_member, shards,
};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().expect("a case");
    let times: u64 = arguments.next().and_then(|times| times.parse().ok()).expect("how many times");
    let (name, count) = case.split_once('-').unwrap_or((&case, "10"));
    let count: usize = count.parse().expect("a number of variants");
    match name {
        "match" => {
            let (ours, parameters) = (constraint(), client());
            repeat(times, || black_box(&ours).matches(black_box(&parameters)));
        }
        "tree" => {
            let (tree, map) = (Tree::new(), hash_map());
            repeat(times, || black_box(&tree).matches(black_box(&map)));
        }
        "cel" => {
            let cel = Cel::new();
            repeat(times, || black_box(&cel).matches());
        }
        "final" => {
            let (variants, parameters) = (final_variants(count), member());
            repeat(times, || black_box(&variants).select(black_box(&parameters)).variant().is_some());
        }
        "scan" => {
            let (variants, parameters) = (final_variants(count), member());
            repeat(times, || scan(black_box(&variants), black_box(&parameters)).is_some());
        }
        "draft" => {
            let (variants, subscription) = (draft_variants(count), draft_member());
            repeat(times, || black_box(&variants).select(black_box(&subscription)).variant().is_some());
        }
        "draftrange" => {
            let (variants, subscription) = (draft_variants(count), ranged_member());
            repeat(times, || black_box(&variants).select(black_box(&subscription)).variant().is_some());
        }
        "shard" | "shardrange" => {
            let variants = shards(count);
            let subscription = if name == "shard" { exact_shard() } else { ranged_shard() };
            repeat(times, || black_box(&variants).select(black_box(&subscription)).variant() == Some(&5));
        }
        "finalrange" => {
            let (variants, parameters) = (ranged_variants(count), member());
            repeat(times, || black_box(&variants).select(black_box(&parameters)).variant().is_some());
        }
        "finalshard" | "finalshardrange" => {
            let variants = if name == "finalshard" { final_shards(count) } else { final_shard_ranges(count) };
            let parameters = shard_member();
            repeat(times, || black_box(&variants).select(black_box(&parameters)).variant().is_some());
        }
        _ => panic!("no such case: {case}"),
    }
}

#[inline(never)]
fn repeat(times: u64, ask: impl Fn() -> bool) {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let all = (0..times).filter(|_| black_box(ask())).count() as u64;
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert_eq!(all, times, "every question has a positive answer");
    println!("{}", allocations.checked_div(times).unwrap_or_default());
}
