//! Any bytes, as what a client sends a server of TLS. The oracle is shared with the tests of the crate.
#![no_main]

#[path = "../../xds-transport/tests/oracle/handshake.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::handshake(bytes));
