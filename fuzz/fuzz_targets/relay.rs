//! Any bytes, read as what clients, origins and time do to a relay. The oracle is shared with the tests.
#![no_main]

#[path = "../../xds-relay/tests/oracle/mod.rs"]
#[allow(dead_code, reason = "each target has its part of the oracle")]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::relay(bytes));
