//! What the fuzz targets found, again.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

#[path = "oracle/answers.rs"]
mod oracle;

#[test]
fn adapter_answers_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/adapter_answers");
    for entry in fs::read_dir(corpus).into_iter().flatten() {
        oracle::adapter_answers(&fs::read(entry.unwrap().path()).unwrap());
    }
    for answer in [&br#"{"ok":true}"#[..], br#"[true,null,null]"#, b"\x08\x01", b"\x08\x01\x08\x00"] {
        oracle::adapter_answers(answer);
    }
}
