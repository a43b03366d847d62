//! What the fuzz target of handshakes found, and random bytes.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

#[path = "../oracle/handshake.rs"]
mod oracle;

#[test]
fn handshake_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/handshake");
    for entry in fs::read_dir(corpus).into_iter().flatten().flatten() {
        oracle::handshake(&fs::read(entry.path()).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn handshake_at_random(head in 20..24_u8, bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        oracle::handshake(&bytes);
        let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
        oracle::handshake(&[&[head, 3, 1], &length[..], &bytes].concat());
    }
}
