//! Any bytes, read as what a server of HTTP/2 sends. The oracle is shared with the tests.
#![no_main]

#[path = "../../xds-client/tests/oracle/frames.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::http2_frames(bytes));
