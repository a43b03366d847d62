//! What fuzzing found interesting, again. The corpora are beside the fuzz targets, which the published crate has not.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod oracle;

use std::{fs, path::Path};

fn replay(target: &str, oracle: impl Fn(&str)) {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let mut replayed = 0;
    for entry in fs::read_dir(fuzz.join("corpus").join(target)).into_iter().flatten().flatten() {
        let bytes = fs::read(entry.path()).unwrap();
        // As a target gets it.
        let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        oracle(text);
        replayed += 1;
    }
    assert!(replayed > 0 || !fuzz.join("fuzz_targets").exists(), "nothing to replay for {target}");
}

#[test]
fn names() {
    replay("uri_name", oracle::name);
}

#[test]
fn locators() {
    replay("uri_locator", oracle::locator);
}
