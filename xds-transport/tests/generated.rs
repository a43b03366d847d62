//! The committed messages are what `proto/` generates: no protoc, no build script.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

fn generate(into: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let protos = [
        "address.proto",
        "admin.proto",
        "config_source.proto",
        "csds.proto",
        "discovery.proto",
        "load_report.proto",
        "lrs.proto",
        "matcher.proto",
        "node.proto",
        "status.proto",
        "well_known.proto",
    ];
    let files = protox::compile(protos, [&root]).unwrap();
    prost_build::Config::new()
        .bytes(["."])
        .btree_map(["."])
        .compile_well_known_types()
        .out_dir(into)
        .compile_fds(files)
        .unwrap();
}

#[test]
fn committed_messages_are_what_the_protos_generate() {
    let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wire");
    fs::create_dir_all(&fresh).unwrap();
    generate(&fresh);
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/wire/generated");
    let rewrite = std::env::var_os("REGENERATE").is_some();
    for entry in fs::read_dir(&fresh).unwrap() {
        let entry = entry.unwrap();
        // A module that is called as a keyword is marked in its file's name, too: not every tool takes that.
        let target = committed.join(entry.file_name().to_string_lossy().replace("r#", ""));
        let text = fs::read_to_string(entry.path()).unwrap();
        if rewrite {
            fs::create_dir_all(&committed).unwrap();
            fs::write(&target, text).unwrap();
        } else {
            let stale = fs::read_to_string(&target).map_or(true, |old| old.replace("\r\n", "\n") != text);
            assert!(!stale, "{} is stale: run this test with REGENERATE=1", target.display());
        }
    }
}
