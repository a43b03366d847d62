//! Any bytes, read as a file of aggregation rules and a request. The oracle is shared with the tests.
#![no_main]

#[path = "../../xds-relay/tests/aggregation/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::aggregation(bytes));
