//! Any bytes, read as what an adapter of `xds conformance` answers. The oracle is shared with the tests.
#![no_main]

#[path = "../../xds/tests/oracle/answers.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::adapter_answers(bytes));
