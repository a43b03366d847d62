//! What the fuzz target `relay` found, and faults that must be found.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod oracle;

use std::fs;
use std::path::Path;

use crate::oracle::Fault;

fn corpus() -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/relay");
    fs::read_dir(corpus).into_iter().flatten().flatten().map(|entry| fs::read(entry.path()).unwrap()).collect()
}

#[test]
fn relay_corpus() {
    corpus().iter().for_each(|bytes| oracle::relay(bytes));
}

/// An oracle that finds nothing says nothing.
#[test]
fn every_planted_fault_is_found_by_the_corpus() {
    let corpus = corpus();
    for fault in Fault::ALL {
        assert!(corpus.iter().any(|bytes| oracle::run(bytes, Some(fault)).is_err()), "{fault:?}");
    }
}
