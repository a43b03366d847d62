//! What the fuzz targets found, and random bytes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod oracle;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

fn replay(target: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    for entry in fs::read_dir(corpus).into_iter().flatten().flatten() {
        check(&fs::read(entry.path()).unwrap());
    }
}

#[test]
fn server_stream_corpus() {
    replay("server_stream", oracle::server_stream);
}

#[test]
fn client_stream_corpus() {
    replay("client_stream", oracle::client::client_stream);
}

#[test]
fn wire_walk_corpus() {
    replay("wire_walk", oracle::wire_walk);
}

#[test]
fn wire_locator_corpus() {
    replay("wire_locator", oracle::locator::wire_locator);
}

#[test]
fn certificate_subject_corpus() {
    replay("certificate_subject", oracle::subject::certificate_subject);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn server_stream_at_random(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        oracle::server_stream(&bytes);
    }

    #[test]
    fn client_stream_at_random(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        oracle::client::client_stream(&bytes);
    }

    #[test]
    fn wire_locator_at_random(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        oracle::locator::wire_locator(&bytes);
    }

    #[test]
    fn certificate_subject_at_random(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        oracle::subject::certificate_subject(&bytes);
    }

    #[test]
    fn wire_walk_at_random(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        oracle::wire_walk(&bytes);
    }
}
