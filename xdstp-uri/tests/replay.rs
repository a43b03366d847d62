//! What fuzzing found interesting, again. The corpora are beside the fuzz targets, which the published crate has not.

mod oracle;

use std::{fs, path::Path};

fn replay(target: &str, oracle: impl Fn(&str)) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    for entry in fs::read_dir(corpus).into_iter().flatten().flatten() {
        if let Ok(text) = fs::read_to_string(entry.path()) {
            oracle(&text);
        }
    }
}

#[test]
fn names() {
    replay("uri_name", oracle::name);
}

#[test]
fn locators() {
    replay("uri_locator", oracle::locator);
}
