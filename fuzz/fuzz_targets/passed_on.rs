//! Is a request that a gateway passes on one request for the server too?

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::passed_on(input));
