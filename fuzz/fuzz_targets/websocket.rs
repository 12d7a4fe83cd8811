//! Do the bytes of a WebSocket mean one thing however they come, within the limits, and again when they are written?

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::websocket(input));
