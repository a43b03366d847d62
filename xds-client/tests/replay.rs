//! What the fuzzer found worth keeping, again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of these tests")]

use std::fs;
use std::path::Path;

#[path = "oracle/frames.rs"]
mod frames;
#[path = "oracle/bootstrap.rs"]
mod oracle;

#[test]
fn bootstrap_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/bootstrap");
    for entry in fs::read_dir(corpus).into_iter().flatten() {
        oracle::bootstrap(&fs::read(entry.unwrap().path()).unwrap());
    }
    oracle::bootstrap(include_bytes!("data/bootstrap_a47.json"));
}

#[test]
fn http2_frames_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/http2_frames");
    for entry in fs::read_dir(corpus).into_iter().flatten() {
        frames::http2_frames(&fs::read(entry.unwrap().path()).unwrap());
    }
}
