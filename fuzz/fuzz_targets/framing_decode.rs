//! Does every request end where its head says, however its body arrives?

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::framing_decode(input));
