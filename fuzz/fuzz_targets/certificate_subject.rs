//! Any bytes, read as whose a certificate is. The oracle is shared with the tests of the crate.
#![no_main]

#[path = "../../xds-transport/tests/oracle/subject.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::certificate_subject(bytes));
