//! Any text, read as a locator. The oracle is shared with the tests of the crate.
#![no_main]

#[path = "../../xdstp-uri/tests/oracle/mod.rs"]
#[allow(dead_code, reason = "each target has its part of the oracle")]
mod oracle;

libfuzzer_sys::fuzz_target!(|text: &str| oracle::locator(text));
