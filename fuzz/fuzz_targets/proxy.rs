//! Does every PROXY protocol header name one address, however it arrives?

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::proxy(input));
