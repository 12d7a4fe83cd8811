//! What must hold for every input, beyond that nothing panics?
//!
//! Each property takes any bytes and panics where cloudgate breaks a promise. The fuzz targets run
//! them under libFuzzer; `tests/fuzz_seeds.rs` runs them on stable, with the seeds and mutations.

mod answer;
mod body;
mod handshake;
mod head;
mod multipart;
pub mod mutate;
mod passed_on;
mod proxy;
mod query;
mod range;
mod websocket;
mod whole_form;
mod whole_frames;

pub use answer::answer;
pub use body::framing_decode;
pub use handshake::handshake;
pub use head::head;
pub use multipart::multipart;
pub use passed_on::passed_on;
pub use proxy::proxy;
pub use query::query;
pub use range::range;
pub use websocket::websocket;

use cloudgate::Limits;
use mutate::Random;

/// The limits that every input is tried with: the defaults, and some that small inputs can reach.
pub(crate) fn limits() -> [Limits; 2] {
    let mut small = Limits::DEFAULT;
    small.target = 40;
    small.head = 200;
    small.fields = 5;
    small.chunk_extensions = 8;
    small.trailers = 24;
    [Limits::DEFAULT, small]
}

/// Inputs up to this length are also fed byte by byte.
const SHORT: usize = 300;

/// Ways for `input` to arrive, as the sizes of its pieces; they depend on the input alone.
pub(crate) fn cuts(input: &[u8]) -> Vec<Vec<usize>> {
    let mut random = Random::from_bytes(input);
    let most = (input.len() / 4).max(2);
    let mut all: Vec<Vec<usize>> = (0..3)
        .map(|_| (0..12).map(|_| 1 + random.below(most)).collect())
        .collect();
    if input.len() <= SHORT {
        all.push(vec![1]);
    }
    all
}
