//! Any bytes, read as a response, against prost. The oracle is shared with the tests of the crate.
#![no_main]

#[path = "../../xds-transport/tests/oracle/mod.rs"]
#[allow(dead_code, reason = "each target has its part of the oracle")]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::wire_walk(bytes));
