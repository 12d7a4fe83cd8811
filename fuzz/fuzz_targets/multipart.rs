//! Does every form that is accepted keep its meaning when it is written again?

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::multipart(input));
