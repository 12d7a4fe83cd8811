//! Is what opens a WebSocket, whatever its fields say, answered as the client that asked can take it?

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| properties::handshake(input));
