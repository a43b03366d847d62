#![no_main]

#[allow(dead_code, reason = "the other targets use the rest")]
#[path = "../../xds-matcher/tests/oracles/mod.rs"]
mod oracles;

libfuzzer_sys::fuzz_target!(|input: &[u8]| oracles::matcher_text(input));
