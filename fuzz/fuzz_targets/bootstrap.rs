//! Any text, read as a bootstrap. The oracle is shared with the tests.
#![no_main]

#[path = "../../xds-client/tests/oracle/bootstrap.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::bootstrap(bytes));
