//! Any bytes, read as what an origin calls a variant and as the locator of who asks. The oracle is shared with the tests of the
//! crate.
#![no_main]

#[path = "../../xds-transport/tests/oracle/mod.rs"]
#[allow(dead_code, reason = "each target has its part of the oracle")]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::locator::wire_locator(bytes));
