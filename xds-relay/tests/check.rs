//! What is said of a configuration, or of a resource file, that is no text file at all.
#![cfg(all(unix, feature = "file-origin"))]
#![allow(clippy::unwrap_used, reason = "the helpers of these tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Standard error of `--check`, which finds fault.
fn fault(config: &Path) -> String {
    let mut relay = Command::new(env!("CARGO_BIN_EXE_xds-relay"));
    let output = relay.arg("--check").arg("--config").arg(config).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A FIFO that somebody is about to write an empty document into.
fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let path = path.to_owned();
    std::thread::spawn(move || fs::OpenOptions::new().write(true).open(path));
}

#[test]
fn what_is_no_text_file_is_named_with_what_it_is_and_never_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("directory")).unwrap();
    fifo(&path("fifo"));
    fs::write(path("binary"), b"listen: 127.0.0.1:1\nadmin: \xff\n").unwrap();
    let place = |name: &str| path(name).display().to_string();
    for (name, words) in [
        ("directory", ": a directory, not a file"),
        ("fifo", ": a FIFO, not a file"),
        ("binary", ":2:8: not UTF-8: the byte 0xff, at offset 27 of the file"),
    ] {
        assert_eq!(fault(&path(name)), format!("xds-relay: {}{words}\n", place(name)));
    }

    let config = path("relay.yaml");
    fs::write(&config, "listen: 127.0.0.1:0\nadmin: none\norigins: [{ name: mesh, files: mesh }]\n").unwrap();
    let resource = path("mesh").join("a.yaml");
    let made: [(&dyn Fn(), &str); 3] = [
        (&|| fs::create_dir(&resource).unwrap(), ": a directory, not a file"),
        (&|| fifo(&resource), ": a FIFO, not a file"),
        (
            &|| fs::write(&resource, b"resources:\n- \xc3(").unwrap(),
            ":2:3: not UTF-8: the byte 0xc3, at offset 13 of the file",
        ),
    ];
    for (make, words) in made {
        fs::create_dir(path("mesh")).unwrap();
        make();
        assert_eq!(fault(&config), format!("xds-relay: origin \"mesh\": {}{words}\n", resource.display()));
        fs::remove_dir_all(path("mesh")).unwrap();
    }
}
