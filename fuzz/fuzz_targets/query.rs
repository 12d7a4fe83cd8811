//! Do targets and queries keep their meaning when they are normalised and written again?

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::query(input));
