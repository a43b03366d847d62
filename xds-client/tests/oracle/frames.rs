//! Any bytes, read as what a server of HTTP/2 sends.

#[path = "../../src/upstream/frames.rs"]
#[allow(clippy::module_inception, reason = "the file has this name, too")]
mod frames;
#[path = "../../src/upstream/go_away.rs"]
#[allow(dead_code, reason = "the rest is for who makes connections")]
mod go_away;

use frames::{Frames, Said};

/// The same is heard wherever the bytes are cut: at once, in pieces as the first byte has it, and one by one.
pub(crate) fn http2_frames(bytes: &[u8]) {
    let Some((&size, bytes)) = bytes.split_first() else { return };
    let whole = heard(bytes, bytes.len());
    assert_eq!(heard(bytes, usize::from(size)), whole);
    assert_eq!(heard(bytes, 1), whole);
}

fn heard(bytes: &[u8], size: usize) -> Vec<String> {
    let (mut frames, mut heard) = (Frames::default(), Vec::new());
    for piece in bytes.chunks(size.max(1)) {
        frames.pass(piece, &mut |said| {
            heard.push(match said {
                Said::Settings { max_streams } => format!("{max_streams:?}"),
                Said::GoAway(go_away) => go_away.to_string(),
            });
        });
    }
    // They are shown to people.
    assert!(heard.iter().all(|words| !words.contains(char::is_control) && words.len() < 4096), "{heard:?}");
    heard
}
