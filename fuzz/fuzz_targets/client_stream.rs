//! Any bytes, read as what an origin and a user do to the client's side of one stream. The oracle is shared with the tests.
#![no_main]

#[path = "../../xds-transport/tests/oracle/mod.rs"]
#[allow(dead_code, reason = "each target has its part of the oracle")]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::client::client_stream(bytes));
