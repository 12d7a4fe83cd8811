//! Does every request head have one meaning, however it arrives?

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::head(input));
