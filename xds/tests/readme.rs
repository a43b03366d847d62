//! What README.md shows of the tool without a server is so, and can be repeated with the files that it shows.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../README.md");

/// The fenced blocks: what they are, their text, and the last line of text before them.
fn blocks() -> Vec<(String, String, String)> {
    let (mut blocks, mut before, mut open) = (Vec::new(), "", None);
    for line in README.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some((kind.to_owned(), String::new(), std::mem::take(&mut before).to_owned())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, text, _))) => *text += &format!("{line}\n"),
            (None, None) if !line.is_empty() => before = line,
            (None, None) => {}
        }
    }
    blocks
}

/// A file is shown behind text that ends with its name.
fn file_name(before: &str) -> Option<&str> {
    before.strip_suffix("`:").and_then(|before| before.rsplit('`').next())
}

/// Commands, each with what comes of it.
fn sessions(console: &str) -> Vec<(&str, &str)> {
    console.split("$ ").filter_map(|session| session.split_once('\n')).collect()
}

/// What a command line prints in a directory where `xds` is the tool.
fn output(directory: &Path, command: &str) -> String {
    let tools = Path::new(env!("CARGO_BIN_EXE_xds")).parent().unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh").args(["-c", command]).current_dir(directory).env("PATH", path).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn what_is_shown_of_the_tool_can_be_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let (mut files, mut commands) = (0, 0);
    for (_, text, before) in blocks() {
        if let Some(name) = file_name(&before) {
            fs::write(directory.path().join(name), text).unwrap();
            files += 1;
        }
    }
    for (_, text, _) in blocks().iter().filter(|(kind, ..)| kind == "console") {
        for (command, shown) in sessions(text).into_iter().filter(|(_, shown)| !shown.is_empty()) {
            assert_eq!(output(directory.path(), command), shown, "{command}");
            commands += 1;
        }
    }
    assert!(files >= 3 && commands >= 8, "{files} {commands}");
}
