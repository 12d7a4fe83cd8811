//! Does a Range field, whatever it says, select bytes that are there, each once, and all that it asks for?

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::range(input));
