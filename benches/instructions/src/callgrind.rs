//! Running the program under callgrind, and reading what that wrote.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio, exit};
use std::{env, fs};

use crate::{Count, Counts};

/// Set where the program runs under callgrind.
const COUNTED: &str = "INSTRUCTIONS_COUNTED";

/// Says which parts of the program are counted.
#[derive(Debug)]
pub struct Counter(());

impl Counter {
    /// Counts the instructions of `part`, which does the same thing `times` times, and keeps those of one time.
    pub fn count<T>(&mut self, what: &str, size: usize, times: usize, part: impl FnOnce() -> T) -> T {
        let (mut part, mut done) = (Some(part), None);
        counted_part(&mut || done = part.take().map(|part| part()));
        println!("{what}\t{size}\t{times}");
        black_box(done).unwrap_or_else(|| unreachable!("the part was done"))
    }
}

/// By this name callgrind finds the function.
const COUNTED_PART: &str = concat!(module_path!(), "::counted_part");

/// callgrind counts what happens in here, and writes that down when it ends.
#[inline(never)]
fn counted_part(part: &mut dyn FnMut()) {
    part();
    // Not a tail call: that would be the end.
    black_box(());
}

/// Runs the program anew under callgrind, where this calls `parts` and never returns; returns what was counted.
///
/// # Panics
/// When valgrind is not installed, or the program fails under it.
pub fn count(parts: impl FnOnce(&mut Counter)) -> Counts {
    if env::var_os(COUNTED).is_some() {
        parts(&mut Counter(()));
        exit(0);
    }
    let directory = env::temp_dir().join(format!("instructions-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .args(["--toggle-collect", "--dump-after"].map(|option| format!("{option}={COUNTED_PART}")))
        .arg(format!("--callgrind-out-file={}", directory.join("part").display()))
        .arg(env::current_exe().unwrap())
        .args(env::args_os().skip(1))
        .env(COUNTED, "1")
        .stderr(Stdio::piped())
        .output()
        .unwrap_or_else(|error| panic!("valgrind does not start: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let parts = String::from_utf8_lossy(&output.stdout).into_owned();
    let counts = parts.lines().enumerate().map(|(index, line)| {
        let [what, size, times] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("not a part: {line}") };
        let total = total(&directory.join(format!("part.{}", index + 1)));
        let times: f64 = times.parse().unwrap();
        Count { what: what.into(), size: size.parse().unwrap(), instructions: total / times }
    });
    let counts = Counts(counts.collect());
    fs::remove_dir_all(directory).unwrap();
    counts
}

/// The instructions in a profile that callgrind wrote.
fn total(profile: &Path) -> f64 {
    let text = fs::read_to_string(profile).unwrap();
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    total.unwrap().trim().parse().unwrap()
}
