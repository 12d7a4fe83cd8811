//! Does every answer of a server have one meaning, however it arrives?

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::answer(input));
